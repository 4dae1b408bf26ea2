package fetcher

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// The expected values are those of Java's String.hashCode.
func TestJavaHash(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, s string
		want    int32
	}{
		{"empty", "", 0},
		{"one letter", "a", 97},
		{"ascii", "hello", 99162322},
		{"wraps to the least value", "polygenelubricants", -2147483648},
		{"two strings of one hash, first", "Aa", 2112},
		{"two strings of one hash, second", "BB", 2112},
		{"Latin-1", "é", 233},
		{"three bytes", "€", 8364},
		{"surrogate pair", "😀", 1772899}, // 31·0xd83d + 0xde00
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, javaHash(row.s))
		})
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	// 31·99162322+3 wraps to -1220935311; without the sign bit that is 926548337.
	require.Equal(t, int(926548337%7), Index(route.Partition{Topic: "hello", Partition: 3}, 7))
	for p := range int32(100) {
		require.Zero(t, Index(route.Partition{Topic: "polygenelubricants", Partition: p}, 1))
		require.Less(t, Index(route.Partition{Topic: "polygenelubricants", Partition: p}, 3), 3)
	}
}
