package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func oneBatch(records []byte) *Produce {
	return &Produce{Acks: -1, Batches: []ProduceBatch{{Topic: "t", Records: records}}}
}

// outcomes collects what done callbacks were told, in order.
type outcomes struct {
	mu   sync.Mutex
	ids  []int
	errs []error
}

func (o *outcomes) of(id int) func(*kmsg.ProduceResponse, error) {
	return func(_ *kmsg.ProduceResponse, err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.ids, o.errs = append(o.ids, id), append(o.errs, err)
	}
}

func (o *outcomes) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ids)
}

func TestAnswersThatEndTheConnection(t *testing.T) {
	t.Parallel()
	good := kmsg.NewPtrMetadataResponse()
	good.Version = 13
	for _, row := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"oversized", []byte{0x7f, 0, 0, 0, 0, 0, 0, 1}, "out of bounds"},
		{"undersized", []byte{0, 0, 0, 3, 0, 0, 0, 1}, "out of bounds"},
		{"negative size", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, "out of bounds"},
		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "out of bounds"},
		{"another correlation id", answer(2, good), "out of order"},
		{"not decodable", []byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 1, 2, 3}, "decode"},
		{"header cut short", []byte{0, 0, 0, 5, 0, 0, 0, 1, 0x80}, "cut short"},
		{"twice", append(answer(1, good), answer(1, good)...), "nobody asked for"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, p := connected(t, DefaultConfig())
			go func() {
				_, _ = p.receive()
				_, _ = p.Write(row.bytes)
			}()
			_, _ = c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
			<-c.Done()
			var link *LinkError
			require.ErrorAs(t, c.Err(), &link)
			require.ErrorContains(t, c.Err(), row.want)
			require.Equal(t, int32(1), link.Broker)
			_, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
			require.Equal(t, c.Err(), err)
			require.Equal(t, c.Err(), c.Produce(oneBatch(nil), func(*kmsg.ProduceResponse, error) { t.Error("done of what was not queued") }))
		})
	}
}

func TestLateAnswerEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		c, p := piped(t, cfg)
		go io.Copy(io.Discard, p)
		require.Zero(t, c.OldestWait())
		started := time.Now()
		_, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "Metadata")
		require.Equal(t, cfg.RequestTimeout, time.Since(started))
	})
}

func TestDeadlineRunsFromBeingTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		c, p := piped(t, cfg)
		const requests = 4
		var errs [requests]error
		var calls sync.WaitGroup
		for i := range requests {
			calls.Go(func() { _, errs[i] = c.Call(t.Context(), kmsg.NewPtrMetadataRequest()) })
		}
		var asked [requests]frame
		for i := range asked {
			f, err := p.receive()
			require.NoError(t, err)
			asked[i] = f
		}
		for i, f := range asked {
			time.Sleep(cfg.RequestTimeout - 1)
			n, _ := c.Unanswered()
			require.Equal(t, requests-i, n)
			require.Equal(t, cfg.RequestTimeout-1, c.OldestWait())
			require.NoError(t, p.reply(f, nil))
			synctest.Wait()
		}
		calls.Wait()
		require.NoError(t, errors.Join(errs[:]...))
		n, bytes := c.Unanswered()
		require.Zero(t, n)
		require.Zero(t, bytes)
	})
}

func TestProducePeerThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := piped(t, DefaultConfig())
		var got outcomes
		require.NoError(t, c.Produce(oneBatch(make([]byte, 64<<20)), got.of(0)))
		<-c.Done()
		require.Equal(t, []int{0}, got.ids)
		require.ErrorIs(t, got.errs[0], os.ErrDeadlineExceeded)
	})
}

func TestCutLinkFailsAllInOrder(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	var got outcomes
	for i := range 10 {
		require.NoError(t, c.Produce(oneBatch([]byte("records")), got.of(i)))
	}
	for range 3 {
		f, err := p.receive()
		require.NoError(t, err)
		require.NoError(t, p.reply(f, nil))
	}
	require.Eventually(t, func() bool { return got.count() == 3 }, 5*time.Second, time.Millisecond)
	require.NoError(t, p.Close())
	<-c.Done()
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got.ids)
	for i, err := range got.errs {
		if i < 3 {
			require.NoError(t, err)
			continue
		}
		var link *LinkError
		require.ErrorAs(t, err, &link)
	}
	n, bytes := c.Unanswered()
	require.Zero(t, n)
	require.Zero(t, bytes)
}

func TestIdleLinkThatEndsIsNoticed(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	require.NoError(t, p.Close())
	<-c.Done()
	require.ErrorIs(t, c.Err(), io.ErrUnexpectedEOF)
}

func TestCloseTellsEveryone(t *testing.T) {
	t.Parallel()
	c, _ := connected(t, DefaultConfig())
	var got outcomes
	require.NoError(t, c.Produce(oneBatch([]byte("records")), got.of(0)))
	c.Close()
	require.Equal(t, []int{0}, got.ids)
	require.ErrorIs(t, got.errs[0], ErrClosed)
	c.Close()
	require.ErrorIs(t, c.Err(), ErrClosed)
}

// A callback that gives the records' memory away must not do so while the socket still reads them.
func TestDoneWaitsForTheWrite(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		reads bool // whether the peer reads the rest of the request after it has answered early
	}{{"early answer", true}, {"answer without reading", false}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cfg := DefaultConfig()
			if !row.reads {
				cfg.WriteGrace = 200 * time.Millisecond
			}
			c, p := connected(t, cfg)
			records := make([]byte, 32<<20)
			for i := range records {
				records[i] = byte(i / 7)
			}
			want := slices.Clone(records)
			got := make(chan []byte, 1)
			go func() {
				defer close(got)
				h := make([]byte, 12)
				if _, err := io.ReadFull(p, h); err != nil {
					return
				}
				resp := kmsg.NewPtrProduceResponse()
				resp.Version = int16(binary.BigEndian.Uint16(h[6:]))
				_, _ = p.Write(answer(int32(binary.BigEndian.Uint32(h[8:])), resp))
				if !row.reads {
					return
				}
				<-time.After(100 * time.Millisecond)
				rest := make([]byte, binary.BigEndian.Uint32(h)-8)
				_, _ = io.ReadFull(p, rest)
				got <- rest
			}()
			told := make(chan struct{})
			require.NoError(t, c.Produce(oneBatch(records), func(*kmsg.ProduceResponse, error) {
				clear(records)
				close(told)
			}))
			<-told
			if row.reads {
				rest := <-got
				require.True(t, slices.Equal(want, rest[len(rest)-len(want)-3:len(rest)-3]), "records changed while they were written")
				require.NoError(t, c.Err())
			}
		})
	}
}

// Whatever happens to the link, each queued request is told once, in order, and its records are untouched until then.
func TestRandomCuts(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		c, p := connected(t, DefaultConfig())
		go func() {
			for range round * 3 {
				f, err := p.receive()
				if err != nil || p.reply(f, nil) != nil {
					break
				}
			}
			_ = p.Close()
		}()
		var got outcomes
		queued := 0
		for i := 0; ; i++ {
			records := make([]byte, 50_000)
			if err := c.Produce(oneBatch(records), func(r *kmsg.ProduceResponse, err error) {
				clear(records)
				got.of(i)(r, err)
			}); err != nil {
				break
			}
			queued++
		}
		<-c.Done()
		require.Len(t, got.ids, queued)
		require.True(t, slices.IsSorted(got.ids))
	}
}

func TestThrottleDelaysTheNextSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		throttle := 2 * cfg.RequestTimeout
		c, p := piped(t, cfg)
		go p.serve(func(r kmsg.Response) {
			if m, ok := r.(*kmsg.MetadataResponse); ok {
				m.ThrottleMillis = int32(throttle.Milliseconds())
			}
		})
		_, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
		require.NoError(t, err)
		require.Equal(t, throttle, c.Throttled())
		started := time.Now()
		_, err = produce(t, c, oneBatch(nil))
		require.NoError(t, err)
		require.Equal(t, throttle, time.Since(started))
	})
}

// A broker that throttles reads nothing for a while, and what is unanswered meanwhile was taken for late.
func TestThrottleIsNoWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer c.Close()
	calls.Go(func() { _, _ = c.Call(t.Context(), kmsg.NewPtrMetadataRequest()) })
	first, err := p.receive()
	require.NoError(t, err)
	calls.Go(func() { _, _ = c.Call(t.Context(), kmsg.NewPtrMetadataRequest()) }) // written before the throttle is known
	_, err = p.receive()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return c.OldestWait() > time.Millisecond }, 20*time.Second, time.Millisecond)
	require.NoError(t, p.reply(first, func(r kmsg.Response) {
		if m, ok := r.(*kmsg.MetadataResponse); ok {
			m.ThrottleMillis = 1 << 30
		}
	}))
	require.Eventually(t, func() bool { return c.Throttled() > 0 }, 20*time.Second, time.Millisecond)
	require.Never(t, func() bool { return c.OldestWait() > time.Millisecond }, 100*time.Millisecond, 10*time.Millisecond)
	require.Positive(t, c.OldestWait(), "it is unanswered")
}

func TestThrottleEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	go p.serve(func(r kmsg.Response) {
		if m, ok := r.(*kmsg.MetadataResponse); ok {
			m.ThrottleMillis = 1 << 30
		}
	})
	_, err := c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, kmsg.NewPtrMetadataRequest())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	failed := make(chan error, 1)
	go func() {
		failed <- c.Produce(oneBatch(nil), func(*kmsg.ProduceResponse, error) { t.Error("done of what was not queued") })
	}()
	c.Close()
	require.ErrorIs(t, <-failed, ErrClosed)
}

func TestCallThatIsGivenUpLeavesTheConnectionUsable(t *testing.T) {
	t.Parallel()
	c, p := connected(t, DefaultConfig())
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, kmsg.NewPtrMetadataRequest())
		got <- err
	}()
	f, err := p.receive()
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
	require.NoError(t, p.reply(f, nil))
	go p.serve(nil)
	_, err = c.Call(t.Context(), kmsg.NewPtrMetadataRequest())
	require.NoError(t, err)
}

func TestProduceRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		req  *Produce
	}{
		{"acks 0", &Produce{Batches: []ProduceBatch{{Topic: "t"}}}},
		{"nothing", &Produce{Acks: -1}},
		{"no topic", &Produce{Acks: -1, Batches: []ProduceBatch{{}}}},
		{"long topic", &Produce{Acks: -1, Batches: []ProduceBatch{{Topic: string(make([]byte, 40_000))}}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, _ := connected(t, DefaultConfig())
			require.Error(t, c.Produce(row.req, func(*kmsg.ProduceResponse, error) { t.Error("done of what was not queued") }))
			require.NoError(t, c.Err())
		})
	}
}

func TestNegotiateFallsBackToVersionZero(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	other, err := l.Accept()
	require.NoError(t, err)
	defer other.Close()
	c := newConn(nc, 1, "", "id", DefaultConfig())
	defer c.Close()
	require.Equal(t, int16(-1), c.MaxVersion(keyFetch))
	p := &peer{Conn: other}
	p.in = newReader(other)
	go func() {
		for _, code := range []int16{35, 0} {
			f, err := p.receive()
			if err != nil {
				return
			}
			f.version = 0
			_ = p.reply(f, func(r kmsg.Response) {
				a := r.(*kmsg.ApiVersionsResponse)
				a.ErrorCode = code
				a.ApiKeys = []kmsg.ApiVersionsResponseApiKey{
					{ApiKey: keyProduce, MaxVersion: 5},
					{ApiKey: keyFetch, MinVersion: 30, MaxVersion: 40},
					{ApiKey: 3, MaxVersion: 99},
					{ApiKey: 999, MaxVersion: 1},
					{ApiKey: -3, MaxVersion: 1},
				}
			})
		}
	}()
	require.NoError(t, c.negotiate(t.Context()))
	require.Equal(t, int16(5), c.MaxVersion(keyProduce))
	require.Equal(t, int16(-1), c.MaxVersion(keyFetch), "no version in common")
	require.Equal(t, kmsg.NewPtrMetadataRequest().MaxVersion(), c.MaxVersion(3))
	require.Equal(t, int16(-1), c.MaxVersion(999))
	require.Equal(t, int16(-1), c.MaxVersion(-1))
}
