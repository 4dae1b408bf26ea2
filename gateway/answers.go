package gateway

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// asked is a request that has no answer yet.
type asked struct {
	correlation  int32
	key, version int16
	tooNew       bool // ApiVersions of a version that the gateway does not know: it was asked as version 0
}

// changes says whether the answer has to be read whole.
func (a asked) changes() bool {
	switch a.key {
	case keyProduce:
		return a.version >= 9 // brokers are named from 10 on (KIP-951), in a field that any version with tags could carry
	case keyMetadata, keyFindCoordinator, keyAPIVersions, keyDescribeCluster, keyShareFetch, keyShareAck:
		return true
	default:
		return false
	}
}

// translate gives a broker's place for its address, and remembers the address. id is the broker's.
type translate func(id int32, host string, port int32) (placeHost string, placePort int32)

// headSize is what stands before an answer: its length and the correlation id, 4 bytes each.
const headSize = 8

// change gives the frame to send in place of an answer's, both with their lengths. It may be the same.
func (a asked) change(frame []byte, t translate, may map[int16]span) ([]byte, error) {
	resp := kmsg.ResponseForKey(a.key)
	resp.SetVersion(a.version)
	body, err := a.body(frame, resp)
	if err != nil {
		return nil, err
	}
	if v, ok := resp.(*kmsg.ApiVersionsResponse); ok && len(body) >= 2 && binary.BigEndian.Uint16(body) == unsupportedVersion {
		v.Version = 0 // as brokers answer who asks with a version that they do not know
	}
	if err = resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode the answer to %s version %d: %w", kmsg.NameForKey(a.key), a.version, err)
	}
	switch v := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		limitVersions(v, may)
		if a.tooNew {
			v.ErrorCode = unsupportedVersion
		}
	default:
		if !place(resp, t) {
			return frame, nil
		}
	}
	out := resp.AppendTo(append(make([]byte, 0, len(frame)+len(frame)/4), frame[:len(frame)-len(body)]...))
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, nil
}

// body is what of an answer's frame stands behind its header. The header of an answer to ApiVersions is never flexible (KIP-511).
func (a asked) body(frame []byte, resp kmsg.Response) ([]byte, error) {
	body := frame[headSize:]
	if a.key == keyAPIVersions || !resp.IsFlexible() {
		return body, nil
	}
	err := skipTags(&body)
	return body, err
}

// place gives brokers in an answer their places; false if there are none.
func place(resp kmsg.Response, t translate) (changed bool) {
	move := func(id int32, host *string, port *int32) {
		if id >= 0 && *host != "" { // else there is no broker: such as no coordinator
			*host, *port = t(id, *host, *port)
			changed = true
		}
	}
	switch v := resp.(type) {
	case *kmsg.MetadataResponse:
		for i := range v.Brokers {
			move(v.Brokers[i].NodeID, &v.Brokers[i].Host, &v.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		move(v.NodeID, &v.Host, &v.Port)
		for i := range v.Coordinators {
			move(v.Coordinators[i].NodeID, &v.Coordinators[i].Host, &v.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range v.Brokers {
			move(v.Brokers[i].NodeID, &v.Brokers[i].Host, &v.Brokers[i].Port)
		}
	case *kmsg.ProduceResponse:
		for i := range v.Brokers {
			move(v.Brokers[i].NodeID, &v.Brokers[i].Host, &v.Brokers[i].Port)
		}
	case *kmsg.ShareFetchResponse:
		for i := range v.NodeEndpoints {
			move(v.NodeEndpoints[i].NodeID, &v.NodeEndpoints[i].Host, &v.NodeEndpoints[i].Port)
		}
	case *kmsg.ShareAcknowledgeResponse:
		for i := range v.NodeEndpoints {
			move(v.NodeEndpoints[i].NodeID, &v.NodeEndpoints[i].Host, &v.NodeEndpoints[i].Port)
		}
	}
	return changed
}
