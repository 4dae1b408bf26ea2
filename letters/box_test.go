package letters

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/wire"
)

const (
	copied = "orders.copy"
	box    = "orders.dead-letter"
)

// keeper keeps notes as a group on the target would.
type keeper struct {
	notes map[string]string
	err   error
}

func (k *keeper) GroupNotes(_ context.Context, group string) (map[string]string, error) {
	if group != GroupPrefix+"@a@b@1" {
		return nil, errors.New(group)
	}
	return k.notes, nil
}

func (k *keeper) SaveGroupNotes(_ context.Context, _ string, notes map[string]string) error {
	if k.err == nil {
		k.notes = notes
	}
	return k.err
}

// office is a target whose copy refuses records that are larger than a limit, and a box of its dead letters.
type office struct {
	*Box

	t      *testing.T
	keeper *keeper
	client *kgo.Client
	kc     *kfake.Cluster
	limit  atomic.Int64 // bytes of a batch
	busy   atomic.Int64 // answers that say "not enough replicas"
	named  []int64      // producer ids that the box was to write with
	noName error        // what naming one fails with
}

func (o *office) name(_ context.Context, source string, id int64) error {
	require.Equal(o.t, "orders", source)
	o.named = append(o.named, id)
	return o.noName
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, keeper: &keeper{}}
	o.limit.Store(1 << 20)
	var err error
	o.kc, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, copied), kfake.SeedTopics(1, box))
	require.NoError(t, err)
	t.Cleanup(o.kc.Close)
	o.kc.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		o.kc.KeepControl()
		refusal := o.refusal(req.(*kmsg.ProduceRequest))
		return refusal, nil, refusal != nil
	})
	o.client, err = kgo.NewClient(kgo.SeedBrokers(o.kc.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	require.NoError(t, err)
	t.Cleanup(o.client.Close)
	w, err := wire.NewClient(cluster.Config{Name: "target", Bootstrap: o.kc.ListenAddrs()}, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(w.Close)
	o.Box = NewBox("@a@b@1", w, o.keeper, o.name)
	return o
}

// refusal is the answer to a request that is refused; nil: it is not.
func (o *office) refusal(p *kmsg.ProduceRequest) kmsg.Response {
	t := p.Topics[0]
	code := int16(0)
	switch {
	case t.Topic != copied:
	case o.busy.Add(-1) >= 0:
		code = kerr.NotEnoughReplicas.Code
	case int64(len(t.Partitions[0].Records)) > o.limit.Load():
		code = kerr.MessageTooLarge.Code
	}
	if code == 0 {
		return nil
	}
	resp := p.ResponseKind().(*kmsg.ProduceResponse)
	rt, rp := kmsg.NewProduceResponseTopic(), kmsg.NewProduceResponseTopicPartition()
	rt.Topic, rt.TopicID, rp.Partition, rp.ErrorCode = t.Topic, t.TopicID, t.Partitions[0].Partition, code
	rt.Partitions = append(rt.Partitions, rp)
	resp.Topics = append(resp.Topics, rt)
	return resp
}

// letterOf is a dead letter of a source topic.
func letterOf(source, value string, target int) *kgo.Record {
	r := &kgo.Record{Topic: box, Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "own", Value: []byte("kept")}, {Key: headerReason, Value: []byte("its own")}}}
	for key, text := range map[string]string{
		headerCluster: "a", headerTopic: source, headerPartition: "0", headerOffset: "7", headerTimestamp: "1700000000123", headerTarget: copied,
		headerNumber: strconv.Itoa(target), headerReason: "oversized",
	} {
		if key != headerNumber || target >= 0 {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(text)})
		}
	}
	return r
}

func (o *office) bury(rs ...*kgo.Record) {
	o.t.Helper()
	require.NoError(o.t, o.client.ProduceSync(o.t.Context(), rs...).FirstErr())
}

func (o *office) puts(want Result) {
	o.t.Helper()
	got, err := o.PutBack(o.t.Context(), "orders", box)
	require.NoError(o.t, err)
	require.Equal(o.t, want, got)
}

func (o *office) list() []Letter {
	o.t.Helper()
	all, err := o.List(o.t.Context(), "orders", box)
	require.NoError(o.t, err)
	return all
}

// read gives the n records of a partition of the copy.
func (o *office) read(partition int32, n int) (values []string, last *kgo.Record) {
	o.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(o.kc.ListenAddrs()...), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{copied: {partition: kgo.NewOffset().AtStart()}}))
	require.NoError(o.t, err)
	defer cl.Close()
	for len(values) < n {
		fetched := cl.PollFetches(o.t.Context())
		require.NoError(o.t, fetched.Err())
		fetched.EachRecord(func(r *kgo.Record) { values, last = append(values, string(r.Value)), r })
	}
	require.Len(o.t, values, n)
	return values, last
}

// Each letter goes back once, to the partition that refused it, as the record that it was. What is refused again, or is no letter, holds up nothing.
func TestDeadLettersArePutBackOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	large := string(make([]byte, 5000))
	o.limit.Store(3000)
	o.bury(letterOf("orders", "first", 1), letterOf("orders", large, 1), &kgo.Record{Topic: box, Value: []byte("no letter")},
		letterOf("payments", "another topic's", 1), letterOf("orders", "before partitions were named", -1), letterOf("orders", "last", 1))
	listed := o.list()
	require.Len(t, listed, 4)
	require.Equal(t, []any{"oversized", int64(1700000000123), 5}, []any{listed[0].From.Reason, listed[0].Time.UnixMilli(), listed[0].Bytes})
	o.busy.Store(2)
	o.puts(Result{PutBack: 3, Refused: 1, Foreign: 2})
	require.Len(t, o.list(), 1, "what was refused again")
	values, last := o.read(1, 2)
	require.Equal(t, []string{"first", "last"}, values)
	require.Equal(t, []kgo.RecordHeader{{Key: "own", Value: []byte("kept")}, {Key: headerReason, Value: []byte("its own")}}, last.Headers)
	require.Equal(t, int64(1700000000123), last.Timestamp.UnixMilli())
	values, _ = o.read(0, 1)
	require.Equal(t, []string{"before partitions were named"}, values)

	o.limit.Store(1 << 20)
	o.puts(Result{PutBack: 1})
	values, last = o.read(1, 3)
	require.Equal(t, []string{"first", "last", large}, values)
	require.Equal(t, int64(1700000000123), last.Timestamp.UnixMilli())
	o.puts(Result{})
	o.bury(letterOf("orders", "new", 0))
	o.puts(Result{PutBack: 1})
}

// What was put back is told beside the error, and what could not be noted is put back again, as is said.
func TestProgressThatCannotBeKeptIsAnError(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.bury(letterOf("orders", "first", 1))
	o.keeper.err = errors.New("group is not ours")
	got, err := o.PutBack(t.Context(), "orders", box)
	require.ErrorContains(t, err, "group is not ours")
	require.Equal(t, Result{PutBack: 1}, got)
	o.keeper.err = nil
	o.puts(Result{PutBack: 1})
	o.puts(Result{})
}

// Whoever copies the other way must know the id before anything stands there with it.
func TestNothingIsPutBackUnderAnIDThatCannotBeNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.bury(letterOf("orders", "first", 1))
	o.noName = errors.New("no marker")
	got, err := o.PutBack(t.Context(), "orders", box)
	require.ErrorIs(t, err, o.noName)
	require.Empty(t, got)
	require.Zero(t, o.kc.PartitionInfo(copied, 1).HighWatermark)
	o.noName = nil
	o.puts(Result{PutBack: 1})
	require.Len(t, o.named, 2)
}

func TestWhatCannotBePutBackIsNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	_, err := o.PutBack(t.Context(), "orders", "nothing")
	require.ErrorIs(t, err, ErrNone)
	_, err = o.List(t.Context(), "orders", "nothing")
	require.ErrorIs(t, err, ErrNone)
	o.turn <- struct{}{}
	_, err = o.PutBack(t.Context(), "orders", box)
	require.ErrorIs(t, err, ErrBusy)
	<-o.turn
	o.keeper.notes = map[string]string{box: "what"}
	_, err = o.PutBack(t.Context(), "orders", box)
	require.ErrorContains(t, err, `topic orders.dead-letter: metadata "what"`)
	o.keeper.notes = map[string]string{box: `{"v":1,"id":"AAAAAAAAAAAAAAAAAAAAAQ","next":{"orders":{"0":5}}}`}
	o.bury(letterOf("orders", "of a topic that was made anew", 1))
	o.puts(Result{PutBack: 1})
}
