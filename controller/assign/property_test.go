package assign

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/causeway-mirror/causeway/route"
)

func drawWorkers(t *rapid.T) []Worker {
	all := make([]Worker, rapid.IntRange(1, 8).Draw(t, "workers"))
	for i := range all {
		all[i] = Worker{
			ID: fmt.Sprintf("w%d", i), Live: rapid.IntRange(0, 4).Draw(t, "live") > 0, Enabled: rapid.IntRange(0, 6).Draw(t, "enabled") > 0,
			Draining: rapid.IntRange(0, 6).Draw(t, "draining") == 0, Standby: rapid.IntRange(0, 4).Draw(t, "standby") == 0,
			Silent:   rapid.IntRange(0, 6).Draw(t, "silent") == 0,
			Capacity: rapid.SampledFrom([]float64{0, 0, 1, 2}).Draw(t, "capacity"),
		}
	}
	return all
}

func drawPartitions(t *rapid.T, workers int) []Partition {
	all := make([]Partition, rapid.IntRange(0, 60).Draw(t, "partitions"))
	id := func(label string) string { return fmt.Sprintf("w%d", rapid.IntRange(0, workers).Draw(t, label)) }
	for i := range all {
		all[i] = Partition{
			Partition: route.Partition{Topic: fmt.Sprintf("t%d", i%5), Partition: int32(i / 5)},
			Weight:    rapid.SampledFrom([]float64{UnknownWeight, 0, 1, 10, 100, 1000, 12345}).Draw(t, "weight"),
		}
		if rapid.IntRange(0, 9).Draw(t, "owned") > 0 {
			all[i].Owner = id("owner")
		}
		switch rapid.IntRange(0, 30).Draw(t, "kind") {
		case 0:
			all[i].Pin = id("pin")
		case 1:
			all[i].Stuck = true
		case 2:
			all[i].Blacklisted = true
		case 3:
			all[i].Held = all[i].Owner != ""
		case 4:
			all[i].Lag = time.Duration(rapid.IntRange(1, 1000).Draw(t, "lag")) * time.Minute
		}
	}
	return all
}

func drawOptions(t *rapid.T) Options {
	return Options{
		Threshold: rapid.SampledFrom([]float64{0, 1, 1.05, 1.2, 2}).Draw(t, "threshold"),
		MaxActive: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "active"), CatchUp: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "catch up"),
	}
}

// TestEveryDecisionKeepsTheRules: whatever the input, the rules that hold for all of it.
func TestEveryDecisionKeepsTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers := drawWorkers(t)
		partitions := drawPartitions(t, len(workers))
		o := drawOptions(t)
		plan := Decide(workers, partitions, o)
		byID := map[string]Worker{}
		usable, nobodyAnswers := 0, !slices.ContainsFunc(workers, Worker.usable)
		for _, w := range workers {
			w.Silent = w.Silent && !nobodyAnswers
			byID[w.ID] = w
			if w.usable() {
				usable++
			}
		}

		mixedW, mixedP := slices.Clone(workers), slices.Clone(partitions)
		random := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1<<30).Draw(t, "seed"))))
		random.Shuffle(len(mixedW), func(i, j int) { mixedW[i], mixedW[j] = mixedW[j], mixedW[i] })
		random.Shuffle(len(mixedP), func(i, j int) { mixedP[i], mixedP[j] = mixedP[j], mixedP[i] })
		require.Equal(t, plan, Decide(mixedW, mixedP, o), "the order of the input does not count")

		if usable == 0 {
			require.Empty(t, plan.Moves)
			return
		}
		holders, silent := map[string]bool{}, map[string]bool{}
		reasons := map[route.Partition]Reason{}
		for _, m := range plan.Moves {
			reasons[m.Partition] = m.Reason
			require.NotEqual(t, m.From, m.To)
			require.NotEmpty(t, m.Reason)
		}
		for _, p := range partitions {
			owner := plan.Owners[p.Partition]
			reason, moved := reasons[p.Partition]
			require.Equal(t, owner != p.Owner, moved)
			if p.Held {
				require.Equal(t, p.Owner, owner, "what is held stays")
				continue
			}
			if byID[p.Pin].usable() {
				require.Equal(t, p.Pin, owner, "what is pinned is there")
				continue
			}
			if w := byID[owner]; w.Silent && w.Live && w.Enabled && !w.Draining {
				require.Equal(t, p.Owner, owner, "who is silent keeps what it has and gets nothing")
				silent[owner] = true
				continue
			}
			require.Truef(t, byID[owner].usable(), "%v is with %s", p.Partition, owner)
			holders[owner] = true
			if p.Stuck && !p.Blacklisted && len(activeIDs(workers, partitions, o)) > 1 {
				require.NotEqual(t, p.Owner, owner, "what is stuck moves")
			}
			if reason == Balance {
				require.True(t, byID[p.Owner].usable(), "moved for balance, though it had to")
			}
		}
		if o.MaxActive > 0 {
			require.LessOrEqual(t, len(holders), max(1, o.MaxActive-len(silent)))
		}
		if !slices.ContainsFunc(partitions, func(p Partition) bool { return p.Stuck }) {
			require.Empty(t, Decide(workers, after(partitions, plan), o).Moves, "a second decision has nothing to do")
		}
	})
}

func activeIDs(workers []Worker, partitions []Partition, o Options) map[string]bool {
	ids := map[string]bool{}
	for _, w := range newPool(workers, partitions, o).active {
		ids[w.ID] = true
	}
	return ids
}

// TestStandbysWait: a standby gets something only when not enough others can work.
func TestStandbysWait(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		workers := drawWorkers(t)
		partitions := drawPartitions(t, len(workers))
		standbys, missing := map[string]bool{}, 0
		for _, w := range workers {
			if w.Standby {
				standbys[w.ID] = true
			} else if !w.usable() {
				missing++
			}
		}
		for i := range partitions { // they hold nothing yet
			partitions[i].Pin, partitions[i].Held = "", false
			if standbys[partitions[i].Owner] {
				partitions[i].Owner = ""
			}
		}
		if len(standbys) == len(workers) {
			return
		}
		used := map[string]bool{}
		for _, owner := range Decide(workers, partitions, Options{}).Owners {
			if standbys[owner] {
				used[owner] = true
			}
		}
		require.LessOrEqual(t, len(used), missing)
	})
}

// TestEvenPartitionsAreBalancedByTheFewestMoves: the number of moves is compared with what counting says is needed.
func TestEvenPartitionsAreBalancedByTheFewestMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "workers")
		var workers []Worker
		for i := range n {
			workers = append(workers, fleet(fmt.Sprintf("w%d", i))...)
		}
		var partitions []Partition
		for i := range rapid.IntRange(0, 6).Draw(t, "topics") {
			owners := make([]string, rapid.IntRange(0, 12).Draw(t, "partitions"))
			for j := range owners {
				owners[j] = rapid.SampledFrom([]string{"", "gone", "w0", "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"}).Draw(t, "owner")
			}
			partitions = append(partitions, topic(fmt.Sprintf("t%d", i), owners...)...)
		}
		plan := Decide(workers, partitions, Options{})
		had, has := counts(partitions), counts(after(partitions, plan))
		floor, rest := len(partitions)/n, len(partitions)%n

		var held []int
		for _, w := range workers {
			require.GreaterOrEqual(t, has[w.ID], floor)
			require.LessOrEqual(t, has[w.ID], floor+min(rest, 1))
			held = append(held, had[w.ID])
		}
		slices.SortFunc(held, func(a, b int) int { return b - a })
		stay := 0
		for i, h := range held { // who has most may keep one more
			share := floor
			if i < rest {
				share++
			}
			stay += min(h, share)
		}
		require.Len(t, plan.Moves, len(partitions)-stay)
	})
}

// TestWeightsAreBalancedAsFarAsPartitionsAllow: a worker above the threshold has nothing whose move would help, and none is further above the
// emptiest than its lightest partition.
func TestWeightsAreBalancedAsFarAsPartitionsAllow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "workers")
		var workers []Worker
		for i := range n {
			workers = append(workers, fleet(fmt.Sprintf("w%d", i))...)
		}
		owners := make([]string, rapid.IntRange(1, 60).Draw(t, "partitions"))
		for i := range owners {
			owners[i] = fmt.Sprintf("w%d", rapid.IntRange(0, n).Draw(t, "owner"))
		}
		partitions := topic("t", owners...)
		total, heaviest := 0.0, 0.0
		for i := range partitions {
			partitions[i].Weight = float64(rapid.IntRange(50, 150).Draw(t, "weight"))
			total += partitions[i].Weight
			heaviest = max(heaviest, partitions[i].Weight)
		}
		threshold := rapid.SampledFrom([]float64{1.05, 1.2, 1.5}).Draw(t, "threshold")
		next := after(partitions, Decide(workers, partitions, Options{Threshold: threshold}))
		loads, lightest := map[string]float64{}, map[string]float64{}
		for _, p := range next {
			loads[p.Owner] += p.Weight
			if l, ok := lightest[p.Owner]; !ok || p.Weight < l {
				lightest[p.Owner] = p.Weight
			}
		}
		mean := total / float64(n)
		trifle := mean * (threshold - 1) * gainShare
		least := total
		for _, w := range workers {
			least = min(least, loads[w.ID])
		}
		for _, w := range workers {
			if l := loads[w.ID]; l > max(mean, heaviest)*threshold {
				require.LessOrEqual(t, l, least+lightest[w.ID]+trifle+1e-6)
			}
			if len(partitions) > n && heaviest < mean {
				require.Greater(t, loads[w.ID], 0.0, "nobody is left out")
			}
		}
	})
}
