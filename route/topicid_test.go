package route

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The id of a stored position that was cut short or has too much was read as another topic's id, and the topic taken for one that was deleted and
// created anew.
func TestTopicIDOfAnotherLengthIsRefused(t *testing.T) {
	t.Parallel()
	want := TopicID{1, 2, 3, 15: 16}
	text, err := want.MarshalText()
	require.NoError(t, err)
	var id TopicID
	require.NoError(t, id.UnmarshalText(text))
	require.Equal(t, want, id)
	for _, wrong := range []string{string(text[:len(text)-2]), string(text) + "AAAA", "AA", "?"} {
		require.Error(t, id.UnmarshalText([]byte(wrong)), wrong)
		require.True(t, id.IsZero())
	}
	require.NoError(t, id.UnmarshalText(nil))
	require.True(t, id.IsZero())
}
