package connector

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// A record that is appended while it is being found out where to begin is newer than any time that was asked for, and must not be skipped.
func TestStartAtATimeSkipsNoRecordThatIsAppendedMeanwhile(t *testing.T) {
	t.Parallel()
	p, old := route.Partition{Topic: "t"}, route.Partition{Topic: "t", Partition: 1}
	const now = 1_700_000_000_000
	times := map[route.Partition][]int64{p: {1, 2, 3}, old: {1, now}}
	list := func(_ context.Context, parts map[route.Partition]int32, at int64) (map[route.Partition]wire.ListedOffset, error) {
		found := map[route.Partition]wire.ListedOffset{}
		for p := range parts {
			one := wire.ListedOffset{Offset: route.NoOffset}
			for i, written := range times[p] {
				if at >= 0 && written >= at {
					one.Offset = route.Offset(i)
					break
				}
			}
			if at == wire.AtEnd {
				one.Offset = route.Offset(len(times[p]))
			}
			found[p] = one
		}
		times[p] = append(times[p], now) // after each answer
		return found, nil
	}
	found, err := startsAt(t.Context(), list, map[route.Partition]int32{p: 0, old: 0}, now-1)
	require.NoError(t, err)
	require.Equal(t, route.Offset(3), found[p].Offset)
	require.Equal(t, route.Offset(1), found[old].Offset)

	end := len(times[old])
	found, err = startsAt(t.Context(), list, map[route.Partition]int32{old: 0}, now+1)
	require.NoError(t, err)
	require.Equal(t, route.Offset(end), found[old].Offset, "nothing is as new")
}

// Brokers may leave the cluster's id out of an answer. What is stored of it must stay, or a wrong address would not be noticed any more.
func TestAnswerWithoutAClusterIDKeepsWhatIsStored(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	require.NoError(t, c.sameClusters(t.Context(), "", "B"))
	require.NoError(t, c.sameClusters(t.Context(), "A", ""))
	require.NoError(t, c.sameClusters(t.Context(), "", ""))
	r, err := c.deps.Store.Route(t.Context())
	require.NoError(t, err)
	require.Equal(t, [2]string{"A", "B"}, [2]string{r.SourceCluster, r.TargetCluster})
	require.Equal(t, int64(2), r.Version, "written only when something is new")
	require.ErrorContains(t, c.sameClusters(t.Context(), "A", "C"), "target: the positions are of cluster B")
}
