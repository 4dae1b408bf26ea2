package producer

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// classify says what a Produce or inquiry error means for the partition; nil for what is success.
func classify(err error) *route.Fault {
	if err == nil || errors.Is(err, kerr.DuplicateSequenceNumber) {
		return nil // old brokers say "duplicate" where newer ones acknowledge a repeat
	}
	f := &route.Fault{Err: err, Extent: route.Extent{Start: route.NoOffset, LastStable: route.NoOffset, End: route.NoOffset}}
	var k *kerr.Error
	if !errors.As(err, &k) {
		return linkFault(f, err)
	}
	f.Code = k.Message
	switch k.Code {
	case kerr.NotLeaderForPartition.Code, kerr.LeaderNotAvailable.Code, kerr.FencedLeaderEpoch.Code, kerr.UnknownLeaderEpoch.Code,
		kerr.ReplicaNotAvailable.Code,
		kerr.UnknownTopicOrPartition.Code, kerr.UnknownTopicID.Code: // a broker says this of existing topics while it starts
		f.Class = route.Moved
	case kerr.OutOfOrderSequenceNumber.Code, kerr.InvalidProducerEpoch.Code, kerr.UnknownProducerID.Code, kerr.ProducerFenced.Code,
		kerr.InvalidProducerIDMapping.Code:
		f.Class = route.Order
	case kerr.NotEnoughReplicas.Code, kerr.ThrottlingQuotaExceeded.Code:
		f.Class = route.Busy
	case kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code, kerr.InvalidTimestamp.Code, kerr.InvalidRecord.Code,
		kerr.TopicAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code, kerr.PolicyViolation.Code, kerr.InvalidTopicException.Code,
		kerr.UnsupportedForMessageFormat.Code, kerr.UnsupportedCompressionType.Code, kerr.InvalidRequiredAcks.Code:
		f.Class = route.Refused // retrying the same bytes at once can't help
	case kerr.CorruptMessage.Code:
		f.Class = route.Corrupt // damaged on the way: what the source has is read again
	default: // REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND, UNKNOWN_SERVER_ERROR, KAFKA_STORAGE_ERROR and what we never saw
		f.Class = route.Ambiguous
	}
	return f
}

// linkFault classifies what is no answer of a broker.
func linkFault(f *route.Fault, err error) *route.Fault {
	var auth *wire.AuthError
	f.Class, f.Code = route.Ambiguous, "LINK"
	if errors.As(err, &auth) {
		f.Class, f.Code = route.Unreachable, "AUTHENTICATION"
	}
	return f
}
