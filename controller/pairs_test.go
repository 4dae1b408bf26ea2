package controller

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/helix"
)

// crewOf are workers that can take partitions, but for those named with a "-" before.
func crewOf(ids ...string) map[string]Worker {
	all := map[string]Worker{}
	for _, id := range ids {
		if id[0] == '-' {
			all[id[1:]] = Worker{ID: id[1:]}
		} else {
			all[id] = Worker{ID: id, Live: true}
		}
	}
	return all
}

func twoOf(string) int { return 2 }

func nobodyIsWaitedFor(string) bool { return false }

// hot is a topic whose single partition has an owner and a standby; empty: none.
func hot(owner, standby string) Topic {
	t := Topic{Name: "hot", Partitions: 1, Assigned: Assignment{0: {owner: Online}}}
	if standby != "" {
		t.Assigned[0][standby] = Online
		t.First = map[int32]string{0: owner}
	}
	return t
}

// TestHotStandbyIsGiven has topics written as they are decided, with owners alone.
func TestHotStandbyIsGiven(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name           string
		workers        map[string]Worker
		before, now    Topic
		owner, standby string
	}{
		{"a new topic", crewOf("a", "b", "c"), Topic{}, hot("b", ""), "b", "a"},
		{"it stays where it is", crewOf("a", "b", "c"), hot("c", "b"), hot("c", "b"), "c", "b"},
		{"the owner moves, the standby stays", crewOf("a", "b", "c"), hot("a", "c"), hot("b", ""), "b", "c"},
		{"the owner moves to the standby", crewOf("a", "b", "c"), hot("a", "c"), hot("c", ""), "c", "a"},
		{"the standby is gone", crewOf("a", "b", "-c"), hot("a", "c"), hot("a", "c"), "a", "b"},
		{"nobody else is there", crewOf("a", "-c"), hot("a", "c"), hot("a", "c"), "a", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := &State{Topics: map[string]Topic{"hot": row.before}, Workers: row.workers}
			got := s.paired(row.now, true, s.held())
			require.Equal(t, row.owner, got.Owner(0))
			want := map[string]string{row.owner: Online}
			if row.standby != "" {
				want[row.standby] = Online
			}
			require.Equal(t, want, got.Assigned[0])
		})
	}
	off := hot("a", "")
	off.Assigned[0]["a"] = Offline
	s := &State{Topics: map[string]Topic{}, Workers: crewOf("a", "b")}
	require.Len(t, s.paired(off, true, s.held()).Assigned[0], 1, "a partition that is taken off has a standby")
	require.Len(t, s.paired(hot("a", "b"), false, s.held()).Assigned[0], 1, "a topic that shall have none keeps its standbys")
}

// TestHotStandbyTakesThePlaceOfAnOwnerThatIsGone decides who owns a pair of which one is gone.
func TestHotStandbyTakesThePlaceOfAnOwnerThatIsGone(t *testing.T) {
	t.Parallel()
	s := &State{Topics: map[string]Topic{"hot": hot("a", "c")}, Workers: crewOf("-a", "b", "c")}
	next, changed := s.promoted(twoOf, nobodyIsWaitedFor)
	require.Equal(t, "c", next.Topics["hot"].Owner(0))
	require.Equal(t, []string{"hot"}, slices.Collect(maps.Keys(changed)))
	require.Equal(t, "a", s.Topics["hot"].Owner(0), "a state was changed")
	next, _ = s.promoted(twoOf, func(string) bool { return true })
	require.Equal(t, "a", next.Topics["hot"].Owner(0), "an owner that is waited for was replaced")

	s.Workers = crewOf("a", "b", "c")
	_, changed = s.promoted(twoOf, nobodyIsWaitedFor)
	require.Empty(t, changed, "what is well is written again")
	s.Topics["hot"] = hot("a", "")
	_, changed = s.promoted(twoOf, nobodyIsWaitedFor)
	require.Len(t, changed, 1, "a standby lacks, and nobody gives one")
	s.Workers = crewOf("a")
	_, changed = s.promoted(twoOf, nobodyIsWaitedFor)
	require.Empty(t, changed, "there is nobody, and it is written again and again")
}

// TestHotStandbyEndsWithItsSetting has a topic that had standbys under an earlier configuration, and one to which somebody else has given two workers.
func TestHotStandbyEndsWithItsSetting(t *testing.T) {
	t.Parallel()
	others := hot("a", "b")
	others.Name, others.First = "others", nil
	s := &State{Topics: map[string]Topic{"hot": hot("b", "a"), "others": others}, Workers: crewOf("a", "b")}
	oneOf := func(string) int { return 1 }
	next, changed := s.promoted(oneOf, nobodyIsWaitedFor)
	require.Equal(t, []string{"hot"}, slices.Collect(maps.Keys(changed)))
	done := next.paired(changed["hot"], false, next.held())
	require.Equal(t, Assignment{0: {"b": Online}}, done.Assigned)
	s.Topics["hot"] = done
	_, changed = s.promoted(oneOf, nobodyIsWaitedFor)
	require.Empty(t, changed, "it is written again and again")
}

// TestRecordOfATopicWithoutStandbysStaysAsItIs writes records with and without pairs.
func TestRecordOfATopicWithoutStandbysStaysAsItIs(t *testing.T) {
	t.Parallel()
	r := helix.NewIdealState("hot", 1, 1).Record
	before := r.Clone()
	setOrder(r, hot("a", ""))
	require.Equal(t, before, r)
	setOrder(r, hot("b", "a"))
	require.Equal(t, []string{"b", "a"}, r.List["0"])
	require.Equal(t, "2", r.Simple["REPLICAS"])
	setOrder(r, hot("b", ""))
	require.Empty(t, r.List)
	require.Equal(t, "1", r.Simple["REPLICAS"])
}
