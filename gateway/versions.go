package gateway

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Keys of requests that the gateway treats in a way of their own.
const (
	keyProduce         = 0
	keyFetch           = 1
	keyMetadata        = 3
	keyFindCoordinator = 10
	keySASLHandshake   = 17
	keyAPIVersions     = 18
	keyDescribeQuorum  = 55
	keyDescribeCluster = 60
	keyShareFetch      = 78
	keyShareAck        = 79
)

// span is which versions of a request clients may use.
type span struct{ least, most int16 }

// spans are the requests that pass, by key. A newer version than those that are known might carry an address, as that of Produce began to
// with version 10; what is between brokers and controllers only is none of a client's business.
func spans() map[int16]span {
	all := map[int16]span{}
	for key := range int16(kmsg.MaxKey + 1) {
		if req := kmsg.RequestForKey(key); req != nil && !internal(kmsg.Key(key)) {
			all[key] = span{0, req.MaxVersion()}
		}
	}
	// From version 16 on an answer may carry addresses behind all of its records, and nothing else that a client has a use for: who leads a partition
	// instead is told by earlier ones as well. So records pass as they come.
	limit(all, keyFetch, 0, 15)
	limit(all, keyDescribeQuorum, 0, 1) // version 2 lists the controllers' addresses
	limit(all, keySASLHandshake, 1, 1)  // what follows version 0 are no frames of Kafka's
	return all
}

func limit(all map[int16]span, key, least, most int16) {
	s := all[key]
	all[key] = span{max(s.least, least), min(s.most, most)}
}

// internal says whether only brokers and controllers send a request.
func internal(key kmsg.Key) bool {
	switch key {
	case kmsg.LeaderAndISR, kmsg.StopReplica, kmsg.UpdateMetadata, kmsg.ControlledShutdown, kmsg.Vote, kmsg.BeginQuorumEpoch, kmsg.EndQuorumEpoch,
		kmsg.AlterPartition, kmsg.Envelope, kmsg.FetchSnapshot, kmsg.BrokerRegistration, kmsg.BrokerHeartbeat, kmsg.AllocateProducerIDs,
		kmsg.ControllerRegistration, kmsg.AssignReplicasToDirs, kmsg.UpdateRaftVoter, kmsg.InitializeShareGroupState,
		kmsg.ReadShareGroupState, kmsg.WriteShareGroupState, kmsg.DeleteShareGroupState, kmsg.ReadShareGroupStateSummary:
		return true
	default:
		return false
	}
}

// unsupportedVersion is the error code of a broker that knows no such version.
const unsupportedVersion = 35

// limitVersions leaves in an answer to ApiVersions what may pass.
func limitVersions(resp *kmsg.ApiVersionsResponse, may map[int16]span) {
	kept := resp.ApiKeys[:0]
	for _, k := range resp.ApiKeys {
		s, ok := may[k.ApiKey]
		k.MinVersion, k.MaxVersion = max(k.MinVersion, s.least), min(k.MaxVersion, s.most)
		if ok && k.MinVersion <= k.MaxVersion {
			kept = append(kept, k)
		}
	}
	resp.ApiKeys = kept
}
