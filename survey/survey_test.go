package survey

import (
	"slices"
	"strconv"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

var part = route.Partition{Topic: "t"}

// broker is a cluster with one partition.
type broker struct {
	t      *testing.T
	kc     *kfake.Cluster
	client *wire.Client
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	kc, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, part.Topic))
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	w, err := wire.NewClient(cluster.Config{Name: "c", Bootstrap: kc.ListenAddrs()}, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return &broker{t, kc, w}
}

// writer is a producer of its own.
func (b *broker) writer() *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.kc.ListenAddrs()...), kgo.DefaultProduceTopic(part.Topic))
	require.NoError(b.t, err)
	b.t.Cleanup(cl.Close)
	return cl
}

// write writes a batch of the numbers from first to, not including, last.
func (b *broker) write(cl *kgo.Client, first, last int) {
	b.t.Helper()
	var all []*kgo.Record
	for i := first; i < last; i++ {
		all = append(all, kgo.StringRecord(strconv.Itoa(i)))
	}
	require.NoError(b.t, cl.ProduceSync(b.t.Context(), all...).FirstErr())
}

func (b *broker) open() Log {
	b.t.Helper()
	l, err := Open(b.t.Context(), b.client, part, true)
	require.NoError(b.t, err)
	return l
}

func digestOf(n int) uint64 { return (&batch.Record{Value: []byte(strconv.Itoa(n))}).Digest() }

// odd lets odd numbers pass.
func odd(r *batch.Record) (batch.Verdict, error) {
	if n, err := strconv.Atoi(string(r.Value)); err != nil || n%2 == 0 {
		return batch.Drop, err
	}
	return batch.Keep, nil
}

// Records are counted back as they are forwarded, whatever batches they stand in.
func TestRecordsAreCountedBack(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cl := b.writer()
	for i := range 10 {
		b.write(cl, 10*i, 10*i+10)
	}
	for name, row := range map[string]struct {
		handler func(*batch.Record) (batch.Verdict, error)
		end     route.Offset
		n       int64
		want    Back
	}{
		"nothing":                  {nil, 50, 0, Back{First: 50, Before: digestOf(49)}},
		"one":                      {nil, 50, 1, Back{First: 49, Before: digestOf(48)}},
		"from a batch's middle":    {nil, 57, 30, Back{First: 27, Before: digestOf(26)}},
		"from a batch's beginning": {nil, 100, 70, Back{First: 30, Before: digestOf(29)}},
		"all":                      {nil, 100, 100, Back{First: 0}},
		"more than there are":      {nil, 100, 103, Back{First: 0, Lacks: 3}},
		"some are dropped":         {odd, 60, 10, Back{First: 41, Before: digestOf(39)}},
		"the last ones are":        {odd, 59, 1, Back{First: 57, Before: digestOf(55)}},
		"none is left before":      {odd, 60, 30, Back{First: 0}},
	} {
		s := Source{Log: b.open(), Records: row.handler}
		got, err := s.Back(t.Context(), row.end, row.n)
		require.NoError(t, err, name)
		require.Equal(t, row.want, got, name)
	}
	s := Source{Log: b.open(), Records: odd}
	_, err := s.Back(t.Context(), 101, 1)
	require.ErrorContains(t, err, "t-0 ends at 100, before 101")
	n, err := s.Count(t.Context(), 15, 95)
	require.NoError(t, err)
	require.EqualValues(t, 40, n)
	at, digest, err := s.First(t.Context(), 20, 100)
	require.NoError(t, err)
	require.Equal(t, []any{route.Offset(21), digestOf(21)}, []any{at, digest})
	at, _, err = s.First(t.Context(), 100, 200)
	require.NoError(t, err)
	require.Equal(t, route.NoOffset, at)
	for number, want := range map[int]bool{33: true, 34: false, 77: false} {
		has, err := s.Has(t.Context(), digestOf(number), 0, 50)
		require.NoError(t, err)
		require.Equal(t, want, has, number)
	}
}

// A producer's records are found by what it sent them under, also among those of others.
func TestRecordsOfAProducerAreFound(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	ours, other := b.writer(), b.writer()
	id, epoch, err := ours.ProducerID(t.Context())
	require.NoError(t, err)
	last, err := b.open().LastOf(t.Context(), id)
	require.NoError(t, err)
	require.False(t, last.Known)
	b.write(ours, 0, 10)
	b.write(other, 100, 120)
	b.write(ours, 10, 20) // at 30
	b.write(other, 120, 220)
	l := b.open()
	last, err = l.LastOf(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, Last{Known: true, Epoch: epoch, Sequence: 19, Digest: digestOf(19)}, last)

	for sequence, want := range map[int32]route.Offset{0: 0, 9: 9, 10: 30, 15: 35, 19: 39, 20: route.NoOffset} {
		at, digest, err := l.Find(t.Context(), Sent{id, epoch, sequence}, l.End)
		require.NoError(t, err)
		require.Equal(t, want, at, sequence)
		if at >= 0 {
			require.Equal(t, digestOf(int(sequence)), digest)
		}
	}
	at, _, err := l.Find(t.Context(), Sent{id, epoch, 15}, 20)
	require.NoError(t, err)
	require.Equal(t, route.NoOffset, at, "it stands behind that")
	at, _, err = l.Find(t.Context(), Sent{id, epoch + 1, 5}, l.End)
	require.NoError(t, err)
	require.Equal(t, route.NoOffset, at)

	for number, want := range map[int]route.Offset{12: 32, 110: route.NoOffset, 500: route.NoOffset} {
		at, err := l.FirstLike(t.Context(), id, digestOf(number))
		require.NoError(t, err)
		require.Equal(t, want, at, number)
	}
}

// What another filter has left is found at the source as long as that has all its records, and else not: a later record may be like one that is gone.
func TestWhatAnotherFilterLeftIsFollowed(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cl := b.writer()
	for range 3 { // the same thrice
		b.write(cl, 0, 10)
	}
	const most = 1 << 20
	left := []uint64{digestOf(1), digestOf(3)}
	from := route.Position{}
	behind, found, err := b.open().Follow(t.Context(), from, left, most)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, route.Offset(4), behind.Offset)
	_, found, err = b.open().Follow(t.Context(), from, append(left, digestOf(50)), most)
	require.NoError(t, err)
	require.False(t, found)
	_, found, err = b.open().Follow(t.Context(), from, []uint64{digestOf(50)}, 1)
	require.NoError(t, err)
	require.False(t, found)

	var upTo kadm.Offsets
	upTo.AddOffset(part.Topic, part.Partition, 2, -1)
	_, err = kadm.NewClient(cl).DeleteRecords(t.Context(), upTo)
	require.NoError(t, err)
	require.Equal(t, route.Offset(2), b.open().Start)
	_, found, err = b.open().Follow(t.Context(), from, left, most)
	require.NoError(t, err)
	require.False(t, found, "the first record is taken for one of the second round")
}

// A cleaner leaves holes between batches and in them, which a transaction's end does not.
func TestHolesInALogAreSeen(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cl := b.writer()
	for i := range 3 {
		b.write(cl, 10*i, 10*i+10)
	}
	conn, err := b.client.Dial(t.Context(), b.open().broker)
	require.NoError(t, err)
	defer conn.Close()
	pool := slab.NewPool(slab.NewBudget(fetchBytes), fetchBytes)
	a, s, err := conn.FetchOne(t.Context(), wire.One{Partition: part, Pool: pool, Bytes: fetchBytes})
	require.NoError(t, err)
	defer s.Release()
	first, rest, err := batch.Next(a.RecordBatches)
	require.NoError(t, err)
	_, third, err := batch.Next(rest)
	require.NoError(t, err)
	for name, row := range map[string]struct {
		records []byte
		holed   bool
	}{
		"all":                   {a.RecordBatches, false},
		"the second is gone":    {slices.Concat(first, third), true},
		"the first is gone":     {rest, true},
		"the last is not there": {a.RecordBatches[:len(a.RecordBatches)-len(third)], false},
	} {
		r := &turn{to: 30, show: func(batch.Batch) (bool, error) { return true, nil }}
		_, err := r.scan(row.records, 0)
		require.NoError(t, err)
		require.Equal(t, row.holed, r.holed, name)
	}
}

// What the target has beyond a checkpoint is read to its end.
func TestWhatIsBeyondACheckpointIsRead(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cl := b.writer()
	id, epoch, err := cl.ProducerID(t.Context())
	require.NoError(t, err)
	b.write(cl, 0, 10)
	b.write(b.writer(), 100, 120)
	b.write(cl, 10, 20) // at 30
	at := offsets.Checkpoint{ProducerID: id, ProducerEpoch: epoch, Sequence: 5, TargetOffset: 5}
	for n, known := range []int64{0, 15} {
		digests, whole, err := b.open().Beyond(t.Context(), at, known)
		require.NoError(t, err)
		require.True(t, whole, n)
		require.Len(t, digests, 15)
		require.Equal(t, []uint64{digestOf(5), digestOf(19)}, []uint64{digests[0], digests[14]})
	}
}
