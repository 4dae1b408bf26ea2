package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/controller/assign"
	"github.com/causeway-mirror/causeway/route"
)

func TestARebalanceTellsWhoMovesWhereAndWhy(t *testing.T) {
	t.Parallel()
	move := func(n int32, from, to string, why assign.Reason) assign.Move {
		return assign.Move{Partition: route.Partition{Topic: "orders", Partition: n}, From: from, To: to, Reason: why}
	}
	require.Empty(t, summary(nil))
	require.Equal(t, "2 from w2 to w1 (owner_gone); orders-3 from nobody to w1 (new)", summary([]assign.Move{
		move(3, "", "w1", assign.New), move(1, "w2", "w1", assign.OwnerGone), move(2, "w2", "w1", assign.OwnerGone),
	}))
	var many []assign.Move
	for n := range int32(mostKinds + 2) {
		many = append(many, move(n, fmt.Sprintf("w%02d", n), "w1", assign.Drained))
	}
	require.True(t, strings.HasSuffix(summary(many), "; orders-9 from w09 to w1 (drained); and 2 other kinds of moves"), summary(many))
}
