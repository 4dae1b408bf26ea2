package kafkatest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func marks(sums ...uint64) []mark {
	var list []mark
	for i, sum := range sums {
		list = append(list, mark{sum, int64(i)})
	}
	return list
}

func TestDiffOfPartition(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		src, dst []mark
		want     Diff
	}{
		{"both empty", nil, nil, Diff{}},
		{"equal", marks(1, 2, 3), marks(1, 2, 3), Diff{Records: 3}},
		{"equal with repeated records", marks(1, 1, 2), marks(1, 1, 2), Diff{Records: 3}},
		{"end missing", marks(1, 2, 3), marks(1, 2), Diff{Records: 3, Lost: 1}},
		{"middle missing", marks(1, 2, 3), marks(1, 3), Diff{Records: 3, Lost: 1}},
		{"second copy at once", marks(1, 2, 3), marks(1, 2, 2, 3), Diff{Records: 3, Extra: 1}},
		{"second copy of a run", marks(1, 2, 3, 4), marks(1, 2, 3, 2, 3, 4), Diff{Records: 4, Extra: 2}},
		{"foreign record", marks(1, 2), marks(1, 9, 2), Diff{Records: 2, Extra: 1}},
		{"swapped", marks(1, 2, 3), marks(2, 1, 3), Diff{Records: 3, Disordered: 1}},
		{"late", marks(1, 2, 3, 4), marks(2, 3, 4, 1), Diff{Records: 4, Disordered: 1}},
		{"changed", marks(1, 2, 3), marks(1, 9, 3), Diff{Records: 3, Lost: 1, Extra: 1}},
		{"all missing", marks(1, 2), nil, Diff{Records: 2, Lost: 2}},
		{"all too much", nil, marks(1, 2), Diff{Extra: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got Diff
			got.partition(0, tc.src, tc.dst)
			require.Equal(t, tc.want.Lost+tc.want.Extra+tc.want.Disordered > 0, got.First != "", got.First)
			require.Equal(t, got.First == "", got.Equal())
			got.First = ""
			require.Equal(t, tc.want, got)
		})
	}
}
