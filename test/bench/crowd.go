package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// crowdWithin is how long anything may take that concerns all partitions.
	crowdWithin = 3 * time.Minute
	// crowdTopicsAtOnce go into one request to create them.
	crowdTopicsAtOnce = 20
	// crowdMemory is what the worker may have that has all partitions alone.
	crowdMemory = "400MiB"
	// commitEvery is how often it is looked whether all positions are stored: seldom, since to look at them all is a load, too.
	commitEvery = 6 * time.Second
	// moreEvery is how often it is looked whether one topic more is ONLINE.
	moreEvery = 5 * time.Millisecond
	// aMoment is how long a topic's own writes may follow its being ONLINE.
	aMoment = time.Second
)

// masses is a crew with many topics.
type masses struct {
	crew *crew
	book *ledger
	tree *tree
	size extent
	all  int // partitions that the cluster has
}

// crowd starts a cluster with thousands of partitions, adds topics to it, and gives all of them to one worker. It leaves its topics: to delete
// as many takes brokers minutes, and they end soon.
func (l *lab) crowd(ctx context.Context, m masses) (err error) {
	l.say("%s: creating %d topics on both clusters", m.crew.name, m.size.topics)
	if err := l.createCrowd(ctx, m.crew, m.size.topics); err != nil {
		return err
	}
	m.all = m.size.topics * crowdPartitions
	if m.tree, err = openTree(m.crew.zookeeper.Addr(), m.crew.name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.crew.close()) }()
	defer m.tree.close()
	if err := m.start(ctx, "first start", drillWorkers(), usualMemory); err != nil {
		return err
	}
	for range m.size.rounds {
		if err := m.crew.stopAll(); err != nil {
			return err
		}
		if err := m.start(ctx, "cold start", drillWorkers(), usualMemory); err != nil {
			return err
		}
	}
	if err := m.grow(ctx); err != nil {
		return err
	}
	if err := m.crew.stopAll(); err != nil {
		return err
	}
	return m.alone(ctx)
}

// createCrowd creates the topics and their copies.
func (l *lab) createCrowd(ctx context.Context, c *crew, topics int) error {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, place := range []struct {
		site   *site
		suffix string
	}{{l.source, ""}, {l.target, copySuffix}} {
		names := make([]string, topics)
		for n := range names {
			names[n] = c.topic(strconv.Itoa(n)) + place.suffix
		}
		wg.Go(func() { errs[i] = place.site.createTopics(ctx, names, crowdPartitions) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// createTopics creates topics with small indexes, since there are many, and waits until all their partitions have leaders.
func (s *site) createTopics(ctx context.Context, names []string, partitions int) error {
	index := "4096"
	for some := range slices.Chunk(names, crowdTopicsAtOnce) {
		answers, err := s.adm.CreateTopics(ctx, int32(partitions), 1, map[string]*string{"segment.index.bytes": &index}, some...)
		if err = errors.Join(err, answers.Error()); err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
	}
	led := func(ctx context.Context) (int, error) {
		topics, err := s.adm.ListTopics(ctx, names...)
		n := 0
		topics.EachPartition(func(p kadm.PartitionDetail) {
			if p.Err == nil && p.Leader >= 0 {
				n++
			}
		})
		return n, err
	}
	return reach(ctx, crowdWithin, partitions*len(names), led)
}

// start starts all processes and waits until all partitions are ONLINE, and then until all are copied.
func (m *masses) start(ctx context.Context, event string, workers []string, memory string) error {
	began := time.Now()
	errs := []error{m.crew.start(kindController, "c_1", usualMemory)}
	for _, id := range workers {
		errs = append(errs, m.crew.start(kindWorker, id, memory))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := reach(ctx, crowdWithin, m.all, m.crew.online); err != nil {
		return fmt.Errorf("%s: wait until all partitions are ONLINE: %w", event, err)
	}
	online := time.Since(began).Seconds()
	if err := reach(ctx, crowdWithin, m.all, m.crew.mirroring); err != nil {
		return fmt.Errorf("%s: wait until all partitions are copied: %w", event, err)
	}
	copied := time.Since(began).Seconds()
	m.crew.l.say("%s: all ONLINE after %.1f s, all copied after %.1f s; CPU seconds: %s", event, online, copied, m.crew.spent())
	event = fmt.Sprintf("%s: %s partitions, workers: %d", event, thousands(float64(m.all)), len(workers))
	m.book.note(figure{event, "until all are ONLINE, s", 1, 30, ""}, online)
	m.book.note(figure{event, "until all are copied, s", 1, none, ""}, copied)
	return nil
}

// grow adds topics one by one. What happens to the nodes of all other topics is looked at before and after all of them.
func (m *masses) grow(ctx context.Context) error {
	if err := pause(ctx, m.size.rest); err != nil {
		return err
	}
	before, err := m.tree.states()
	if err != nil {
		return err
	}
	event := fmt.Sprintf("one topic of %d partitions more", crowdPartitions)
	for i := range m.size.more {
		topic := fmt.Sprintf("%s-more-%d", m.crew.name, i)
		l := m.crew.l
		if err := errors.Join(l.source.createTopic(ctx, topic, crowdPartitions, 1), l.target.createTopic(ctx, topic+copySuffix, crowdPartitions, 1)); err != nil {
			return err
		}
		if err := m.add(ctx, event, topic); err != nil {
			return err
		}
		m.all += crowdPartitions
	}
	after, err := m.tree.states()
	if err != nil {
		return err
	}
	m.book.note(figure{event, "other topics whose nodes changed", 0, 0, ""}, float64(before.changedIn(after)))
	return nil
}

// add adds one topic.
func (m *masses) add(ctx context.Context, event, topic string) error {
	if err := pause(ctx, aMoment); err != nil {
		return err
	}
	reads, err := m.crew.zookeeper.Counters(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	leads := m.crew.running(kindController)[0]
	if _, err := m.crew.call(ctx, leads, request{http.MethodPost, "/api/v1/topics", fmt.Sprintf(`{"topic":%q}`, topic)}, nil); err != nil {
		return err
	}
	err = untilEvery(ctx, moreEvery, crowdWithin, func() (bool, error) {
		owners, err := m.crew.owners(ctx, topic)
		return len(owners) == crowdPartitions, err
	})
	if err != nil {
		return fmt.Errorf("add %s: %w", topic, err)
	}
	online := time.Since(began).Seconds()
	if err := pause(ctx, aMoment); err != nil {
		return err
	}
	after, err := m.crew.zookeeper.Counters(ctx)
	if err != nil {
		return err
	}
	m.book.note(figure{event, "until it is ONLINE, s", 2, 1, ""}, online)
	m.book.note(figure{event, "requests that ZooKeeper gets until a second later", 0, none, ""}, after[packetsReceived]-reads[packetsReceived])
	return nil
}

// packetsReceived counts all requests of all clients.
const packetsReceived = "zk_packets_received"

// alone gives all partitions to one worker, watches it idle, has each position change once, and ends it.
func (m *masses) alone(ctx context.Context) error {
	if err := m.start(ctx, "cold start", drillWorkers()[:1], crowdMemory); err != nil {
		return err
	}
	event := fmt.Sprintf("%s partitions on one worker, memory: %s", thousands(float64(m.all)), crowdMemory)
	if err := pause(ctx, m.size.rest); err != nil {
		return err
	}
	share := map[string]float64{}
	for _, kind := range []string{kindWorker, kindController} {
		before, err := usageOf(m.crew.running(kind)[0].program.Pid())
		if err != nil {
			return err
		}
		share[kind] = -before.cpu
	}
	began := time.Now()
	if err := pause(ctx, m.size.idle); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	use := map[string]usage{}
	for _, kind := range []string{kindWorker, kindController} {
		var err error
		if use[kind], err = usageOf(m.crew.running(kind)[0].program.Pid()); err != nil {
			return err
		}
		share[kind] = 100 * (share[kind] + use[kind].cpu) / took
	}
	m.book.note(figure{event, "idle: resident MB", 0, 400, ""}, use[kindWorker].resident)
	m.book.note(figure{event, "idle: % of a core", 1, 5, ""}, share[kindWorker])
	m.book.note(figure{event, "idle: controller, resident MB", 0, none, ""}, use[kindController].resident)
	m.book.note(figure{event, "idle: controller, % of a core", 1, none, ""}, share[kindController])
	if err := m.commit(ctx, event); err != nil {
		return err
	}
	began = time.Now()
	if err := m.crew.running(kindWorker)[0].program.Stop(); err != nil {
		return err
	}
	m.book.note(figure{event, "until the worker has ended after SIGTERM, s", 1, none, ""}, time.Since(began).Seconds())
	return nil
}

// commit writes a record into each partition and looks how long ZooKeeper was busy storing the new positions.
func (m *masses) commit(ctx context.Context, event string) error {
	topics, err := m.tree.topics()
	if err != nil {
		return err
	}
	before, err := m.tree.positions(topics)
	if err != nil {
		return err
	}
	if err := errors.Join(m.crew.l.writeOneEach(ctx, topics), pause(ctx, commitEvery)); err != nil {
		return err
	}
	var after nodes
	if err := untilEvery(ctx, commitEvery, crowdWithin, func() (bool, error) {
		after, err = m.tree.positions(topics)
		return before.behind(after) == m.all, err
	}); err != nil {
		return fmt.Errorf("wait until all positions are stored: %w", err)
	}
	m.book.note(figure{event, "commit of all positions, s", 2, 1, ""}, after.busy().Seconds())
	return nil
}

// writeOneEach writes one record to each partition of topics.
func (l *lab) writeOneEach(ctx context.Context, topics []string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.source.Bootstrap()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return fmt.Errorf("create producer: %w", err)
	}
	defer cl.Close()
	var records []*kgo.Record
	for _, topic := range topics {
		for p := range int32(crowdPartitions) {
			records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: []byte("one")})
		}
	}
	return cl.ProduceSync(ctx, records...).FirstErr()
}
