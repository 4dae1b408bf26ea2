package peers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	patience = 3 * time.Minute // from the start of a mirror until it has copied what it will: on a busy machine MirrorMaker 2 needs more than one to begin
	often    = 100 * time.Millisecond
)

// lab is the two clusters, one broker each. Behind the proxies they take certificates alone and look at rights; at their plain doors everybody may
// do everything.
type lab struct {
	certs            string
	source, target   *kafkatest.Cluster
	trusted, unknown *testkit.Authority
	began            time.Time // base of all timestamps
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{certs: t.TempDir(), trusted: testkit.NewAuthority(t), unknown: testkit.NewAuthority(t), began: time.Now().Add(-time.Hour).Truncate(time.Second)}
	for name, ca := range map[string]*testkit.Authority{"broker": l.trusted, "stranger": l.unknown, "reader": l.trusted} {
		subject := strings.Replace(name, "stranger", "broker", 1) // which a broker does not let its certificate change
		ca.Issue(t, subject, l.path(name+".crt"), l.path(name+".key"))
		var both []byte
		for _, part := range []string{".key", ".crt"} {
			text, err := os.ReadFile(l.path(name + part))
			require.NoError(t, err)
			both = append(both, text...)
		}
		require.NoError(t, os.WriteFile(l.path(name), both, 0o600))
	}
	open := func() *kafkatest.Cluster {
		return kafkatest.Start(t, kafkatest.Options{Version: version, Proxy: true, Config: map[string]string{
			"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:SSL,CONTROLLER:PLAINTEXT", "ssl.client.auth": "required",
			"ssl.keystore.type": "PEM", "ssl.keystore.location": l.path("broker"), "ssl.truststore.type": "PEM", "ssl.truststore.location": l.trusted.File,
			"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS",
		}})
	}
	l.source, l.target = open(), open()
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.certs, name) }

// site is one mirror's turn at one case.
type site struct {
	*lab
	*mirror

	result
}

// topic is a name that no other turn uses.
func (s *site) topic(name string) string { return s.alias + "-" + name }

// create makes topics on the source.
func (s *site) create(t *testing.T, partitions int, configs map[string]string, names ...string) {
	t.Helper()
	for _, name := range names {
		s.source.CreateTopic(t, s.topic(name), partitions, configs)
	}
}

// produce writes the records with numbers first to first+n-1: key k<i%100>, a header h, 100 bytes, spread by key, timestamps a millisecond apart.
func (s *site) produce(t *testing.T, topic string, first, n int, opts ...kgo.Opt) {
	t.Helper()
	cl := s.source.Client(t, append([]kgo.Opt{kgo.DefaultProduceTopic(s.topic(topic)), kgo.MaxProduceRequestsInflightPerBroker(1)}, opts...)...)
	require.NoError(t, cl.ProduceSync(t.Context(), s.records(first, n)...).FirstErr())
}

func (s *site) records(first, n int) (records []*kgo.Record) {
	for i := first; i < first+n; i++ {
		records = append(records, &kgo.Record{
			Key: fmt.Appendf(nil, "k%d", i%100), Value: fmt.Appendf(nil, "%08d%s", i, strings.Repeat("v", 92)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: fmt.Append(nil, i)}}, Timestamp: s.began.Add(time.Duration(i) * time.Millisecond),
		})
	}
	return records
}

// copied is how many offsets the target's log of a topic has, over all partitions; 0 before it is there.
func (s *site) copied(t *testing.T, topic string) (sum int64) {
	t.Helper()
	return logEnds(t, s.target, s.topic(topic))
}

func logEnds(t *testing.T, k *kafkatest.Cluster, topic string) (sum int64) {
	t.Helper()
	cl := k.Client(t)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	ends.Each(func(o kadm.ListedOffset) { sum += max(o.Offset, 0) })
	return sum
}

// settle waits until the copy of a topic has so many offsets, and a little longer, or until patience is over. It says whether that came about.
func (s *site) settle(t *testing.T, topic string, least int64) bool {
	t.Helper()
	err := kafkad.Poll(t.Context(), patience, func(context.Context) error {
		if n := s.copied(t, topic); n < least {
			return fmt.Errorf("%d of %d", n, least)
		}
		return nil
	})
	t.Logf("%s: %d of %d offsets", topic, s.copied(t, topic), least)
	pass(t, 3*time.Second) // in which too much could come
	return err == nil
}

// quiet waits until nothing has come to the copy of a topic for 10 s.
func (s *site) quiet(t *testing.T, topic string) {
	t.Helper()
	for s.grows(t, topic, 10*time.Second) {
	}
}

// within waits until something is so, and says whether it came about in time.
func within(t *testing.T, d time.Duration, ask func() bool) bool {
	t.Helper()
	for end := time.Now().Add(d); !ask(); pass(t, often) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// pass lets time pass in which something unwanted could happen.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// compare adds what a topic's copy differs from its source in to the result, by little memory: where all that could be too much is a further copy.
func (s *site) compare(t *testing.T, topic string) {
	t.Helper()
	d := kafkatest.Compare(t, s.source.Bootstrap(), s.target.Bootstrap(), s.topic(topic), s.topic(topic))
	t.Log(topic, d)
	got := tally{Loss: d.Lost, Dup: d.Extra, Disorder: d.Disordered}
	s.Tally = s.Tally.plus(got)
	s.must(d.Equal(), "the copy is not equal")
}

// equal adds what a topic's copy differs from its source in to the result.
func (s *site) equal(t *testing.T, topic string) {
	t.Helper()
	s.weigh(t, topic, texts(kafkatest.Records(t, s.source.Bootstrap(), s.topic(topic)), true), true)
}

// weigh adds what a topic's copy differs from what it should hold in to the result.
func (s *site) weigh(t *testing.T, topic string, want [][]string, timestamps bool) {
	t.Helper()
	got := texts(kafkatest.Records(t, s.target.Bootstrap(), s.topic(topic)), timestamps)
	c := countAll(want, got)
	t.Logf("%s: %+v", topic, c)
	s.Tally = s.Tally.plus(c)
	s.must(c == tally{}, "the copy is not equal")
}

// must notes a flaw if something is not so.
func (s *site) must(ok bool, flaw string, args ...any) {
	flaw = fmt.Sprintf(flaw, args...)
	for _, f := range s.Flaws {
		ok = ok || f == flaw
	}
	if !ok {
		s.Flaws = append(s.Flaws, flaw)
	}
}

func (s *site) note(text string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(text, args...)) }
