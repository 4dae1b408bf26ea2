package connector_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func place(t *testing.T, text string) operator.Place {
	t.Helper()
	p, err := operator.ParsePlace(text)
	require.NoError(t, err)
	return p
}

// values are those of the n records of a copy.
func values(t *testing.T, k *kafkatest.Cluster, topic string, n int) (vs []string) {
	t.Helper()
	for _, r := range read(t, k.Bootstrap(), topic+"-copy", n) {
		vs = append(vs, string(r.Value))
	}
	return vs
}

// write produces the numbers from first to before end, one batch each, from an hour ago on and a second apart by their timestamps.
func write(t *testing.T, cl *kgo.Client, first, end int) (began time.Time) {
	t.Helper()
	began = time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := first; i < end; i++ {
		produce(t, cl, &kgo.Record{Value: []byte(strconv.Itoa(i)), Timestamp: began.Add(time.Duration(i) * time.Second)})
	}
	return began
}

func numbers(first, end int) (vs []string) {
	for i := first; i < end; i++ {
		vs = append(vs, strconv.Itoa(i))
	}
	return vs
}

func TestResetSetsThePositionInANewEpoch(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "reset"
	k.CreateTopic(t, topic, 1, nil)
	cl := k.Client(t, kgo.DefaultProduceTopic(topic))
	store := newMoodyStore(t)
	part := route.Partition{Topic: topic}
	c, happened, _ := startWith(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	c.Add(part)
	began := write(t, cl, 0, 10)
	caughtUp(t, c, topic)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reset := func(to string) error { return c.Reset(ctx, part, connector.Reset{To: place(t, to)}) }

	var want []string
	epoch := int16(0)
	for _, step := range []struct {
		to     string
		copied []string // a second time
		events []events.Type
	}{
		{"earliest", numbers(0, 10), []events.Type{events.CheckpointOverridden, events.DuplicatesPossible}},
		{"7", numbers(7, 10), []events.Type{events.CheckpointOverridden, events.DuplicatesPossible}},
		{began.Add(4 * time.Second).UTC().Format(time.RFC3339), numbers(4, 10), []events.Type{events.CheckpointOverridden, events.DuplicatesPossible}},
		{"10", nil, []events.Type{events.CheckpointOverridden}},
		{"latest", nil, []events.Type{events.CheckpointOverridden}},
	} {
		before := len(told(happened, part))
		require.NoError(t, reset(step.to), step.to)
		epoch++
		at, _ := store.at(t, part)
		require.Equal(t, epoch, at.ProducerEpoch, step.to)
		if len(want) == 0 {
			want = numbers(0, 10)
		}
		want = append(want, step.copied...)
		caughtUp(t, c, topic)
		require.Equal(t, want, values(t, k, topic, len(want)), step.to)
		require.Equal(t, step.events, told(happened, part)[before:], step.to)
	}

	// what is skipped is told, and nothing in front of it is lost
	c.Configure(topic, operator.Topic{Settings: operator.Settings{Paused: true}})
	write(t, cl, 10, 20)
	require.NoError(t, reset("15"))
	require.Contains(t, told(happened, part), events.RangeSkipped)
	require.Eventually(t, func() bool { return stateOf(c, part).State == "paused" }, 20*time.Second, 5*time.Millisecond, "a reset ends no pause")
	c.Configure(topic, operator.Topic{})
	caughtUp(t, c, topic)
	want = append(want, numbers(15, 20)...)
	require.Equal(t, want, values(t, k, topic, len(want)))

	// out of range: told, and nothing is changed
	at, _ := store.at(t, part)
	err := reset("21")
	outside, ok := errors.AsType[*connector.RangeError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, connector.RangeError{To: 21, Start: 0, End: 20}, *outside)
	write(t, cl, 20, 21)
	caughtUp(t, c, topic)
	now, _ := store.at(t, part)
	require.Equal(t, at.ProducerEpoch, now.ProducerEpoch)
	require.ErrorIs(t, c.Reset(ctx, route.Partition{Topic: "nowhere"}, connector.Reset{}), connector.ErrElsewhere)
}

func TestResetToLatestStaysBeforeOpenTransactions(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "reset-latest"
	k.CreateTopic(t, topic, 1, nil)
	write(t, k.Client(t, kgo.DefaultProduceTopic(topic)), 0, 5)
	open := k.Client(t, kgo.TransactionalID(topic), kgo.DefaultProduceTopic(topic))
	require.NoError(t, open.BeginTransaction())
	produce(t, open, &kgo.Record{Value: []byte("5")})
	store := newMoodyStore(t)
	part := route.Partition{Topic: topic}
	c, _ := startOn(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	c.Configure(topic, operator.Topic{Settings: operator.Settings{Paused: true}})
	c.Add(part)
	require.NoError(t, c.Reset(t.Context(), part, connector.Reset{To: place(t, "latest")}))
	at, _ := store.at(t, part)
	require.Equal(t, route.Offset(5), at.SourceOffset)
	require.NoError(t, open.EndTransaction(t.Context(), kgo.TryCommit))
	c.Configure(topic, operator.Topic{})
	caughtUp(t, c, topic)
	require.Equal(t, []string{"5"}, values(t, k, topic, 1))
}

// A worker that is killed between a reset and the removal of its command leaves the next one a command that is carried out already.
func TestResetThatWasCutOffIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "reset-once"
	k.CreateTopic(t, topic, 1, nil)
	write(t, k.Client(t, kgo.DefaultProduceTopic(topic)), 0, 5)
	store := newMoodyStore(t)
	part := route.Partition{Topic: topic}
	c, _ := startOn(t, k.Bootstrap(), k.Bootstrap(), store, nil)
	c.Add(part)
	caughtUp(t, c, topic)

	cut := errors.New("cut off")
	var noted operator.Epoch
	r := connector.Reset{To: place(t, "earliest"), Note: func(_ context.Context, from operator.Epoch) error { noted = from; return cut }}
	require.ErrorIs(t, c.Reset(t.Context(), part, r), cut)
	at, _ := store.at(t, part)
	require.Equal(t, operator.Epoch{ProducerID: at.ProducerID, Epoch: 0}, noted)
	require.Zero(t, at.ProducerEpoch, "nothing is done that is not noted")

	r.From, r.Note = &noted, nil
	require.NoError(t, c.Reset(t.Context(), part, r), "noted, and not done")
	caughtUp(t, c, topic)
	require.NoError(t, c.Reset(t.Context(), part, r), "noted, and done")
	caughtUp(t, c, topic)
	at, _ = store.at(t, part)
	require.Equal(t, int16(1), at.ProducerEpoch)
	require.Equal(t, slices.Concat(numbers(0, 5), numbers(0, 5)), values(t, k, topic, 10))
}

// A reset of a partition whose target was made anew is the way out of its halt; one whose cluster is away waits for it, and can be taken back.
func TestResetRevivesAPartitionWhoseTargetWasMadeAnew(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "reset-anew"
	k.CreateTopic(t, topic, 1, nil)
	cl := k.Client(t, kgo.DefaultProduceTopic(topic))
	write(t, cl, 0, 5)
	part := route.Partition{Topic: topic}
	state := t.TempDir()
	c, stop := start(t, k.Bootstrap(), k.Bootstrap(), state, nil)
	c.Add(part)
	caughtUp(t, c, topic)
	stop()

	admin := kadm.NewClient(cl)
	_, err := admin.DeleteTopic(t.Context(), topic+"-copy")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		topics, err := admin.ListTopics(t.Context(), topic+"-copy")
		return err == nil && !topics.Has(topic+"-copy")
	}, 20*time.Second, 20*time.Millisecond)
	c, _ = start(t, k.Bootstrap(), k.Bootstrap(), state, nil)
	c.Add(part)
	require.Eventually(t, func() bool { return stateOf(c, part).State == "halted" }, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, c.Reset(t.Context(), part, connector.Reset{To: place(t, "2")}))
	caughtUp(t, c, topic)
	require.Equal(t, numbers(2, 5), values(t, k, topic, 3))

	away, _ := startOn(t, []string{"127.0.0.1:1"}, k.Bootstrap(), newMoodyStore(t), nil)
	away.Add(part)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, away.Reset(ctx, part, connector.Reset{}), context.DeadlineExceeded)
	again, cancel2 := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel2()
	require.ErrorIs(t, away.Reset(again, part, connector.Reset{}), context.DeadlineExceeded, "the first one was taken back")
}

func TestRetryRevivesAHaltedPartitionAtOnce(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "retry"
	k.CreateTopic(t, topic, 1, nil)
	k.CreateTopic(t, topic+"-copy", 1, map[string]string{"max.message.bytes": "2000"})
	cl := k.Client(t, kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	part := route.Partition{Topic: topic}
	c.Add(part)
	produce(t, cl, &kgo.Record{Value: make([]byte, 5000)})
	require.Eventually(t, func() bool { return stateOf(c, part).State == "halted" }, 30*time.Second, 5*time.Millisecond)
	_, err := kadm.NewClient(cl).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: new("100000")}}, topic+"-copy")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		require.True(t, c.Retry(part))
		return stateOf(c, part).State == "mirroring"
	}, 5*time.Second, 200*time.Millisecond, "its own timer is twice as slow")
	caughtUp(t, c, topic)
	require.False(t, c.Retry(route.Partition{Topic: "nowhere"}))
}

func TestSettingsHoldForPartitionsThatComeLater(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3)
	const topic = "settings"
	k.CreateTopic(t, topic, 2, nil)
	const records, limit = 10_000, 200 // of each partition, a second
	kafkatest.Load(t, k.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 2 * records, ValueBytes: 1000, Codec: "none", BatchBytes: 16 << 10})
	c, _ := start(t, k.Bootstrap(), k.Bootstrap(), t.TempDir(), nil)
	both := parts(topic, 2)
	set := operator.Topic{}
	set.Set(0, operator.Settings{Paused: true})
	set.Set(1, operator.Settings{Limits: operator.Limits{RecordsPerSecond: limit}})
	c.Configure(topic, set)
	began := time.Now()
	c.Add(both...)
	acked := func(p route.Partition) int { return int(max(stateOf(c, p).Acked, 0)) }
	require.Eventually(t, func() bool { return stateOf(c, both[0]).State == "paused" && acked(both[1]) >= 4*limit }, 60*time.Second, 5*time.Millisecond)
	require.Zero(t, acked(both[0]), "copies although it is paused")
	require.Less(t, acked(both[1]), int((time.Since(began).Seconds()+2)*limit), "faster than the limit")
	c.Configure(topic, operator.Topic{})
	caughtUp(t, c, topic)
	equal(t, k, topic)
}
