package wire

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// script is a peer that takes everything, and once the test says so sends given bytes and goes.
type script struct {
	net.Conn
	start chan struct{}
	in    *bytes.Reader
}

func (s *script) Read(b []byte) (int, error) {
	<-s.start
	return s.in.Read(b)
}
func (*script) Write(b []byte) (int, error)      { return len(b), nil }
func (*script) Close() error                     { return nil }
func (*script) SetReadDeadline(time.Time) error  { return nil }
func (*script) SetWriteDeadline(time.Time) error { return nil }

// FuzzAnswers feeds foreign bytes as answers to one request of each kind that a mirror sends.
func FuzzAnswers(f *testing.F) {
	kinds := []int16{keyProduce, keyFetch, 2, 3, keyAPIVersions, 22, 23, 36, 61}
	for i, key := range kinds {
		for _, version := range []int16{0, kmsg.RequestForKey(key).MaxVersion()} {
			resp := kmsg.ResponseForKey(key)
			resp.SetVersion(version)
			f.Add(uint8(i), version, answer(1, resp))
		}
	}
	whole := kmsg.NewPtrFetchResponse()
	whole.Version = maxFetch
	whole.Topics = []kmsg.FetchResponseTopic{{Partitions: []kmsg.FetchResponseTopicPartition{{RecordBatches: someBatch(2, 20)}}}}
	f.Add(uint8(1), int16(maxFetch), answer(1, whole))
	f.Fuzz(func(t *testing.T, kind uint8, version int16, b []byte) {
		cfg := DefaultConfig()
		cfg.MaxFrameBytes = 1 << 20
		peer := &script{start: make(chan struct{}), in: bytes.NewReader(b)}
		c := newConn(peer, 1, "", "id", cfg)
		pool := newPool(1 << 20)
		told := make(chan struct{})
		req := kmsg.RequestForKey(kinds[int(kind)%len(kinds)])
		req.SetVersion(min(max(version, 0), req.MaxVersion()))
		w := c.newWaiter(req)
		switch req.Key() {
		case keyProduce:
			w.produced = func(*kmsg.ProduceResponse, error) { close(told) }
		case keyFetch:
			w.pool = pool
		}
		require.NoError(t, c.submit(t.Context(), w, req))
		close(peer.start)
		<-c.Done()
		if w.produced != nil {
			<-told
		} else {
			<-w.ready
		}
		require.ErrorAs(t, c.Err(), new(*LinkError), "the script ends in any case")
		if w.body != nil {
			w.body.Release()
		}
		require.Zero(t, pool.Budget().Used())
	})
}

func FuzzSkipTags(f *testing.F) {
	f.Add([]byte{0, 1})
	f.Add([]byte{1, 5, 2, 7, 7, 9})
	f.Add([]byte{1, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, err := skipTags(b)
		if err == nil {
			require.True(t, bytes.HasSuffix(b, rest))
		}
	})
}
