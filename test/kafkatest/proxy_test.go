package kafkatest_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// echo returns a proxy before a server that sends back what it gets.
func echo(t *testing.T) *kafkatest.Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	})
	p, err := kafkatest.NewProxy(ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, ln.Close())
		wg.Wait()
	})
	return p
}

func dial(t *testing.T, p *kafkatest.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ping sends a byte and waits so long for its echo.
func ping(c net.Conn, within time.Duration) error {
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

func TestProxyDelaysWithoutLimitingThroughput(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dial(t, p)
	p.SetDelay(200 * time.Millisecond)
	began := time.Now()
	require.NoError(t, ping(c, time.Minute))
	require.GreaterOrEqual(t, time.Since(began), 400*time.Millisecond)

	// 32 MiB there and back in little more than one round trip: what is in flight isn't bounded by a window of 64 KiB.
	sent := bytes.Repeat([]byte("0123456789abcdef"), 2<<20)
	began = time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = c.Write(sent)
		_ = c.(*net.TCPConn).CloseWrite()
	})
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	got, err := io.ReadAll(c)
	wg.Wait()
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, got), "%d of %d bytes", len(got), len(sent))
	require.Less(t, time.Since(began), 20*time.Second)
}

func TestProxyCutResetsConnectionsAndServesNewOnes(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dial(t, p)
	require.NoError(t, ping(c, time.Minute))
	p.Cut()
	require.Error(t, ping(c, time.Minute))
	require.NoError(t, ping(dial(t, p), time.Minute))
}

func TestProxyBlackholeHoldsBytesUntilHealed(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dial(t, p)
	require.NoError(t, ping(c, time.Minute))
	p.Blackhole()
	var timeout net.Error
	require.ErrorAs(t, ping(c, 300*time.Millisecond), &timeout)
	require.True(t, timeout.Timeout())
	require.ErrorAs(t, ping(dial(t, p), 300*time.Millisecond), &timeout, "a new connection")
	require.NoError(t, p.Heal())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.ReadFull(c, make([]byte, 1)) // the echo that was held back
	require.NoError(t, err)
	require.NoError(t, ping(c, time.Minute))
}

func TestProxyHoldsAnswersAlone(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	p, err := kafkatest.NewProxy(ln.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	c := dial(t, p)
	s, err := ln.Accept()
	require.NoError(t, err)
	defer func() { _ = s.Close() }()

	p.HoldAnswers()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	require.NoError(t, s.SetDeadline(time.Now().Add(time.Minute)))
	_, err = c.Write([]byte("ask"))
	require.NoError(t, err)
	got := make([]byte, 3)
	_, err = io.ReadFull(s, got)
	require.NoError(t, err, "requests pass")
	require.Equal(t, "ask", string(got))
	_, err = s.Write([]byte("answer"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	var timeout net.Error
	_, err = c.Read(got)
	require.ErrorAs(t, err, &timeout, "answers don't")
	require.NoError(t, p.Heal())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	got = make([]byte, 6)
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, "answer", string(got))
}

func TestProxyRefusesUntilHealed(t *testing.T) {
	t.Parallel()
	p := echo(t)
	c := dial(t, p)
	require.NoError(t, ping(c, time.Minute))
	p.Refuse()
	require.Error(t, ping(c, time.Minute))
	_, err := net.Dial("tcp", p.Addr())
	require.Error(t, err)
	require.NoError(t, p.Heal())
	require.NoError(t, ping(dial(t, p), time.Minute))
}

func TestClientsStayBehindTheProxy(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka4, Proxy: true})
	c.CreateTopic(t, "t", 1, nil)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ProxyBootstrap()...))
	require.NoError(t, err)
	defer cl.Close()
	md, err := kadm.NewClient(cl).BrokerMetadata(t.Context())
	require.NoError(t, err)
	require.Len(t, md.Brokers, 1)
	require.Equal(t, c.Broker(0).Proxy().Addr(), fmt.Sprintf("%s:%d", md.Brokers[0].Host, md.Brokers[0].Port))

	produce(t, cl, "t", 0, 10)
	c.Broker(0).Proxy().SetDelay(100 * time.Millisecond)
	began := time.Now()
	produce(t, cl, "t", 10, 10)
	require.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
	c.Broker(0).Proxy().Cut()
	produce(t, cl, "t", 20, 10)
	consume(t, c, "t", 30)
}
