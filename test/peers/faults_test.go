package peers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// tooLarge is C7: a record that is small only when compressed, one that is too large for the target, ten small ones, and a topic beside them.
func tooLarge(t *testing.T, s *site) {
	t.Helper()
	s.create(t, 1, map[string]string{"max.message.bytes": "5000000"}, "t")
	s.create(t, 1, nil, "u")
	s.target.CreateTopic(t, s.topic("t"), 1, map[string]string{"max.message.bytes": "1000000"})
	noise := make([]byte, 2<<20)
	_, err := rand.NewChaCha8([32]byte{7}).Read(noise)
	require.NoError(t, err)
	cl := s.source.Client(t, kgo.DefaultProduceTopic(s.topic("t")), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(4_900_000))
	for _, value := range [][]byte{make([]byte, 2<<20), noise} {
		require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Value: value}).FirstErr())
	}
	s.produce(t, "t", 0, 10)
	s.produce(t, "u", 0, 1000)
	s.start(t)
	s.settle(t, "u", 1000)
	if s.kind == causeway {
		within(t, 30*time.Second, func() bool { return s.event(t, "partition_halted", s.topic("t")) != "" })
		s.Event = s.event(t, "partition_halted", s.topic("t"))
	} else {
		within(t, 30*time.Second, func() bool { return s.told(tooLargeLine) != "" })
		pass(t, 10*time.Second)
		s.Event = s.told(`(?i)(?:` + s.topic("t") + `\b.*\boffset\W{1,3}1\b|\boffset\W{1,3}1\b.*` + s.topic("t") + `\b)`)
		s.note("tasks by JMX: %s", s.tasks(t))
		s.note("the log: %s", s.told(tooLargeLine))
	}
	s.must(s.Event != "", "nothing names the record that is too large")
	s.produce(t, "u", 1000, 100)
	s.must(s.settle(t, "u", 1100), "the topic beside it stands still")
	s.equal(t, "u")
	s.tooLargeCopied(t)
}

// tooLargeCopied judges the copy of C7's topic.
func (s *site) tooLargeCopied(t *testing.T) {
	t.Helper()
	got, small, zeros := kafkatest.Records(t, s.target.Bootstrap(), s.topic("t"))[0], 0, false
	for _, r := range got {
		if len(r.Value) == 100 {
			small++
		}
		zeros = zeros || len(r.Value) > 1<<20 && bytes.Count(r.Value, []byte{0}) == len(r.Value)
	}
	if !zeros {
		s.Tally.Loss++
	}
	s.must(zeros, "the record of zeros is not on the target")
	s.must(small == 10 || small == 0, "%d of 10 small records", small)
	s.note("of the 10 small records behind it %d are copied", small)
	configs, err := kadm.NewClient(s.target.Client(t)).DescribeTopicConfigs(t.Context(), s.topic("t"))
	require.NoError(t, err)
	for _, c := range configs[0].Configs {
		if c.Key == "max.message.bytes" && c.MaybeValue() != "1000000" {
			s.note("the target topic's `max.message.bytes` was set to %s", c.MaybeValue())
		}
	}
}

const tooLargeLine = `(?:ERROR|WARN).*(?:RecordTooLarge|too large|larger than|failed to send record)`

// flow is a producer that writes all the time.
type flow struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// flow writes numbered records, so many a second, until the flow is ended, and with the test.
func (s *site) flow(t *testing.T, topic string, rate int) *flow {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &flow{stop: stop, ended: make(chan struct{})}
	go func() { // owned by the flow: end and the cleanup wait for it
		defer close(f.ended)
		for n := 0; ctx.Err() == nil; n++ {
			opts := kafkatest.LoadOptions{Topic: s.topic(topic), First: n * rate, Records: rate, Rate: rate, ValueBytes: 100, Keys: 100}
			if _, err := kafkatest.Generate(context.WithoutCancel(ctx), s.source.Bootstrap(), opts); err != nil {
				t.Error("write:", err)
				return
			}
		}
	}()
	t.Cleanup(f.end)
	return f
}

// end ends the flow, and waits until what it began is written.
func (f *flow) end() {
	f.stop()
	<-f.ended
}

// watch returns a function that says how long at most nothing has come to the copy of a topic since.
func (s *site) watch(t *testing.T, topic string) (longest func() time.Duration) {
	t.Helper()
	done, ended := make(chan struct{}), make(chan struct{})
	var most time.Duration
	admin, name := kadm.NewClient(s.target.Client(t)), s.topic(topic)
	sum := func() (n int64) {
		ends, err := admin.ListEndOffsets(t.Context(), name)
		if err == nil {
			ends.Each(func(o kadm.ListedOffset) { n += max(o.Offset, 0) })
		}
		return n
	}
	go func() { // owned by the function that is returned, and by the cleanup
		defer close(ended)
		last, since := sum(), time.Now()
		for {
			select {
			case <-done:
				return
			case <-time.After(often):
			}
			if n := sum(); n > last {
				last, since = n, time.Now()
			}
			most = max(most, time.Since(since))
		}
	}()
	end := sync.OnceFunc(func() {
		close(done)
		<-ended
	})
	t.Cleanup(end)
	return func() time.Duration {
		end()
		return most
	}
}

// grows waits until the copy of a topic has more than it has.
func (s *site) grows(t *testing.T, topic string, d time.Duration) bool {
	t.Helper()
	from := s.copied(t, topic)
	return within(t, d, func() bool { return s.copied(t, topic) > from })
}

// restarted is C11: under load the mirror is ended again and again, first by SIGTERM, then by SIGKILL.
func restarted(t *testing.T, s *site) {
	t.Helper()
	const rate = 5000
	s.NoEvent = true
	s.create(t, 8, nil, "t")
	s.start(t)
	f := s.flow(t, "t", rate)
	require.True(t, s.grows(t, "t", patience))
	longest := s.watch(t, "t")
	for n := range 2 * *rounds {
		pass(t, 3*time.Second)
		if n < *rounds {
			s.stop(t)
		} else {
			require.NoError(t, s.run.Kill())
		}
		s.start(t)
		require.True(t, s.grows(t, "t", patience), "%s does not go on", s.kind)
	}
	s.Pause = longest().Seconds()
	s.note("%d times SIGTERM, then %d times SIGKILL", *rounds, *rounds)
	f.end()
	s.settle(t, "t", logEnds(t, s.source, s.topic("t")))
	s.quiet(t, "t") // markers are no records
	s.compare(t, "t")
}

// standstill is C28: a right is taken, the target shows a certificate of a stranger, packets to the source are dropped.
func standstill(t *testing.T, s *site) {
	t.Helper()
	for i, k := range []*kafkatest.Cluster{s.source, s.target} {
		s.ends[i] = end{
			bootstrap: k.ProxyBootstrap()[0], ca: s.trusted.File, cert: s.path("reader.crt"), keyFile: s.path("reader.key"), store: s.path("reader"),
		}
		everything := kadm.NewACLs().Topics("*").Groups("*").TransactionalIDs("*").Clusters().Allow("User:CN=reader").Operations(kadm.OpAll)
		s.acl(t, k, everything)
	}
	s.create(t, 1, nil, "t")
	s.create(t, 1, nil, "u")
	ft, fu := s.flow(t, "t", 100), s.flow(t, "u", 100)
	s.start(t)
	require.True(t, s.grows(t, "t", patience))
	require.True(t, s.grows(t, "u", patience))

	denied := kadm.NewACLs().Topics(s.topic("t")).Deny("User:CN=reader").Operations(kadm.OpRead)
	s.trouble(t, fault{"READ revoked", []string{s.topic("t")}, `(?i)not authorized|AUTHORIZATION`, func() { s.acl(t, s.source, denied) }, func() {
		gone, err := kadm.NewClient(s.source.Client(t)).DeleteACLs(t.Context(),
			kadm.NewACLs().Topics(s.topic("t")).ResourcePatternType(kadm.ACLPatternLiteral).Deny("User:CN=reader").DenyHosts().Operations(kadm.OpRead))
		require.NoError(t, err)
		require.Len(t, gone[0].Deleted, 1)
	}})
	s.trouble(t, fault{
		"unknown CA", nil, `(?i)certificate|SSL handshake failed|PKIX`, func() { s.show(t, "stranger") }, func() { s.show(t, "broker") },
	})
	source := s.source.Broker(0).Proxy()
	s.trouble(t, fault{
		"packets dropped", nil, `(?i)timed? ?out|disconnect|unreachable|no answer|broker 0`, source.Blackhole, func() { require.NoError(t, source.Heal()) },
	})
	ft.end()
	fu.end()
	for _, topic := range []string{"t", "u"} {
		s.settle(t, topic, logEnds(t, s.source, s.topic(topic)))
		s.equal(t, topic)
	}
}

// fault is a trouble that begins and ends.
type fault struct {
	name          string
	halted        []string // topics that may stand still alone
	reason        string   // finds it in a log
	begin, finish func()
}

// trouble makes trouble for 40 s and ends it. Within 30 s the mirror's state must say so, with the reason; and it must recover by itself.
func (s *site) trouble(t *testing.T, f fault) {
	t.Helper()
	s.mark = len(s.run.Log())
	f.begin()
	began := time.Now()
	flagged := within(t, 30*time.Second, func() bool { return s.unwell(t, f.halted) })
	took := time.Since(began)
	said := s.told(f.reason)
	pass(t, time.Until(began.Add(40*time.Second)))
	f.finish()
	well := within(t, 60*time.Second, func() bool { return !s.unwell(t, f.halted) }) && s.grows(t, "t", 60*time.Second)
	s.must(flagged, "%s: the state does not say so within 30 s", f.name)
	if flagged {
		s.note("%s: the state says so after %.0f s", f.name, took.Seconds())
	}
	if said != "" && s.Event == "" {
		s.Event = said
	}
	s.must(said != "" || flagged, "%s: the log does not tell the reason", f.name)
	s.must(well, "%s: it does not go on by itself", f.name)
	if !well {
		s.note("%s: started again by hand", f.name)
		_ = s.run.Kill() // it may have ended
		s.start(t)
		require.True(t, s.grows(t, "t", patience))
	}
}

// unwell says whether the mirror's state tells of trouble: Causeway's readiness, or partitions of these topics that it lists as halted; that one
// of MirrorMaker 2's tasks has failed, or its end.
func (s *site) unwell(t *testing.T, halted []string) bool {
	t.Helper()
	if s.kind == mirrorMaker {
		return !s.run.Running() || strings.Contains(s.tasks(t), "failed")
	}
	code, body := s.api(t, "/readyz")
	for _, topic := range halted {
		if bytes.Contains([]byte(body), []byte(`"`+topic+`-0"`)) {
			return true
		}
	}
	return code != http.StatusOK
}

func (*site) acl(t *testing.T, k *kafkatest.Cluster, b *kadm.ACLBuilder) {
	t.Helper()
	made, err := kadm.NewClient(k.Client(t)).CreateACLs(t.Context(), b.ResourcePatternType(kadm.ACLPatternLiteral))
	require.NoError(t, err)
	for _, m := range made {
		require.NoError(t, m.Err, m.ErrMessage)
	}
}

// show has the target's broker show another certificate, and then ends all connections.
func (s *site) show(t *testing.T, name string) {
	t.Helper()
	path, proxy := s.path(name), s.target.Broker(0).Proxy()
	changed, err := kadm.NewClient(s.target.Client(t)).AlterBrokerConfigs(t.Context(),
		[]kadm.AlterConfig{{Name: "listener.name.proxied.ssl.keystore.location", Value: &path}}, 0)
	require.NoError(t, err)
	require.NoError(t, changed[0].Err, changed[0].ErrMessage)
	pair, err := tls.LoadX509KeyPair(s.path(name+".crt"), s.path(name+".key"))
	require.NoError(t, err)
	require.True(t, within(t, 30*time.Second, func() bool { return bytes.Equal(shown(t, proxy.Addr()), pair.Certificate[0]) }), "the broker shows another")
	proxy.Cut()
}

// shown is the certificate that a server shows.
func shown(t *testing.T, address string) (der []byte) {
	t.Helper()
	look := func(all [][]byte, _ [][]*x509.Certificate) error {
		der = all[0]
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyPeerCertificate: look}
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return der
}
