package wire

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/route"
)

// fetchOne fetches from offset 0 of one partition.
func fetchRequest(topic string, id route.TopicID, partition int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 100, 1, 1<<20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic, rt.TopicID = topic, id
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.PartitionMaxBytes = partition, 1<<20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func TestProduceAndFetchThroughRealFrames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		opts    []kfake.Opt
		byID    bool
		version int16
	}{
		{name: "newest", byID: true, version: maxFetch},
		{name: "no topic ids at hand", version: maxFetchByName},
		{name: "Kafka 1.0", opts: []kfake.Opt{kfake.MaxVersions(kversion.V1_0_0())}, byID: true, version: 6},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			kc := newCluster(t, append(row.opts, kfake.NumBrokers(3), kfake.SeedTopics(6, "a", "b"))...)
			c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, DefaultConfig())
			m, err := c.Metadata(t.Context(), "a")
			require.NoError(t, err)
			require.Len(t, m.Brokers, 3)
			require.Len(t, m.Topics, 1)
			require.Len(t, m.Topics["a"].Partitions, 6)
			part := m.Topics["a"].Partitions[3]
			conn := dialBroker(t, c, part.Leader)

			want := someBatch(3, 100)
			resp, err := produce(t, conn, &Produce{Acks: -1, Timeout: time.Second, Batches: []ProduceBatch{{Topic: "a", Partition: part.Partition, Records: want}}})
			require.NoError(t, err)
			require.NoError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))

			pool := newPool(10 << 20)
			require.NoError(t, pool.Budget().Reserve(t.Context(), 2<<20))
			var id route.TopicID
			if row.byID {
				id = m.Topics["a"].ID
			}
			req := fetchRequest("a", id, part.Partition)
			got, s, err := conn.Fetch(t.Context(), req, pool, 2<<20)
			require.NoError(t, err)
			require.Equal(t, row.version, got.Version)
			require.Equal(t, "a", got.Topics[0].Topic)
			require.NoError(t, kerr.ErrorForCode(got.Topics[0].Partitions[0].ErrorCode))
			records := got.Topics[0].Partitions[0].RecordBatches
			require.Equal(t, want[16:], records[16:], "all but offset, length and leader epoch")
			require.Equal(t, int64(len(s.Bytes())), pool.Budget().Used())
			s.Release()
			require.Equal(t, byte(0xdb), records[30], "the batch is no slice of the slab")
			require.Zero(t, pool.Budget().Used())
		})
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "a"))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, DefaultConfig())
	m, err := c.Metadata(t.Context())
	require.NoError(t, err)
	leaders := make(map[route.Partition]int32)
	for _, p := range m.Topics["a"].Partitions {
		require.NoError(t, p.Err)
		leaders[route.Partition{Topic: "a", Partition: p.Partition}] = p.Leader
	}
	id, epoch, err := c.InitProducerID(t.Context())
	require.NoError(t, err)
	require.Zero(t, epoch)
	p0 := route.Partition{Topic: "a", Partition: 0}
	conn := dialBroker(t, c, leaders[p0])
	resp, err := produce(t, conn, &Produce{Acks: -1, Timeout: time.Second, Batches: []ProduceBatch{{Topic: "a", Records: idempotent(someBatch(5, 10), id, epoch, 0)}}})
	require.NoError(t, err)
	require.NoError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))

	for _, row := range []struct {
		at   int64
		want route.Offset
	}{{AtEnd, 5}, {AtStart, 0}} {
		got, err := c.ListOffsets(t.Context(), leaders, row.at, true)
		require.NoError(t, err)
		require.Len(t, got, 4)
		require.NoError(t, got[p0].Err)
		require.Equal(t, row.want, got[p0].Offset)
	}
	kc.ControlKey(int16(kmsg.DescribeProducers), func(req kmsg.Request) (kmsg.Response, error, bool) { // kfake tells of transactions only
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		rp := kmsg.NewDescribeProducersResponseTopicPartition()
		rp.ActiveProducers = []kmsg.DescribeProducersResponseTopicPartitionActiveProducer{{ProducerID: id, ProducerEpoch: 7, LastSequence: 4, LastTimestamp: 99}}
		resp.Topics = []kmsg.DescribeProducersResponseTopic{{Topic: "a", Partitions: []kmsg.DescribeProducersResponseTopicPartition{rp}}}
		return resp, nil, true
	})
	described, err := c.DescribeProducers(t.Context(), leaders[p0], []route.Partition{p0})
	require.NoError(t, err)
	require.NoError(t, described[p0].Err)
	require.Equal(t, []ActiveProducer{{ID: id, Epoch: 7, LastSequence: 4, LastTimestamp: 99}}, described[p0].Active)

	ends, err := c.OffsetsForLeaderEpoch(t.Context(), leaders[p0], []EpochAsk{{Partition: p0, CurrentLeaderEpoch: -1, LeaderEpoch: m.Topics["a"].Partitions[0].LeaderEpoch}})
	require.NoError(t, err)
	require.NoError(t, ends[p0].Err)
	require.Equal(t, route.Offset(5), ends[p0].End)
}

func idempotent(b []byte, id int64, epoch int16, sequence int32) []byte {
	patched := kmsg.RecordBatch{}
	if err := patched.ReadFrom(b); err != nil {
		panic(err)
	}
	patched.ProducerID, patched.ProducerEpoch, patched.FirstSequence = id, epoch, sequence
	return sealed(patched.AppendTo(nil))
}

func TestProducerIDIsAskedForAgainWhileTheBrokerLoads(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.CoordinatorLoadInProgress, TopLevel: true, Count: 3})
	_, _, err := c.InitProducerID(t.Context())
	require.NoError(t, err)
	kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.CoordinatorLoadInProgress, TopLevel: true, Count: -1})
	_, _, err = c.InitProducerID(t.Context())
	require.ErrorIs(t, err, kerr.CoordinatorLoadInProgress)
}

func TestWriteTellsWhatIsRefused(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	p := route.Partition{Topic: "a"}
	require.NoError(t, c.Write(t.Context(), 0, p, someBatch(5, 10)))
	ends, err := c.ListOffsets(t.Context(), map[route.Partition]int32{p: 0}, AtEnd, false)
	require.NoError(t, err)
	require.Equal(t, route.Offset(5), ends[p].Offset)
	for code, want := range map[*kerr.Error]error{
		kerr.MessageTooLarge: ErrTooLarge, kerr.InvalidTimestamp: ErrRefused, kerr.TopicAuthorizationFailed: ErrRefused, kerr.NotEnoughReplicas: nil,
	} {
		kc.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: code, Count: 1})
		err := c.Write(t.Context(), 0, p, someBatch(1, 10))
		require.ErrorIs(t, err, code)
		if want != nil {
			require.ErrorIs(t, err, want)
		} else {
			require.NotErrorIs(t, err, ErrRefused)
		}
	}
}

func TestListOffsetsFailsPerPartition(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	good, leaderless, unknown := route.Partition{Topic: "a"}, route.Partition{Topic: "a", Partition: 1}, route.Partition{Topic: "a", Partition: 2}
	got, err := c.ListOffsets(t.Context(), map[route.Partition]int32{good: 0, leaderless: -1, unknown: 77}, AtEnd, false)
	require.NoError(t, err)
	require.NoError(t, got[good].Err)
	require.ErrorIs(t, got[leaderless].Err, kerr.LeaderNotAvailable)
	var link *LinkError
	require.ErrorAs(t, got[unknown].Err, &link)
	require.Equal(t, int32(77), link.Broker)
}

// A partition that an answer leaves out must not look as if the broker had said that it remembers nothing of it.
func TestDescribeProducersFailsWhereTheAnswerSaysNothing(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	kc.ControlKey(int16(kmsg.DescribeProducers), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.DescribeProducersResponse)
		resp.Topics = []kmsg.DescribeProducersResponseTopic{{Topic: "a", Partitions: []kmsg.DescribeProducersResponseTopicPartition{{Partition: 1}}}}
		return resp, nil, true
	})
	silent, known := route.Partition{Topic: "a"}, route.Partition{Topic: "a", Partition: 1}
	got, err := c.DescribeProducers(t.Context(), 0, []route.Partition{silent, known})
	require.NoError(t, err)
	require.NoError(t, got[known].Err)
	require.ErrorIs(t, got[silent].Err, kerr.UnknownServerError)
}

func TestUnsupportedRequests(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.MaxVersions(kversion.V1_0_0()))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	_, err := c.Metadata(t.Context())
	require.NoError(t, err)
	_, err = c.DescribeProducers(t.Context(), 0, []route.Partition{{Topic: "a"}})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = c.OffsetsForLeaderEpoch(t.Context(), 0, []EpochAsk{{Partition: route.Partition{Topic: "a"}}})
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestMetadataOfUnknownTopicCreatesNothing(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	for range 2 {
		m, err := c.Metadata(t.Context(), "nosuch")
		require.NoError(t, err)
		require.ErrorIs(t, m.Topics["nosuch"].Err, kerr.UnknownTopicOrPartition)
	}
}

// silentAddr is a listener that accepts and says nothing, as a paused broker does.
func silentAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestMetadataPassesOverTheDead(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	c := newClient(t, cluster.Config{Bootstrap: append([]string{silentAddr(t), "127.0.0.1:1"}, kc.ListenAddrs()...)}, quick())
	for range 3 {
		m, err := c.Metadata(t.Context())
		require.NoError(t, err)
		require.Contains(t, m.Topics, "a")
	}
}

func TestKnownBrokersServeWhenBootstrapIsGone(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(1, "a"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	through := make(chan struct{})
	go func() {
		defer close(through)
		in, err := l.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := net.Dial("tcp", kc.ListenAddrs()[0])
		if err != nil {
			return
		}
		defer out.Close()
		pipe(in, out)
	}()
	c := newClient(t, cluster.Config{Bootstrap: []string{l.Addr().String()}}, quick())
	_, err = c.Metadata(t.Context())
	require.NoError(t, err)
	c.mu.Lock()
	ctl := c.controls[l.Addr().String()]
	c.mu.Unlock()
	require.NoError(t, l.Close())
	ctl.live().Close()
	<-through
	for range 4 {
		_, err = c.Metadata(t.Context())
		require.NoError(t, err)
	}
}

// The address of a broker goes to a broker of another cluster.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	stranger := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.ClusterID("stranger"))
	ours := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.ClusterID("ours"))
	c := newClient(t, cluster.Config{Bootstrap: ours.ListenAddrs()}, quick())
	m, err := c.Metadata(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ours", m.ClusterID)
	c.learn([]int32{0}, map[int32]Broker{0: {ID: 0, Addr: stranger.ListenAddrs()[0]}})
	_, err = c.Dial(t.Context(), 0)
	var wrong *ClusterError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, ClusterError{Want: "ours", Got: "stranger"}, *wrong)
	m, err = c.Metadata(t.Context(), "a")
	require.NoError(t, err, "the bootstrap address still leads to our cluster")
	require.Equal(t, "ours", m.ClusterID)
	require.Equal(t, ours.ListenAddrs()[0], m.Brokers[0].Addr)
}

func TestDeadBrokerIsNotStormed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dials := make(chan struct{}, 1<<16)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			dials <- struct{}{}
			_ = nc.Close()
		}
	}()
	cfg := quick()
	cfg.RedialBackoff, cfg.RedialLimit = time.Hour, time.Hour
	c := newClient(t, cluster.Config{Bootstrap: []string{l.Addr().String()}}, cfg)
	for range 100 {
		_, err := c.Metadata(t.Context())
		var link *LinkError
		require.ErrorAs(t, err, &link)
	}
	require.LessOrEqual(t, len(dials), 2)
}

func TestRequestSharesOneConnectionAndRedials(t *testing.T) {
	t.Parallel()
	kc := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	c := newClient(t, cluster.Config{Bootstrap: kc.ListenAddrs()}, quick())
	ask := func() error {
		_, err := c.Request(t.Context(), 0, kmsg.NewPtrMetadataRequest())
		return err
	}
	require.NoError(t, ask())
	first := c.controls[kc.ListenAddrs()[0]].live()
	require.NoError(t, ask())
	require.Same(t, first, c.controls[kc.ListenAddrs()[0]].live())
	first.Close()
	require.NoError(t, ask())
	require.NotSame(t, first, c.controls[kc.ListenAddrs()[0]].live())
}

func TestClosedClientRefuses(t *testing.T) {
	t.Parallel()
	c := newClient(t, cluster.Config{Bootstrap: []string{silentAddr(t)}}, DefaultConfig())
	got := make(chan error, 1)
	go func() {
		_, err := c.Metadata(context.WithoutCancel(t.Context()))
		got <- err
	}()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.controls) > 0
	}, 5*time.Second, time.Millisecond)
	c.Close()
	select {
	case err := <-got:
		require.ErrorIs(t, err, ErrClosed)
	case <-time.After(2 * time.Second):
		t.Fatal("closing a client leaves a dial waiting")
	}
	_, err := c.Metadata(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

func TestPatienceGrowsWithSilenceAndEndsWithAnAnswer(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.ProbeTimeout, cfg.RequestTimeout = 20*time.Millisecond, 30*time.Second
	c := newClient(t, cluster.Config{Bootstrap: []string{silentAddr(t)}}, cfg)
	require.Eventually(t, func() bool {
		_, err := c.Metadata(t.Context())
		require.Error(t, err)
		return time.Duration(c.patience.Load()) >= 4*cfg.ProbeTimeout
	}, 20*time.Second, cfg.RedialLimit)
	kc := newCluster(t, kfake.NumBrokers(1))
	c.setPatience(cfg.RequestTimeout)
	c.learn([]int32{0}, map[int32]Broker{0: {Addr: kc.ListenAddrs()[0]}})
	_, err := c.Metadata(t.Context())
	require.NoError(t, err)
	require.Less(t, time.Duration(c.patience.Load()), cfg.RequestTimeout)
}
