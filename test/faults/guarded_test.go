package faults_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// guarded is a broker that knows who asks, by certificate, and what he may do. The test itself comes through another door, where all is allowed.
// There is one replica of everything, two are to be in sync, and nobody gets a topic that he has not made.
type guarded struct {
	*kafkatest.Cluster

	dir       string
	old, next *testkit.Authority // both are trusted
	stranger  *testkit.Authority // by nobody
	admin     *kadm.Client
}

// reader and writer are the mirror's two names.
const (
	reader = "reader"
	writer = "writer"
)

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{dir: t.TempDir(), old: testkit.NewAuthority(t), next: testkit.NewAuthority(t), stranger: testkit.NewAuthority(t)}
	for name, ca := range map[string]*testkit.Authority{"old": g.old, "next": g.next, "stranger": g.stranger} {
		ca.Issue(t, "broker", g.path("crt"), g.path("key"))
		g.replace(t, g.path(name), g.path("key"), g.path("crt")) // one file: Kafka's form of a key store in PEM
	}
	g.replace(t, g.path("trusted"), g.old.File, g.next.File)
	g.Cluster = kafkatest.Start(t, kafkatest.Options{Proxy: true, Heap: "256m", Config: map[string]string{
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:SSL,CONTROLLER:PLAINTEXT", "ssl.client.auth": "required",
		"ssl.keystore.type": "PEM", "ssl.keystore.location": g.path("old"), "ssl.truststore.type": "PEM", "ssl.truststore.location": g.path("trusted"),
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:ANONYMOUS", "min.insync.replicas": "2",
	}})
	g.admin = kadm.NewClient(g.Client(t))
	g.allow(t, kadm.NewACLs().Topics("*").Allow(principal(reader)).Operations(kadm.OpRead, kadm.OpDescribe))
	g.allow(t, kadm.NewACLs().Topics("*").Allow(principal(writer)).
		Operations(kadm.OpWrite, kadm.OpRead, kadm.OpDescribe, kadm.OpDescribeConfigs, kadm.OpCreate, kadm.OpAlter))
	g.allow(t, kadm.NewACLs().Clusters().Allow(principal(writer)).Operations(kadm.OpDescribeConfigs))
	return g
}

func principal(name string) string { return "User:CN=" + name }

func (g *guarded) path(name string) string { return filepath.Join(g.dir, name) }

// replace makes one file of others, whole.
func (*guarded) replace(t *testing.T, file string, of ...string) {
	t.Helper()
	var all []byte
	for _, name := range of {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, text...)
	}
	require.NoError(t, os.WriteFile(file+".new", all, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// identify gives the mirror's two names new certificates, and returns when they end.
func (g *guarded) identify(t *testing.T, ca *testkit.Authority, life time.Duration) (end time.Time) {
	t.Helper()
	for _, name := range []string{reader, writer} {
		end = ca.IssueFor(t, life, name, g.path("crt"), g.path("key")).NotAfter
		g.replace(t, g.path(name+".key"), g.path("key"))
		g.replace(t, g.path(name+".crt"), g.path("crt"))
	}
	return end
}

// show has the broker show another certificate to connections that come from now on, which all are.
func (g *guarded) show(t *testing.T, name string) {
	t.Helper()
	path := g.path(name)
	changed, err := g.admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "listener.name.proxied.ssl.keystore.location", Value: &path}}, 0)
	require.NoError(t, err)
	require.NoError(t, changed[0].Err, changed[0].ErrMessage)
	g.Broker(0).Proxy().Cut()
}

func (g *guarded) allow(t *testing.T, b *kadm.ACLBuilder) {
	t.Helper()
	made, err := g.admin.CreateACLs(t.Context(), b.ResourcePatternType(kadm.ACLPatternLiteral))
	require.NoError(t, err)
	for _, m := range made {
		require.NoError(t, m.Err, m.ErrMessage)
	}
}

// denied is what one name may not do with one topic.
func denied(name, topic string, op kadm.ACLOperation) *kadm.ACLBuilder {
	return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).Deny(principal(name)).DenyHosts().Operations(op)
}

func (g *guarded) deny(t *testing.T, name, topic string, op kadm.ACLOperation) {
	t.Helper()
	g.allow(t, kadm.NewACLs().Topics(topic).Deny(principal(name)).Operations(op))
}

func (g *guarded) grant(t *testing.T, name, topic string, op kadm.ACLOperation) {
	t.Helper()
	gone, err := g.admin.DeleteACLs(t.Context(), denied(name, topic, op))
	require.NoError(t, err)
	require.NoError(t, gone[0].Err, gone[0].ErrMessage)
	require.Len(t, gone[0].Deleted, 1)
}

// config is the mirror's file.
func (g *guarded) config(t *testing.T, topics string) string {
	t.Helper()
	end := func(name string) string {
		return fmt.Sprintf("{name: %s, bootstrap: [%s], tls: {ca_file: %s, cert_file: %s, key_file: %s}}",
			name, g.ProxyBootstrap()[0], g.path("ca"), g.path(name+".crt"), g.path(name+".key"))
	}
	path := g.path("causeway.yaml")
	text := fmt.Sprintf("route:\n  source: %s\n  target: %s\n  topics: {include: [%s], rename: \"copy.{topic}\"}\n", end(reader), end(writer), topics)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// awaitHealth waits until /readyz has the status, and all of the words in its body.
func (m *mirrorer) awaitHealth(t *testing.T, within time.Duration, status int, words ...string) {
	t.Helper()
	code, body, began := 0, "", time.Now()
	require.Eventually(t, func() bool {
		code, body = m.health(t)
		for _, word := range words {
			if !strings.Contains(body, word) {
				return false
			}
		}
		return code == status
	}, within, 50*time.Millisecond, "readyz is not %d with %q", status, words)
	t.Logf("after %v: %d %s", time.Since(began).Round(10*time.Millisecond), code, strings.TrimSpace(body))
}

// longestPause watches the records of a topic while something is done, and returns the longest time in which none came.
func longestPause(t *testing.T, k *kafkatest.Cluster, topic string, do func()) (longest time.Duration) {
	t.Helper()
	cl := k.Client(t)
	admin, done, ended := kadm.NewClient(cl), make(chan struct{}), make(chan struct{})
	go func() { // owned by this function, which waits for it
		defer close(ended)
		last, since := int64(-1), time.Now()
		for {
			ends, err := admin.ListEndOffsets(t.Context(), topic)
			sum, now := int64(0), time.Now()
			ends.Each(func(o kadm.ListedOffset) { sum += max(o.Offset, 0) })
			longest = max(longest, now.Sub(since))
			if err == nil && sum > last {
				last, since = sum, now
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	stop := sync.OnceFunc(func() {
		close(done)
		<-ended
	})
	defer stop()
	do()
	stop()
	return longest
}

// TestGuardedClusters mirrors between clusters with certificates and rights, and has both change while records flow. The process is never started
// again, and nobody helps it.
func TestGuardedClusters(t *testing.T) { //nolint:tparallel // its subtests share one mirror
	t.Parallel()
	kafkatest.Require(t)
	g := newGuarded(t)
	topics := []string{"orders", "payments", "clicks"}
	feeds := map[string]*feed{}
	for _, topic := range topics {
		g.CreateTopic(t, topic, 2, nil)
		feeds[topic] = feedTurns(t, g.Bootstrap(), func(turn int) kafkatest.LoadOptions {
			return kafkatest.LoadOptions{Topic: topic, First: turn * 200, Records: 200, Rate: 100}
		})
	}
	g.replace(t, g.path("ca"), g.old.File)
	g.identify(t, g.old, time.Hour)
	m := newMirrorer(t, "mirror", "--config", g.config(t, strings.Join(topics, ", ")), "--commit-interval", "300ms")
	m.start(t)
	for _, topic := range topics {
		m.caughtUp(t, topic)
	}

	t.Run("C20 source rights for reading alone, usable target topics", func(t *testing.T) {
		all, err := g.admin.ListTopics(t.Context(), "copy.orders", "copy.payments", "copy.clicks")
		require.NoError(t, err)
		for _, topic := range all {
			require.NoError(t, topic.Err)
			require.Len(t, topic.Partitions, 2)
			require.Len(t, topic.Partitions[0].Replicas, 1)
		}
		require.NotRegexp(t, deniedWrite(reader), g.Broker(0).Log())
	})
	t.Run("C26 certificates are replaced and expire", func(t *testing.T) {
		pause := longestPause(t, g.Cluster, "copy.orders", func() {
			proxy := g.Broker(0).Proxy()
			end := g.identify(t, g.old, 8*time.Second)
			proxy.Cut()
			m.awaitCertificates(t, end)
			fresh := g.identify(t, g.next, time.Hour)
			proxy.Cut()
			m.awaitCertificates(t, fresh)
			g.replace(t, g.path("ca"), g.old.File, g.next.File)
			g.show(t, "next")
			pass(t, time.Second)
			g.replace(t, g.path("ca"), g.next.File)
			pass(t, time.Until(end))
			proxy.Cut()
			pass(t, 2*time.Second)
		})
		t.Logf("longest pause %v", pause)
		require.Less(t, pause, 5*time.Second)
	})
	t.Run("C8 C28 rights are revoked and granted again", func(t *testing.T) {
		g.deny(t, writer, "copy.payments", kadm.OpWrite)
		g.deny(t, reader, "orders", kadm.OpRead)
		m.awaitHealth(t, 30*time.Second, http.StatusOK, `"orders-0"`, `"orders-1"`, `"payments-0"`, `"payments-1"`)
		_, body := get(t, m.api(t)+"/api/v1/partitions?limit=100")
		require.Len(t, regexp.MustCompile(`"reason":"[^"]*TOPIC_AUTHORIZATION_FAILED`).FindAllString(body, -1), 4)
		grows(t, g.Cluster, "copy.clicks")
		require.Regexp(t, deniedWrite(writer), g.Broker(0).Log(), "it does not tell what it denies: what it did not tell of the source proves nothing")
		g.grant(t, writer, "copy.payments", kadm.OpWrite)
		g.grant(t, reader, "orders", kadm.OpRead)
		m.awaitHealth(t, 15*time.Second, http.StatusOK, `"halted":[]`)
	})
	t.Run("killed, and without the right to ask the target what it has", func(t *testing.T) {
		g.deny(t, writer, "copy.clicks", kadm.OpRead)
		m.kill(t)
		m.start(t)
		m.awaitHealth(t, 30*time.Second, http.StatusOK, `"clicks-0"`, `"clicks-1"`)
		_, body := get(t, m.api(t)+"/api/v1/partitions?limit=100")
		require.Len(t, regexp.MustCompile(`"reason":"[^"]*READ on the topic is needed`).FindAllString(body, -1), 2)
		grows(t, g.Cluster, "copy.orders")
		g.grant(t, writer, "copy.clicks", kadm.OpRead)
		m.awaitHealth(t, 15*time.Second, http.StatusOK, `"halted":[]`)
		_, body = get(t, m.api(t)+"/api/v1/events")
		require.NotContains(t, body, "duplicates_possible")
	})
	t.Run("C28 target with a certificate of an unknown authority", func(t *testing.T) {
		g.show(t, "stranger")
		m.awaitHealth(t, 30*time.Second, http.StatusServiceUnavailable, "degraded", "certificate")
		g.show(t, "next")
		m.awaitHealth(t, 30*time.Second, http.StatusOK)
	})
	t.Run("C28 packets to the source are dropped", func(t *testing.T) {
		g.Broker(0).Proxy().Blackhole()
		m.awaitHealth(t, 30*time.Second, http.StatusServiceUnavailable, "degraded", "broker 0") // of whichever end it is noticed first: both are one broker
		require.NoError(t, g.Broker(0).Proxy().Heal())
		m.awaitHealth(t, 30*time.Second, http.StatusOK)
	})
	written := map[string]int64{}
	for topic, f := range feeds {
		written[topic] = f.end(t)
		m.caughtUp(t, topic)
	}
	m.stop(t)
	require.NotRegexp(t, deniedWrite(reader), g.Broker(0).Log())
	for topic, n := range written {
		requireCopy(t, g.Bootstrap(), g.Bootstrap(), topic, "copy."+topic, n)
	}
}

// deniedWrite finds in a broker's log that somebody was kept from changing something.
func deniedWrite(name string) *regexp.Regexp {
	return regexp.MustCompile("(?i)Principal = " + principal(name) + " is Denied operation = (Write|Create|Alter|Alter_?Configs|Delete|Idempotent_?Write) ")
}

// awaitCertificates waits until the mirror says that its certificates for both clusters end at a time.
func (m *mirrorer) awaitCertificates(t *testing.T, end time.Time) {
	t.Helper()
	for _, name := range []string{reader, writer} {
		require.Eventually(t, func() bool {
			_, body := get(t, m.api(t)+"/metrics")
			found := regexp.MustCompile(`causeway_certificate_expiry_seconds\{cluster="` + name + `"[^}]*\} ([0-9.e+-]+)`).FindStringSubmatch(body)
			if found == nil {
				return false
			}
			seconds, err := strconv.ParseFloat(found[1], 64)
			return err == nil && math.Abs(time.Until(end).Seconds()-seconds) < 2
		}, 5*time.Second, 50*time.Millisecond, "%s: another end than %v", name, end)
	}
}
