package wire

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestFetchVersionFollowsIDsAndSession(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	var next atomic.Int32
	go p.serve(func(r kmsg.Response) { r.(*kmsg.FetchResponse).SessionID = next.Load() })
	pool := newPool(1 << 20)
	id := [16]byte{1}
	fetch := func(session, epoch, opens int32, topics ...[16]byte) int16 {
		next.Store(opens)
		req := kmsg.NewPtrFetchRequest()
		req.SessionID, req.SessionEpoch = session, epoch
		for _, id := range topics {
			req.Topics = append(req.Topics, kmsg.FetchRequestTopic{Topic: "t", TopicID: id})
		}
		resp, s, err := c.Fetch(t.Context(), req, pool, 0)
		require.NoError(t, err)
		s.Release()
		return resp.Version
	}
	require.Equal(t, int16(maxFetch), fetch(0, 0, 11, id))
	require.Equal(t, int16(maxFetchByName), fetch(0, 0, 12, [16]byte{}, id))
	require.Equal(t, int16(maxFetch), fetch(11, 1, 11))
	require.Equal(t, int16(maxFetchByName), fetch(12, 1, 12), "names no topic, but the session was opened by name")
	require.Equal(t, int16(maxFetchByName), fetch(12, 2, 12, id))
	require.Equal(t, int16(maxFetch), fetch(12, 0, 13, id), "opens anew")
	require.Equal(t, map[int32]int16{11: maxFetch, 13: maxFetch}, c.sessions)

	req := kmsg.NewPtrFetchRequest()
	req.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "t"}}
	require.Equal(t, int16(maxFetchByName), c.fetchVersion(req))
}

func TestFetchNamesTopicsOfTheRequest(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	go p.serve(func(r kmsg.Response) {
		r.(*kmsg.FetchResponse).Topics = []kmsg.FetchResponseTopic{{TopicID: [16]byte{2}}, {TopicID: [16]byte{1}}}
	})
	resp, s, err := c.Fetch(t.Context(), fetchRequest("one", [16]byte{1}, 0), newPool(1<<20), 0)
	require.NoError(t, err)
	defer s.Release()
	require.Equal(t, "one", resp.Topics[1].Topic)
	require.Empty(t, resp.Topics[0].Topic, "a topic of the session that was not in the request")
}

func TestReservationIsTakenOver(t *testing.T) {
	t.Parallel()
	const reserved = 100_000
	for _, row := range []struct {
		name string
		run  func(t *testing.T, c *Conn, p *peer, fetch func(context.Context) error)
	}{
		{"unsupported", func(t *testing.T, c *Conn, _ *peer, fetch func(context.Context) error) {
			t.Helper()
			c.versions.newest[keyFetch] = 0
			require.ErrorIs(t, fetch(t.Context()), ErrUnsupported)
		}},
		{"closed before", func(t *testing.T, c *Conn, _ *peer, fetch func(context.Context) error) {
			t.Helper()
			c.Close()
			require.ErrorIs(t, fetch(t.Context()), ErrClosed)
		}},
		{"ctx ended before", func(t *testing.T, _ *Conn, _ *peer, fetch func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, fetch(ctx), context.Canceled)
		}},
		{"cut before the answer", func(t *testing.T, _ *Conn, p *peer, fetch func(context.Context) error) {
			t.Helper()
			go func() {
				_, _ = p.receive()
				_ = p.Close()
			}()
			var link *LinkError
			require.ErrorAs(t, fetch(t.Context()), &link)
		}},
		{"cut in the answer", func(t *testing.T, _ *Conn, p *peer, fetch func(context.Context) error) {
			t.Helper()
			go func() {
				f, _ := p.receive()
				_, _ = p.Write(binary.BigEndian.AppendUint32([]byte{0, 1, 0, 0}, uint32(f.corr)))
				_ = p.Close()
			}()
			var link *LinkError
			require.ErrorAs(t, fetch(t.Context()), &link)
		}},
		{"not decodable", func(t *testing.T, _ *Conn, p *peer, fetch func(context.Context) error) {
			t.Helper()
			go func() {
				f, _ := p.receive()
				_, _ = p.Write(append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, uint32(f.corr)), 0, 1, 2, 3))
			}()
			require.ErrorContains(t, fetch(t.Context()), "decode")
		}},
		{"given up before the answer", func(t *testing.T, c *Conn, p *peer, fetch func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			var f frame
			got := make(chan struct{})
			go func() {
				defer close(got)
				f, _ = p.receive()
				cancel()
			}()
			require.ErrorIs(t, fetch(ctx), context.Canceled)
			<-got
			require.NoError(t, p.reply(f, nil))
			go p.serve(nil)
			_, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
			require.NoError(t, err)
		}},
		{"given up in the answer", func(t *testing.T, c *Conn, p *peer, fetch func(context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			var f frame
			got := make(chan struct{})
			whole := func() []byte {
				resp := kmsg.NewPtrFetchResponse()
				resp.Version = f.version
				return answer(f.corr, resp)
			}
			go func() {
				defer close(got)
				f, _ = p.receive()
				_, _ = p.Write(whole()[:9])
				for taken := false; !taken; {
					c.mu.Lock()
					taken = c.waiting.head != nil && c.waiting.head.taken
					c.mu.Unlock()
				}
				cancel()
			}()
			require.ErrorIs(t, fetch(ctx), context.Canceled)
			<-got
			_, err := p.Write(whole()[9:])
			require.NoError(t, err)
			go p.serve(nil)
			_, err = c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
			require.NoError(t, err)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, p := connected(t, DefaultConfig())
			pool := newPool(1 << 20)
			require.NoError(t, pool.Budget().Reserve(t.Context(), reserved))
			row.run(t, c, p, func(ctx context.Context) error {
				resp, s, err := c.Fetch(ctx, fetchRequest("t", [16]byte{1}, 0), pool, reserved)
				require.Nil(t, resp)
				require.Nil(t, s)
				return err
			})
			require.Zero(t, pool.Budget().Used())
		})
	}
}

// A link that is thin but alive must not be taken for dead in the middle of a large answer: it would be fetched again for ever.
func TestSlowLargeAnswerIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		c, p := piped(t, cfg)
		go func() {
			f, err := p.receive()
			if err != nil {
				return
			}
			resp := kmsg.NewPtrFetchResponse()
			resp.Version = f.version
			resp.Topics = []kmsg.FetchResponseTopic{{Partitions: []kmsg.FetchResponseTopicPartition{{RecordBatches: make([]byte, 4<<20)}}}}
			for b := answer(f.corr, resp); len(b) > 0; {
				time.Sleep(cfg.RequestTimeout * 2 / 5)
				n := min(len(b), 1<<20)
				if _, err = p.Write(b[:n]); err != nil {
					return
				}
				b = b[n:]
			}
		}()
		req := fetchRequest("t", [16]byte{1}, 0)
		req.MaxWaitMillis = 0
		resp, s, err := c.Fetch(t.Context(), req, newPool(10<<20), 0)
		require.NoError(t, err)
		require.Len(t, resp.Topics[0].Partitions[0].RecordBatches, 4<<20)
		s.Release()
	})
}

func TestLargeAnswersOfOtherKinds(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	go p.serve(func(r kmsg.Response) {
		for range 100_000 {
			m := r.(*kmsg.MetadataResponse)
			m.Brokers = append(m.Brokers, kmsg.MetadataResponseBroker{Host: "a-host-name-of-some-length"})
		}
	})
	r, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
	require.NoError(t, err)
	require.Len(t, r.(*kmsg.MetadataResponse).Brokers, 100_000)
}
