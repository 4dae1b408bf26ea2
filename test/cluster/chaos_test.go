package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// actor is a process of the cluster with a link of its own to ZooKeeper.
type actor struct {
	process

	id   string
	link *kafkatest.Proxy
}

// process is a worker or a boss.
type process interface {
	start(t *testing.T)
	kill(t *testing.T)
	stop(t *testing.T)
	pause(t *testing.T)
	resume(t *testing.T)
}

// chaos is a cluster to which things happen.
type chaos struct {
	*lab

	t      *testing.T
	random *rand.Rand
	crew   []actor
	bosses []actor
}

// fault is one thing that may happen.
type fault struct {
	name   string
	strike func()
}

func (c *chaos) worker() actor { return c.one(c.crew) }
func (c *chaos) boss() actor   { return c.one(c.bosses) }

func (c *chaos) one(all []actor) actor {
	a := all[c.random.IntN(len(all))]
	c.t.Log("of", a.id)
	return a
}

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.random.Int64N(int64(d))) }

// away breaks a link in one of the ways in which links break, and mends it after a time.
func (c *chaos) away(link *kafkatest.Proxy, lasting time.Duration) {
	c.t.Helper()
	ways := []fault{{"nobody listens", link.Refuse}, {"all is swallowed", link.Blackhole}, {"answers are swallowed", link.HoldAnswers}}
	way := ways[c.random.IntN(len(ways))]
	c.t.Logf("%s for %v", way.name, lasting)
	way.strike()
	pass(c.t, lasting)
	require.NoError(c.t, link.Heal())
}

const (
	// beyond is longer than a session lives after its last sign.
	beyond = session + 2*time.Second
	// within is not, but long enough for some of its partitions to be suspended: that is at two thirds of it.
	within = session * 3 / 4
)

// faults are all that may happen.
func (c *chaos) faults() []fault {
	killed := func(one func() actor) func() {
		return func() { a := one(); a.kill(c.t); a.start(c.t) }
	}
	terminated := func(one func() actor) func() {
		return func() { a := one(); a.stop(c.t); pass(c.t, time.Second); a.start(c.t) }
	}
	paused := func(one func() actor) func() {
		return func() { a := one(); a.pause(c.t); pass(c.t, beyond); a.resume(c.t) }
	}
	cut := func(one func() actor, lasting time.Duration) func() {
		return func() { c.away(one().link, lasting) }
	}
	restarted := func(after time.Duration) func() {
		return func() {
			require.NoError(c.t, c.zookeeper.Kill())
			pass(c.t, after)
			require.NoError(c.t, c.zookeeper.Start(c.t.Context()))
		}
	}
	broker := c.kafka.Broker(0).Proxy()
	return []fault{
		{"worker killed", killed(c.worker)},
		{"worker terminated", terminated(c.worker)},
		{"worker paused", paused(c.worker)},
		{"worker without zookeeper, for less than its session", cut(c.worker, within)},
		{"worker without zookeeper, for longer than its session", cut(c.worker, beyond)},
		{"controller killed", killed(c.boss)},
		{"controller terminated", terminated(c.boss)},
		{"controller paused", paused(c.boss)},
		{"controller without zookeeper, for less than its session", cut(c.boss, within)},
		{"controller without zookeeper, for longer than its session", cut(c.boss, beyond)},
		{"zookeeper restarted", restarted(0)},
		{"zookeeper away for longer than all sessions", restarted(beyond)},
		{"connections to the broker cut", broker.Cut},
		{"broker out of reach", func() { c.away(broker, c.upTo(4*time.Second)) }},
	}
}

// strike deals faults in an order that nobody chose, each once before any comes again, until the time is over and each was there.
func (c *chaos) strike(lasting time.Duration) {
	for end := time.Now().Add(lasting); ; {
		all := c.faults()
		c.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, f := range all {
			c.t.Log(time.Now().UTC().Format("15:04:05.000"), f.name)
			f.strike()
			pass(c.t, c.upTo(2*time.Second))
		}
		if time.Now().After(end) {
			return
		}
	}
}

// TestControllersAndWorkersComeAndGo runs two controllers and three workers under load, ends and pauses them, and cuts their links to ZooKeeper and
// to the brokers: each record arrives once, in order.
func TestControllersAndWorkersComeAndGo(t *testing.T) {
	t.Parallel() // its faults take their time, not the CPU's
	lasting := time.Duration(0)
	if testkit.Long() {
		lasting = 5 * time.Minute
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &chaos{
		lab: &lab{
			kafka:     kafkatest.Start(t, kafkatest.Options{Version: kafkatest.Kafka3, Proxy: true}),
			zookeeper: kafkatest.StartZooKeeper(t), cluster: strings.ToLower(t.Name()),
		},
		t: t, random: rand.New(rand.NewPCG(seed, 0)),
	}
	var bosses []*boss
	for _, id := range []string{"boss-1", "boss-2"} {
		link := c.link(t)
		b := newBoss(t, c.lab, id, link.Addr())
		bosses = append(bosses, b)
		c.bosses = append(c.bosses, actor{process: b, id: id, link: link})
	}
	for _, id := range []string{"w_1", "w_2", "w_3"} {
		link := c.link(t)
		c.crew = append(c.crew, actor{process: newWorker(t, id, nativeFile(c.lab, id, link.Addr())), id: id, link: link})
	}
	everybody := slices.Concat(c.bosses, c.crew)
	for _, a := range everybody {
		a.start(t)
	}
	feeds := map[string]*feed{}
	for i, topic := range []string{"orders", "payments", "clicks"} {
		topic = c.cluster + "." + topic
		c.kafka.CreateTopic(t, topic, partitions, nil)
		feeds[topic] = c.startFeed(t, topic, 500)
		bosses[i%2].post(t, "/topics", fmt.Sprintf(`{"topic":%q,"numPartitions":%d}`, topic, partitions), http.StatusOK)
	}
	c.strike(lasting)
	for topic, f := range feeds {
		written := f.end(t)
		bosses[0].caughtUp(t, topic)
		c.requireCopy(t, topic, written)
	}
	require.Eventually(t, func() bool {
		code, body := get(t, bosses[1].base+"/validation")
		return code == http.StatusOK && strings.Contains(body, fmt.Sprintf(`"numOnlineTopicPartitions":%d`, 3*partitions))
	}, upWithin, poll, "not every partition is online")
	for _, a := range everybody {
		a.stop(t)
	}
}

// link is a proxy of its own before ZooKeeper.
func (l *lab) link(t *testing.T) *kafkatest.Proxy {
	t.Helper()
	p, err := kafkatest.NewProxy(l.zookeeper.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
