package assign

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// fleet makes live, enabled workers.
func fleet(ids ...string) []Worker {
	var all []Worker
	for _, id := range ids {
		all = append(all, Worker{ID: id, Live: true, Enabled: true})
	}
	return all
}

// topic makes one partition for each owner, of unknown weight.
func topic(name string, owners ...string) []Partition {
	var all []Partition
	for i, owner := range owners {
		all = append(all, Partition{Partition: route.Partition{Topic: name, Partition: int32(i)}, Weight: UnknownWeight, Owner: owner})
	}
	return all
}

// after gives the partitions as a plan leaves them.
func after(partitions []Partition, plan Plan) []Partition {
	next := slices.Clone(partitions)
	for i := range next {
		next[i].Owner = plan.Owners[next[i].Partition]
	}
	return next
}

// counts tells how many of the partitions each worker has.
func counts(partitions []Partition) map[string]int {
	n := map[string]int{}
	for _, p := range partitions {
		n[p.Owner]++
	}
	return n
}

func moves(plan Plan) []string {
	var lines []string
	for _, m := range plan.Moves {
		lines = append(lines, fmt.Sprintf("%v %s>%s %s", m.Partition, m.From, m.To, m.Reason))
	}
	return lines
}

// What a silent worker had was weighed and given away for balance, and others' partitions given to it.
func TestASilentWorkerIsLeftAlone(t *testing.T) {
	t.Parallel()
	workers := fleet("w1", "w2", "w3")
	workers[1].Silent = true
	plan := Decide(workers, topic("orders", "w1", "w1", "w1", "w1", "w2", "", "gone"), Options{})
	require.Equal(t, map[string]int{"w1": 3, "w2": 1, "w3": 3}, counts(after(topic("orders", "", "", "", "", "", "", ""), plan)))
	require.Equal(t, "w2", plan.Owners[route.Partition{Topic: "orders", Partition: 4}])

	plan = Decide(workers, topic("orders", "w1", "w2"), Options{MaxActive: 2})
	require.Empty(t, plan.Moves, "nobody steps in for one that may live")

	workers[0].Silent, workers[2].Silent = true, true
	plan = Decide(workers, topic("orders", "", "", ""), Options{})
	require.Equal(t, map[string]int{"w1": 1, "w2": 1, "w3": 1}, counts(after(topic("orders", "", "", ""), plan)), "that nobody answers tells nothing of any")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	edit := func(all []Worker, i int, f func(*Worker)) []Worker { f(&all[i]); return all }
	change := func(all []Partition, i int, f func(*Partition)) []Partition { f(&all[i]); return all }
	for _, row := range []struct {
		name       string
		workers    []Worker
		partitions []Partition
		options    Options
		want       []string
		waiting    int
	}{
		{
			name: "a new topic is dealt out", workers: fleet("a", "b"), partitions: topic("t", "", "", "", ""),
			want: []string{"t-0 >a new", "t-1 >b new", "t-2 >a new", "t-3 >b new"},
		},
		{
			name: "a join takes what balance needs and no more", workers: fleet("a", "b"), partitions: topic("t", "a", "a", "a", "a", "a", "a", "a", "a"),
			want: []string{"t-0 a>b balance", "t-1 a>b balance", "t-2 a>b balance", "t-3 a>b balance"},
		},
		{
			name: "one too many is no reason to move", workers: fleet("a", "b"), partitions: topic("t", "a", "a", "b"), want: nil,
		},
		{
			name: "a worker that left", workers: fleet("b", "c"), partitions: topic("t", "a", "b", "c", "a"),
			want: []string{"t-0 a>b owner_gone", "t-3 a>c owner_gone"},
		},
		{
			name:       "a worker without a session",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Live = false }),
			partitions: topic("t", "a", "b"), want: []string{"t-0 a>b owner_gone"},
		},
		{
			name:       "a disabled worker",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Enabled = false }),
			partitions: topic("t", "a", "b"), want: []string{"t-0 a>b disabled"},
		},
		{
			name:       "a draining worker",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Draining = true }),
			partitions: topic("t", "a", "b"), want: []string{"t-0 a>b drained"},
		},
		{
			name: "nobody can work: all keep their owners", workers: nil, partitions: topic("t", "a", ""), want: nil, waiting: 2,
		},
		{
			name: "what is pinned stays", workers: fleet("a", "b"),
			partitions: change(change(topic("t", "a", "a"), 0, func(p *Partition) { p.Pin = "a" }), 1, func(p *Partition) { p.Pin = "a" }),
			want:       nil,
		},
		{
			name: "what is pinned elsewhere comes home", workers: fleet("a", "b"),
			partitions: change(topic("t", "a", "b"), 0, func(p *Partition) { p.Pin = "b" }),
			want:       []string{"t-0 a>b pinned", "t-1 b>a balance"},
		},
		{
			name: "what is pinned to a worker that is gone goes on elsewhere", workers: fleet("a", "b"),
			partitions: change(topic("t", "z", "b"), 0, func(p *Partition) { p.Pin = "z" }), want: []string{"t-0 z>a owner_gone"},
		},
		{
			name: "what is pinned to a worker that is gone stays where it goes on", workers: fleet("a", "b"),
			partitions: change(topic("t", "a", "b"), 0, func(p *Partition) { p.Pin = "z" }), want: nil,
		},
		{
			name:       "a drain is stronger than a pin",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Draining = true }),
			partitions: change(topic("t", "a", "a"), 0, func(p *Partition) { p.Pin = "a" }),
			want:       []string{"t-0 a>b drained", "t-1 a>b drained"},
		},
		{
			name:       "a disabled worker gives away what is pinned to it",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Enabled = false }),
			partitions: change(topic("t", "a"), 0, func(p *Partition) { p.Pin = "a" }),
			want:       []string{"t-0 a>b disabled"},
		},
		{
			name:       "what is held waits for its owner, pinned elsewhere or not",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Live = false }),
			partitions: change(change(topic("t", "a", "z"), 0, func(p *Partition) { p.Held, p.Pin = true, "b" }), 1, func(p *Partition) { p.Held = true }),
			want:       nil, waiting: 2,
		},
		{
			name: "a stuck partition tries another worker", workers: fleet("a", "b", "c"),
			partitions: change(change(topic("t", "a", "b", "c"), 0, func(p *Partition) { p.Stuck = true }), 1, func(p *Partition) { p.Stuck = true }),
			want:       []string{"t-0 a>c stuck", "t-1 b>a stuck", "t-2 c>b balance"},
		},
		{
			name: "a stuck partition stays where there is no other worker", workers: fleet("a"),
			partitions: change(topic("t", "a"), 0, func(p *Partition) { p.Stuck = true }), want: nil,
		},
		{
			name: "blacklisted partitions weigh nothing", workers: fleet("a", "b"),
			partitions: change(change(topic("t", "a", "a", "a", "b"), 0, func(p *Partition) { p.Blacklisted = true }), 1, func(p *Partition) { p.Blacklisted = true }),
			want:       nil,
		},
		{
			name: "blacklisted partitions keep a worker when theirs goes", workers: fleet("b"),
			partitions: change(topic("t", "a", "b"), 0, func(p *Partition) { p.Blacklisted = true }),
			want:       []string{"t-0 a>b owner_gone"},
		},
		{
			name:       "a standby waits",
			workers:    edit(fleet("a", "b", "c"), 0, func(w *Worker) { w.Standby = true }),
			partitions: topic("t", "", ""), want: []string{"t-0 >b new", "t-1 >c new"},
		},
		{
			name:       "a standby steps in for one that is gone",
			workers:    edit(edit(fleet("a", "b", "c"), 0, func(w *Worker) { w.Standby = true }), 1, func(w *Worker) { w.Live = false }),
			partitions: topic("t", "b", "c"), want: []string{"t-0 b>a owner_gone"},
		},
		{
			name:       "who comes back is the standby now",
			workers:    edit(fleet("a", "b", "c"), 0, func(w *Worker) { w.Standby = true }),
			partitions: topic("t", "a", "c"), want: nil,
		},
		{
			name: "more workers than may hold partitions", workers: fleet("a", "b", "c"), partitions: topic("t", "a", "a", "b", "b", "c"),
			options: Options{MaxActive: 2}, want: []string{"t-4 c>a surplus"},
		},
		{
			name:       "a larger worker takes more",
			workers:    edit(fleet("a", "b"), 0, func(w *Worker) { w.Capacity = 3 }),
			partitions: topic("t", "b", "b", "b", "b"),
			want:       []string{"t-0 b>a balance", "t-1 b>a balance", "t-2 b>a balance"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			plan := Decide(row.workers, row.partitions, row.options)
			require.Equal(t, row.want, moves(plan))
			require.Len(t, plan.Waiting, row.waiting)
		})
	}
}

// TestPlaceTouchesNoOtherTopic: a topic that is added while a worker restarts must not move what the worker comes back for.
func TestPlaceTouchesNoOtherTopic(t *testing.T) {
	t.Parallel()
	partitions := slices.Concat(topic("old", "gone", "gone", "a", "a", "a"), topic("new", "", "", ""))
	partitions[7].Pin = "a"
	plan := Place(fleet("a", "b"), partitions, Options{})
	require.Equal(t, []string{"new-0 >b new", "new-1 >b new", "new-2 >a new"}, moves(plan))
	require.Len(t, plan.Waiting, 2)
}

func TestExpansionSpreadsATopic(t *testing.T) {
	t.Parallel()
	partitions := slices.Concat(topic("x", "a", "a", "b", "b", "c", "c"), topic("t", "a", "b", "c", "", "", ""))
	next := after(partitions, Place(fleet("a", "b", "c"), partitions, Options{}))
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, counts(next[6:]))
}

func TestWeights(t *testing.T) {
	t.Parallel()
	weighed := func(owners []string, weights ...float64) []Partition {
		all := topic("t", owners...)
		for i, w := range weights {
			all[i].Weight = w
		}
		return all
	}
	for _, row := range []struct {
		name       string
		partitions []Partition
		options    Options
		want       []string
	}{
		{
			name: "within the threshold nothing moves", partitions: weighed([]string{"a", "a", "b", "b"}, 55, 55, 50, 50), want: nil,
		},
		{
			name: "the fewest moves", partitions: weighed([]string{"a", "a", "a", "a", "a", "b"}, 10, 10, 10, 20, 50, 40),
			want: []string{"t-3 a>b balance"},
		},
		{
			name: "one heavy partition is no reason to move it back and forth", partitions: weighed([]string{"a", "b", "b"}, 1000, 1, 1), want: nil,
		},
		{
			name: "who has a heavy one gives the light ones away", partitions: weighed([]string{"a", "a", "b"}, 1000, 30, 40),
			want: []string{"t-1 a>b balance"},
		},
		{
			name: "unknown weights count as the mean", partitions: weighed([]string{"a", "a", "b", "b"}, 10, 30, 20, UnknownWeight), want: nil,
		},
		{
			name: "lag weighs",
			partitions: func() []Partition {
				p := weighed([]string{"a", "a", "b", "b"}, 10, 11, 10, 11)
				p[0].Lag = time.Hour
				return p
			}(),
			options: Options{CatchUp: 30 * time.Minute}, want: []string{"t-1 a>b balance"},
		},
		{
			name: "lag does not weigh unless asked",
			partitions: func() []Partition {
				p := weighed([]string{"a", "a", "b", "b"}, 10, 11, 10, 11)
				p[0].Lag = time.Hour
				return p
			}(),
			want: nil,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, moves(Decide(fleet("a", "b"), row.partitions, row.options)))
		})
	}
}

// BenchmarkDecide: 10,000 partitions on 50 workers, after nothing, a join, a loss, and with weights that have all changed.
func BenchmarkDecide(b *testing.B) {
	ids := make([]string, 50)
	for i := range ids {
		ids[i] = fmt.Sprintf("worker-%02d", i)
	}
	var fresh []Partition
	for i := range 1000 {
		fresh = append(fresh, topic(fmt.Sprintf("topic-%03d", i), make([]string, 10)...)...)
	}
	settled := after(fresh, Decide(fleet(ids...), fresh, Options{}))
	uneven := slices.Clone(settled)
	for i := range uneven {
		uneven[i].Weight = float64((i*7919)%1000) * float64((i*104729)%10)
	}
	for name, row := range map[string]struct {
		workers    []Worker
		partitions []Partition
	}{
		"fresh": {fleet(ids...), fresh}, "settled": {fleet(ids...), settled}, "join": {fleet(slices.Concat(ids, []string{"x"})...), settled},
		"loss": {fleet(ids[1:]...), settled}, "weights": {fleet(ids...), uneven}, "one-has-all": {fleet(ids...), func() []Partition {
			all := slices.Clone(settled)
			for i := range all {
				all[i].Owner = ids[0]
			}
			return all
		}()},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(row.workers, row.partitions, Options{})
			}
		})
	}
}

func TestInputIsNotChanged(t *testing.T) {
	t.Parallel()
	workers, partitions := fleet("b", "a"), topic("t", "a", "a", "a", "a")
	slices.Reverse(partitions)
	w, p := slices.Clone(workers), slices.Clone(partitions)
	plan := Decide(workers, partitions, Options{})
	require.NotEmpty(t, plan.Moves)
	require.Equal(t, w, workers)
	require.Equal(t, p, partitions)
	require.Len(t, maps.Collect(maps.All(plan.Owners)), 4)
}
