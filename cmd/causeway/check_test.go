package main

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/loops"
)

// checkedLab is two clusters that note every request that would change something.
type checkedLab struct {
	source, target *kfake.Cluster

	reads []string // requests that only ask here, as the group is there already

	mu      sync.Mutex
	changes []string // guarded by mu
}

func newCheckedLab(t *testing.T, source, target []kfake.Opt) *checkedLab {
	t.Helper()
	l := &checkedLab{}
	for _, at := range []struct {
		place **kfake.Cluster
		opts  []kfake.Opt
	}{{&l.source, source}, {&l.target, target}} {
		c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2)}, at.opts...)...)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		*at.place = c
		c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			l.note(req)
			return nil, nil, false
		})
	}
	return l
}

// note keeps the name of a request unless it only asks.
func (l *checkedLab) note(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.CreateTopicsRequest:
		if r.ValidateOnly {
			return
		}
	case *kmsg.CreatePartitionsRequest:
		if r.ValidateOnly {
			return
		}
	case *kmsg.ApiVersionsRequest, *kmsg.MetadataRequest, *kmsg.DescribeClusterRequest, *kmsg.DescribeConfigsRequest,
		*kmsg.SASLHandshakeRequest, *kmsg.SASLAuthenticateRequest, *kmsg.ListGroupsRequest, *kmsg.DescribeGroupsRequest:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if name := kmsg.NameForKey(req.Key()); !slices.Contains(l.reads, name) {
		l.changes = append(l.changes, name)
	}
}

// file is a configuration for the two, with more lines for the route and the clusters.
func (l *checkedLab) file(t *testing.T, topics, security, more string) string {
	t.Helper()
	addresses := func(c *kfake.Cluster) string { return `"` + strings.Join(c.ListenAddrs(), `", "`) + `"` }
	return writeFile(t, fmt.Sprintf("route:\n  source: {name: a, bootstrap: [%s]%s}\n  target: {name: b, bootstrap: [%s]%s}\n  topics: {%s}\n%s",
		addresses(l.source), security, addresses(l.target), security, topics, more))
}

// check runs the command; it must change nothing, whatever it finds.
func (l *checkedLab) check(t *testing.T, file string, args ...string) (code int, stdout string) {
	t.Helper()
	code, stdout, stderr := command(t.Context(), append([]string{"check", "--config", file}, args...)...)
	require.Empty(t, stderr)
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.changes, "the check changed something")
	return code, stdout
}

func TestCheckOfSoundClustersFindsNothing(t *testing.T) {
	t.Parallel()
	l := newCheckedLab(t, nil, nil)
	require.NoError(t, l.source.CreateTopic("orders", 4, nil))
	require.NoError(t, l.source.CreateTopic("bills", 2, nil))
	require.NoError(t, l.target.CreateTopic("bills", 2, nil))
	state := filepath.Join(t.TempDir(), "none")
	code, stdout := l.check(t, l.file(t, `include: [".*"]`, "", "offsets: {dir: "+state+"}\n"))
	require.Equal(t, 0, code, stdout)
	for _, line := range []string{
		`ok       route.source.bootstrap "` + l.source.ListenAddrs()[0] + `": answers for a cluster of 2 brokers`,
		`ok       target brokers "2": all reached under the addresses that they advertise`,
		`ok       offsets.dir (--state) "` + state + `": is not there yet; the mirror begins at route.start (earliest)`,
		`ok       route.topics.create (--create-topics) "true" of topic orders: the target does not have it yet and would create it`,
		`ok       route.topics "2": topics looked at`,
		"0 errors, 0 warnings",
	} {
		require.Contains(t, stdout, line+"\n")
	}
	require.Nil(t, l.target.TopicInfo("orders"), "nothing was created")
	require.NoDirExists(t, state)
}

// TestCheckNamesWhatWouldStopTheMirror has each line name key, value, reason and remedy.
func TestCheckNamesWhatWouldStopTheMirror(t *testing.T) {
	t.Parallel()
	l := newCheckedLab(t, nil, nil)
	for _, topic := range []string{"grown", "large", "timed", "squeezed", "compacted", "doubted"} {
		require.NoError(t, l.source.CreateTopic(topic, 4, map[string]string{"max.message.bytes": "5000000"}))
	}
	same := map[string]string{"max.message.bytes": "5000000"}
	with := func(key, value string) map[string]string {
		return map[string]string{"max.message.bytes": "5000000", key: value}
	}
	require.NoError(t, l.target.CreateTopic("grown", 3, same))
	require.NoError(t, l.target.CreateTopic("large", 4, map[string]string{"max.message.bytes": "1000000"}))
	require.NoError(t, l.target.CreateTopic("timed", 4, with("message.timestamp.type", "LogAppendTime")))
	require.NoError(t, l.target.CreateTopic("squeezed", 4, with("compression.type", "gzip")))
	require.NoError(t, l.target.CreateTopic("compacted", 4, with("cleanup.policy", "compact")))
	require.NoError(t, l.target.CreateTopic("doubted", 4, with("min.insync.replicas", "9")))
	require.NoError(t, l.source.CreateTopic("new", 1, same))
	code, stdout := l.check(t, l.file(t, `include: [".*", nosuch], create: false`, "", ""))
	require.Equal(t, 1, code)
	for _, line := range []string{
		`error    target partitions "3" of topic grown: the source has 4, and route.topics.create is false; add partitions, let the mirror do it, or set route.topics.partition_mismatch to modulo`,
		`warning  target max.message.bytes "1000000" of topic large: the source allows 5000000; larger records halt their partition (route.on.oversized); raise it to the source's`,
		`warning  target message.timestamp.type "LogAppendTime" of topic timed: records get the time of their copy in place of their own; set it to CreateTime`,
		`warning  target compression.type "gzip" of topic squeezed: its brokers compress each batch anew, at their expense; set it to producer`,
		`warning  target cleanup.policy "compact" of topic compacted: a record without a key is refused and halts its partition; the source allows it; set it to the source's`,
		`error    route.topics.create (--create-topics) "false" of topic new: the target does not have it; create it, or let the mirror do it`,
		`warning  route.topics.include (--topics) "nosuch": does not exist on the source; create it, or mend the name; it is mirrored once it is there`,
	} {
		require.Contains(t, stdout, line+"\n")
	}
	require.Regexp(t, `error    target min.insync.replicas "9" of topic doubted: there are only [0-9] replicas, so nothing can be produced with acks=all; lower it, or add replicas\n`, stdout)
	require.Contains(t, stdout, "3 errors, 5 warnings\n")

	code, stdout = l.check(t, l.file(t, `include: [grown, new, large]`, "", ""), "-o", "json")
	require.Equal(t, 0, code, "the mirror may add partitions and create: %s", stdout)
	var found []finding
	require.NoError(t, json.Unmarshal([]byte(stdout), &found))
	require.Contains(t, found, finding{point{good, "target partitions", "3", "the source has 4; the mirror would add the others", ""}, []string{"grown"}})
}

// TestCheckNamesTopicsThatWouldGoInACircle: a mirror of the other direction has left its marker where this one would read.
func TestCheckNamesTopicsThatWouldGoInACircle(t *testing.T) {
	t.Parallel()
	here, there := kfake.ClusterID("here"), kfake.ClusterID("there")
	l := newCheckedLab(t, []kfake.Opt{here, kfake.SeedTopics(1, "orders", "bills")}, []kfake.Opt{there, kfake.SeedTopics(1, "orders", "bills")})
	now := time.Now().UnixMilli()
	marker, _ := loops.Format([]loops.Hop{{Route: "@b@a@1", Cluster: "there", Topic: "orders", Since: now, Renewed: now}}, loops.MaxBytes)
	admin := cluster.NewAdmin(cluster.Config{Name: "a", Bootstrap: l.source.ListenAddrs()}, hclog.NewNullLogger())
	require.NoError(t, admin.SaveGroupNotes(t.Context(), loops.Group("@b@a@1"), map[string]string{"orders": marker}))
	require.NoError(t, admin.Close())
	l.mu.Lock()
	l.changes = nil
	l.mu.Unlock()
	l.reads = []string{"FindCoordinator", "OffsetFetch"}
	code, stdout := l.check(t, l.file(t, `include: [orders, bills]`, "", ""))
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stdout, `error    route.loops "refuse" of topic orders: a loop: it comes from topic orders of cluster there by @b@a@1, and this route, @a@b@1, `+
		"would bring it back to there; exclude the topic, here or there, or give it another name\n")
	require.Contains(t, stdout, "1 error, 0 warnings\n")
}

// TestCheckNamesRightsThatLack: what docs/security.md asks for, one right at a time.
func TestCheckNamesRightsThatLack(t *testing.T) {
	t.Parallel()
	on := func(topic string, ops ...kmsg.ACLOperation) (all []kfake.ACL) {
		for _, op := range ops {
			all = append(all, kfake.ACL{
				Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: op, Allow: true,
			})
		}
		return all
	}
	const read, write, describe, configs = kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs
	opts := func(acls ...[]kfake.ACL) []kfake.Opt {
		var all []kfake.ACL
		for _, some := range acls {
			all = append(all, some...)
		}
		return []kfake.Opt{
			kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("SCRAM-SHA-256", "mirror", "s3cret", all...),
			kfake.SeedTopics(2, "sound", "unread", "unwritten", "blind", "hidden"),
		}
	}
	l := newCheckedLab(t,
		append(opts(on("sound", read, describe, configs), on("unread", describe, configs), on("unwritten", read, describe, configs),
			on("blind", read, describe), on("fresh", read, describe, configs)), kfake.SeedTopics(2, "fresh")),
		opts(on("sound", read, write, describe, configs), on("unread", read, write, describe, configs), on("unwritten", describe, configs),
			on("blind", read, write, describe, configs)))
	sasl := ", sasl: {mechanism: SCRAM-SHA-256, username: mirror, password: s3cret}"
	code, stdout := l.check(t, l.file(t, `include: [sound, unread, unwritten, blind, fresh, hidden]`, sasl, ""))
	require.Equal(t, 1, code, stdout)
	for _, line := range []string{
		`error    source rights "no Read" of topic unread: the mirror's user may not fetch; grant Read on the topic`,
		`error    source rights "no Describe" of topic hidden: the mirror's user may not see it; grant Read and Describe on the topic`,
		`error    target rights "no Write" of topic unwritten: the mirror's user may not produce; grant Write on the topic`,
		`error    target rights "no Read" of topic unwritten: after a restart or a lost connection it can't be found out what arrived, and the partition halts; grant Read on the topic`,
		`warning  source rights "no DescribeConfigs" of topic blind: limits can't be compared; grant it on the topic while you check, or compare by hand`,
		`error    target rights "no Describe" of topic fresh: the mirror's user may not see it; grant Write, Read and Describe on the topic`,
	} {
		require.Contains(t, stdout, line+"\n")
	}
	require.NotContains(t, stdout, "sound")
	require.NotContains(t, stdout, "s3cret")

	code, stdout = l.check(t, l.file(t, `include: [sound]`, strings.Replace(sasl, "s3cret", "0ther", 1), ""))
	require.Equal(t, 1, code)
	require.Regexp(t, `error    route.target.bootstrap "127.0.0.1:[0-9]+": .*mend tls and sasl of route.target`, stdout)
	require.NotContains(t, stdout, "0ther")
}

func TestCheckTellsWhoCantBeReached(t *testing.T) {
	t.Parallel()
	l := newCheckedLab(t, []kfake.Opt{kfake.SeedTopics(1, "orders")}, nil)
	zookeeper, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = zookeeper.Close() })
	file := writeFile(t, fmt.Sprintf(`
route:
  source: {name: a, bootstrap: ["127.0.0.1:1", %q]}
  target: {name: b, bootstrap: ["127.0.0.1:2"]}
coordination: {zookeeper: "%s,127.0.0.1:1/mirrors"}
offsets: {zookeeper: "127.0.0.1:1"}
`, l.source.ListenAddrs()[0], zookeeper.Addr()))
	code, stdout := l.check(t, file)
	require.Equal(t, 1, code, stdout)
	for _, line := range []string{
		`warning  route.source.bootstrap "127.0.0.1:1": connect: connection refused; start the broker, or mend the address or the way to it`,
		`ok       route.source.bootstrap "` + l.source.ListenAddrs()[0] + `": answers for a cluster of 2 brokers`,
		`error    route.target.bootstrap "127.0.0.1:2": connect: connection refused; start the broker, or mend the address or the way to it`,
		`warning  coordination.zookeeper "` + zookeeper.Addr().String() + `,127.0.0.1:1/mirrors": 127.0.0.1:1: connect: connection refused; start it, or mend the address or the way to it`,
	} {
		require.Contains(t, stdout, line+"\n")
	}
	require.Contains(t, stdout, `error    offsets.zookeeper "127.0.0.1:1": `)
	require.Contains(t, stdout, "2 errors, 2 warnings\n")
}

// TestCheckOfAClusterTakesTopicsThatWillBeAddedByHand: such a file names none.
func TestCheckOfAClusterTakesTopicsThatWillBeAddedByHand(t *testing.T) {
	t.Parallel()
	l := newCheckedLab(t, []kfake.Opt{kfake.SeedTopics(1, "orders")}, nil)
	zookeeper, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = zookeeper.Close() })
	file := l.file(t, "", "", fmt.Sprintf("coordination: {zookeeper: %q}\n", zookeeper.Addr()))
	code, stdout := l.check(t, file)
	require.Equal(t, 0, code, stdout)
	require.Contains(t, stdout, `warning  route.topics.include (--topics) "": topics are added by hand, so none was looked at; name with --topics those that you will add`+"\n")
	require.NotContains(t, stdout, "offsets.dir")
	require.Contains(t, stdout, "\n0 errors, 1 warning\n")
	code, stdout = l.check(t, file, "--topics", "orders")
	require.Equal(t, 0, code, stdout)
	require.Contains(t, stdout, `ok       coordination.zookeeper "`+zookeeper.Addr().String()+`": takes connections`+"\n")
	require.Contains(t, stdout, "of topic orders: the target does not have it yet and would create it\n")
}

func TestCheckRefusesAWrongFileBeforeItAsksAnybody(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t.Context(), "check", "--source", "127.0.0.1:1", "--topics", "a(")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "route.target (--target): bootstrap: no broker is named")
	require.Contains(t, stderr, "route.topics.include[0] (--topics) \"a(\"")
}

func TestFindingsOfManyTopicsShareALine(t *testing.T) {
	t.Parallel()
	var r findings
	for i := range 7 {
		r.add(point{warn, "target rights", "none", "why", "cure"}, fmt.Sprintf("t%d", i))
	}
	require.Len(t, r.found, 1)
	require.Equal(t, `warning  target rights "none" of topics t0, t1, t2 and 4 others: why; cure`, r.found[0].String())
	require.Len(t, r.found[0].Topics, 7)
}
