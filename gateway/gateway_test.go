package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// soon is for what must happen soon.
const soon = 30 * time.Second

// stand is a gateway at work, and what its clients dialed.
type stand struct {
	*Gateway

	reg    *prometheus.Registry
	front  string
	ports  []string     // addresses of the brokers' ports
	finish func() error // ends the gateway and waits for it

	mu     sync.Mutex
	dialed map[string]bool
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// open runs a gateway with so many ports for brokers.
func open(t *testing.T, upstream []string, ports int, adapt func(*Config)) *stand {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Upstream.Bootstrap, cfg.Advertise, cfg.DrainTimeout = upstream, "127.0.0.1", time.Second
	if adapt != nil {
		adapt(&cfg)
	}
	require.NoError(t, cfg.Validate())
	front, brokers := listen(t), make([]net.Listener, ports)
	for i := range brokers {
		brokers[i] = listen(t)
	}
	s := &stand{reg: prometheus.NewPedanticRegistry(), front: front.Addr().String(), dialed: map[string]bool{}}
	for _, l := range brokers {
		s.ports = append(s.ports, l.Addr().String())
	}
	s.Gateway = New(cfg, Deps{Log: hclog.NewNullLogger(), Reg: s.reg, Route: "gateway"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, front, brokers) }()
	s.finish = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { require.NoError(t, s.finish()) })
	return s
}

// client is one of Kafka that notes where it connects to.
func (s *stand) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.front), kgo.Dialer(s.dial)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func (s *stand) dial(ctx context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	s.dialed[address] = true
	s.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func fake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(6, "numbers")}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// produce sends numbers to all partitions.
func produce(t *testing.T, cl *kgo.Client, from, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var records []*kgo.Record
	for i := from; i < to; i++ {
		records = append(records, &kgo.Record{Topic: "numbers", Key: []byte(strconv.Itoa(i)), Value: []byte(strings.Repeat("x", 1000))})
	}
	require.NoError(t, cl.ProduceSync(ctx, records...).FirstErr())
}

// consume reads until it has so many.
func consume(t *testing.T, cl *kgo.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	seen := map[string]bool{}
	for len(seen) < n {
		fetched := cl.PollFetches(ctx)
		require.NoError(t, fetched.Err0())
		fetched.EachRecord(func(r *kgo.Record) { seen[string(r.Key)] = true })
	}
}

func TestClientsSeeOnlyTheGateway(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs()[:1], 3, nil)
	produce(t, s.client(t), 0, 3000)
	group := s.client(t, kgo.ConsumeTopics("numbers"), kgo.ConsumerGroup("readers"))
	consume(t, group, 3000)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, group.CommitUncommittedOffsets(ctx))
	adm := kadm.NewClient(s.client(t))
	groups, err := adm.ListGroups(ctx)
	require.NoError(t, err)
	require.Contains(t, groups.Groups(), "readers")
	described, err := adm.BrokerMetadata(ctx)
	require.NoError(t, err)
	require.Len(t, described.Brokers, 3)
	known := map[string]bool{s.front: true}
	for _, at := range s.ports {
		known[at] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, known, s.dialed)
	require.InDelta(t, 3, testutil.ToFloat64(s.metrics.brokers), 0)
	found, err := testutil.GatherAndLint(s.reg)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestRequestsWithoutAnswersPass(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs(), 3, nil)
	cl := s.client(t, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for i := range 20 { // each in a request of its own, between others on the same connections
		produce(t, cl, i, i+1)
		_, err := kadm.NewClient(cl).ListTopics(t.Context())
		require.NoError(t, err)
	}
	consume(t, s.client(t, kgo.ConsumeTopics("numbers")), 20)
}

func TestBrokersAreToldApartByName(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Files(t, "gateway")
	s := open(t, fake(t).ListenAddrs(), 0, func(c *Config) {
		c.Advertise, c.Names, c.TLS = "kafka.test", "b{id}.kafka.test", TLS{CertFile: cert, KeyFile: key}
	})
	pool := x509.NewCertPool()
	text, err := os.ReadFile(ca.File)
	require.NoError(t, err)
	require.True(t, pool.AppendCertsFromPEM(text))
	asked := sync.Map{}
	cl := s.client(t, kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		asked.Store(host, true)
		return (&tls.Dialer{Config: &tls.Config{
			ServerName: host, InsecureSkipVerify: true,
			VerifyConnection: func(state tls.ConnectionState) error { // the test's certificate is for localhost
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool})
				return err
			},
		}}).DialContext(ctx, network, s.front)
	}), kgo.ConsumeTopics("numbers"))
	produce(t, cl, 0, 100)
	consume(t, cl, 100)
	for id := range 3 {
		_, err := cl.Broker(id).Request(t.Context(), kmsg.NewPtrMetadataRequest()) // not each broker leads one of the partitions
		require.NoError(t, err)
		_, ok := asked.Load(fmt.Sprintf("b%d.kafka.test", id))
		require.True(t, ok, id)
	}
}

// TestClientsAuthenticateAtTheBrokers: the gateway speaks TLS to them, and has no account.
func TestClientsAuthenticateAtTheBrokers(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	pair, err := tls.LoadX509KeyPair(ca.Files(t, "broker"))
	require.NoError(t, err)
	c := fake(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}), kfake.EnableSASL(), kfake.Superuser("PLAIN", "ann", "secret"))
	s := open(t, c.ListenAddrs()[:1], 3, func(c *Config) { c.Upstream.TLS.CAFile = ca.File })
	cl := s.client(t, kgo.ConsumeTopics("numbers"), kgo.SASL(plain.Auth{User: "ann", Pass: "secret"}.AsMechanism()))
	produce(t, cl, 0, 100)
	consume(t, cl, 100)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	wrong := s.client(t, kgo.SASL(plain.Auth{User: "ann", Pass: "guessed"}.AsMechanism()), kgo.RetryTimeout(time.Second))
	require.Error(t, wrong.Ping(ctx)) // this broker just hangs up
}

// call sends a request by hand and reads what comes.
func call(t *testing.T, conn net.Conn, req kmsg.Request, correlation int32) (body []byte, err error) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
	_, err = conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, correlation))
	require.NoError(t, err)
	var head [8]byte
	if _, err = io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	require.Equal(t, uint32(correlation), binary.BigEndian.Uint32(head[4:]))
	body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
	_, err = io.ReadFull(conn, body)
	return body, err
}

func (s *stand) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.front)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestVersionsAreLimitedToWhatPasses(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs(), 3, nil)
	conn := s.connect(t)
	body, err := call(t, conn, &kmsg.ApiVersionsRequest{Version: 3, ClientSoftwareName: "test", ClientSoftwareVersion: "1"}, 7)
	require.NoError(t, err)
	resp := kmsg.ApiVersionsResponse{Version: 3}
	require.NoError(t, resp.ReadFrom(body))
	require.Zero(t, resp.ErrorCode)
	most := map[int16]int16{}
	for _, k := range resp.ApiKeys {
		most[k.ApiKey] = k.MaxVersion
	}
	require.Equal(t, int16(15), most[keyFetch])
	require.NotContains(t, most, int16(kmsg.Vote))
	// A client from the future is told what there is, and asks again.
	newer := &kmsg.ApiVersionsRequest{Version: 9}
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, newer, 8)
	_, err = conn.Write(append(frame[:len(frame):len(frame)], frame...))
	require.NoError(t, err)
	for range 2 {
		var head [8]byte
		_, err = io.ReadFull(conn, head[:])
		require.NoError(t, err)
		body = make([]byte, binary.BigEndian.Uint32(head[:])-4)
		_, err = io.ReadFull(conn, body)
		require.NoError(t, err)
		resp = kmsg.ApiVersionsResponse{}
		require.NoError(t, resp.ReadFrom(body))
		require.Equal(t, int16(unsupportedVersion), resp.ErrorCode)
		require.NotEmpty(t, resp.ApiKeys)
	}
}

func TestWhatMayNotPassEndsItsConnection(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs(), 3, func(c *Config) { c.MaxRequest = 1 << 20 })
	for name, bytes := range map[string][]byte{
		"a newer Fetch":     kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.FetchRequest{Version: 16}, 1),
		"a broker's":        kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.VoteRequest{}, 1),
		"a web browser's":   []byte("GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"),
		"TLS":               {0x16, 3, 1, 0, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"too large":         append(binary.BigEndian.AppendUint32(nil, 1<<20+1), make([]byte, 20)...),
		"too short":         append(binary.BigEndian.AppendUint32(nil, 9), make([]byte, 20)...),
		"negative":          append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 20)...),
		"Produce of zeroes": append(binary.BigEndian.AppendUint32(nil, 10), []byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0}...),
	} {
		conn := s.connect(t)
		require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
		_, err := conn.Write(bytes)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, name)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, name)
	}
	require.Eventually(t, func() bool { return testutil.ToFloat64(s.metrics.refused) == 8 }, soon, time.Millisecond)
	produce(t, s.client(t), 0, 10) // others are served
}

// TestWhoSendsSlowlyOrNothingIsDisconnected, and others are served.
func TestWhoSendsSlowlyOrNothingIsDisconnected(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs(), 3, func(c *Config) { c.FrameTimeout, c.IdleTimeout = 100*time.Millisecond, time.Second })
	for name, bytes := range map[string][]byte{
		"nothing": nil, "half a length": {0, 0}, "half a head": {0, 0, 1, 0, 0, 3},
		"half a request": append([]byte{0, 0, 1, 0, 0, 3, 0, 4}, make([]byte, 40)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := s.connect(t)
			require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
			_, err := conn.Write(bytes)
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			produce(t, s.client(t), 0, 1)
		})
	}
}

func TestAnAddressHasItsQuotaOverAllPorts(t *testing.T) {
	t.Parallel()
	s := open(t, fake(t).ListenAddrs(), 3, func(c *Config) { c.Connections.PerAddress = 2 })
	first := s.connect(t)
	_, err := call(t, first, &kmsg.ApiVersionsRequest{}, 1)
	require.NoError(t, err)
	second, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.ports[0])
	require.NoError(t, err)
	defer second.Close()
	_, err = call(t, second, &kmsg.ApiVersionsRequest{}, 1)
	require.NoError(t, err)
	third := s.connect(t)
	require.NoError(t, third.SetDeadline(time.Now().Add(soon)))
	_, err = third.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = call(t, first, &kmsg.ApiVersionsRequest{}, 2)
	require.NoError(t, err)
}

// TestWhoIsConnectedToTheWrongBrokerIsCutOff: a client that knows a broker's port from before the gateway's start comes before the gateway knows
// the broker.
func TestWhoIsConnectedToTheWrongBrokerIsCutOff(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := open(t, c.ListenAddrs()[:1], 3, nil) // the bootstrap is broker 0
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.ports[1])
	require.NoError(t, err)
	defer conn.Close()
	_, err = call(t, conn, &kmsg.ApiVersionsRequest{}, 1)
	require.NoError(t, err)
	front := s.connect(t)
	_, err = call(t, front, &kmsg.MetadataRequest{Version: 4}, 1) // names broker 1
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = call(t, front, &kmsg.MetadataRequest{Version: 4}, 2) // who is right stays
	require.NoError(t, err)
}

func TestWhatIsInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := open(t, c.ListenAddrs()[:1], 3, func(c *Config) { c.DrainTimeout = soon })
	asked, answer := make(chan struct{}), make(chan struct{})
	c.ControlKey(keyMetadata, func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		<-answer
		return nil, nil, false
	})
	conn, idle := s.connect(t), s.connect(t)
	_, err := call(t, idle, &kmsg.ApiVersionsRequest{}, 1)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
	_, err = conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, &kmsg.MetadataRequest{Version: 4}, 1))
	require.NoError(t, err)
	<-asked
	ended := make(chan error, 1)
	go func() { ended <- s.finish() }()
	require.NoError(t, idle.SetDeadline(time.Now().Add(soon)))
	_, err = idle.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	close(answer)
	_, err = io.ReadFull(conn, make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, <-ended)
}
