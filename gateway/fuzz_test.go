package gateway

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// translated are the answers that carry addresses, in the versions that do.
func translated() []kmsg.Response {
	return []kmsg.Response{
		&kmsg.MetadataResponse{Brokers: []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "inside", Port: 1}}},
		&kmsg.FindCoordinatorResponse{
			NodeID: 1, Host: "inside", Port: 1,
			Coordinators: []kmsg.FindCoordinatorResponseCoordinator{{Key: "g", NodeID: 1, Host: "inside", Port: 1}, {Key: "h", NodeID: -1, Port: -1}},
		},
		&kmsg.DescribeClusterResponse{Brokers: []kmsg.DescribeClusterResponseBroker{{NodeID: 1, Host: "inside", Port: 1}}},
		&kmsg.ProduceResponse{Brokers: []kmsg.ProduceResponseBroker{{NodeID: 1, Host: "inside", Port: 1}}},
		&kmsg.ShareFetchResponse{NodeEndpoints: []kmsg.ShareFetchResponseNodeEndpoint{{NodeID: 1, Host: "inside", Port: 1}}},
		&kmsg.ShareAcknowledgeResponse{NodeEndpoints: []kmsg.ShareAcknowledgeResponseNodeEndpoint{{NodeID: 1, Host: "inside", Port: 1}}},
	}
}

// answer is a whole frame.
func answer(resp kmsg.Response, correlation int32) []byte {
	frame := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(correlation))
	if resp.IsFlexible() && resp.Key() != keyAPIVersions {
		frame = append(frame, 1, 99, 2, 'h', 'i') // a tag that nobody knows stays
	}
	frame = resp.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

func outside(int32, string, int32) (string, int32) { return "outside.example.com", 99 }

func TestEveryVersionOfAnAnswerHasItsAddressesChanged(t *testing.T) {
	t.Parallel()
	may := spans()
	for _, resp := range translated() {
		for version := range resp.MaxVersion() + 1 {
			resp.SetVersion(version)
			a := asked{correlation: 5, key: resp.Key(), version: version}
			s := may[a.key]
			require.True(t, version >= s.least && version <= s.most, "%T %d", resp, version)
			frame := answer(resp, 5)
			if !a.changes() {
				require.NotContains(t, string(frame), "inside", "%T %d", resp, version)
				continue
			}
			got, err := a.change(frame, outside, may)
			require.NoError(t, err, "%T %d", resp, version)
			require.Equal(t, uint32(len(got)-4), binary.BigEndian.Uint32(got))
			require.NotContains(t, string(got), "inside", "%T %d", resp, version)
			if !bytes.Equal(frame, got) {
				require.Contains(t, string(got), "outside.example.com", "%T %d", resp, version)
			} else {
				require.NotContains(t, string(frame), "inside")
			}
		}
	}
}

func TestProduceSaysWhetherItWantsAnAnswer(t *testing.T) {
	t.Parallel()
	id, transaction := "a client", "a transaction"
	for version := range int16(14) {
		for _, client := range []*string{nil, &id} {
			for _, tx := range []*string{nil, &transaction} {
				for _, acks := range []int16{-1, 0, 1} {
					req := &kmsg.ProduceRequest{Version: version, Acks: acks, TransactionID: tx}
					options := []kmsg.RequestFormatterOpt{}
					if client != nil {
						options = append(options, kmsg.FormatterClientID(*client))
					}
					frame := kmsg.NewRequestFormatter(options...).AppendRequest(nil, req, 1)
					got, err := asked{key: keyProduce, version: version}.answered(frame[requestHead-2:])
					require.NoError(t, err)
					require.Equal(t, acks != 0, got, "version %d", version)
					_, err = asked{key: keyProduce, version: version}.answered(frame[requestHead-2 : requestHead])
					require.Error(t, err, "it is cut")
				}
			}
		}
	}
}

func FuzzAnswers(f *testing.F) {
	may := spans()
	for _, resp := range append(translated(), &kmsg.ApiVersionsResponse{Version: 3}) {
		resp.SetVersion(resp.MaxVersion())
		f.Add(resp.Key(), resp.MaxVersion(), answer(resp, 1))
	}
	f.Fuzz(func(t *testing.T, key, version int16, frame []byte) {
		a := asked{key: key, version: version}
		if s, ok := may[key]; !ok || version < s.least || version > s.most || !a.changes() || len(frame) < headSize {
			return
		}
		got, err := a.change(frame, outside, may)
		if err == nil && len(got) < headSize {
			t.Fatal("no frame")
		}
	})
}

func FuzzProduce(f *testing.F) {
	f.Add(int16(9), kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.ProduceRequest{Version: 9}, 1)[requestHead-2:])
	f.Fuzz(func(_ *testing.T, version int16, b []byte) {
		_, _ = asked{key: keyProduce, version: version}.answered(b) // must not panic
	})
}
