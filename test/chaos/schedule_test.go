package chaos_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kind is a fault by name, and how long it lasts: at least and at most, both 0 for one that is over at once.
type kind struct {
	name        string
	least, most time.Duration
}

// subject is something that one fault at a time happens to.
type subject struct {
	name  string
	kinds []kind
	rest  time.Duration // between the end of a fault and the next one, on average
}

// action is one fault of a schedule.
type action struct {
	at      time.Duration // since the beginning
	subject string
	kind    string
	lasting time.Duration
	choice  uint64 // for what is left to choose where it strikes: a broker, a partition, a delay
}

func (a action) String() string {
	return fmt.Sprintf("%8.3fs %s %s for %.3fs (%d)", a.at.Seconds(), a.subject, a.kind, a.lasting.Seconds(), a.choice)
}

// plan is the schedule of a seed, ordered by time. Each subject has a course of its own that the others don't change; on it each kind of fault
// comes once before any comes again.
func plan(seed uint64, lasting time.Duration, subjects []subject) (all []action) {
	for _, s := range subjects {
		name := fnv.New64a()
		_, _ = name.Write([]byte(s.name)) // a hash does not fail
		random := rand.New(rand.NewPCG(seed, name.Sum64()))
		between := func(least, most time.Duration) time.Duration {
			return least + time.Duration(random.Int64N(int64(most-least+1)))
		}
		for at := between(0, s.rest); at < lasting; {
			for _, i := range random.Perm(len(s.kinds)) {
				k := s.kinds[i]
				a := action{at: at, subject: s.name, kind: k.name, lasting: between(k.least, k.most), choice: random.Uint64()}
				if at += a.lasting; at > lasting {
					break
				}
				all = append(all, a)
				at += between(s.rest/2, s.rest*3/2)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	return all
}

func TestSeedReproducesTheSchedule(t *testing.T) {
	subjects := everything(2, 3, 3)
	one := plan(7, 10*time.Minute, subjects)
	require.Equal(t, one, plan(7, 10*time.Minute, subjects))
	require.NotEqual(t, one, plan(8, 10*time.Minute, subjects))

	// taking a subject away leaves the courses of the others
	rest := slices.DeleteFunc(slices.Clone(one), func(a action) bool { return a.subject == subjects[0].name })
	require.Equal(t, rest, plan(7, 10*time.Minute, subjects[1:]))
}

func TestScheduleHasEachFaultAndOneAtATimeOfASubject(t *testing.T) {
	const lasting = 10 * time.Minute
	subjects := everything(2, 3, 3)
	seen, until := map[string]int{}, map[string]time.Duration{}
	last := time.Duration(0)
	for _, a := range plan(1, lasting, subjects) {
		require.GreaterOrEqual(t, a.at, last)
		require.GreaterOrEqual(t, a.at, until[a.subject], a)
		last, until[a.subject] = a.at, a.at+a.lasting
		require.LessOrEqual(t, until[a.subject], lasting, a)
		seen[a.subject+" "+a.kind]++
	}
	for _, s := range subjects {
		for _, k := range s.kinds {
			require.NotZero(t, seen[s.name+" "+k.name], "%s %s", s.name, k.name)
		}
	}
}
