package connector

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/wire"
)

// A worker that was started after a topic had been deleted from the source was degraded, and not ready, for as long as it was told to mirror it.
func TestTopicThatTheSourceLacksHaltsItselfAlone(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	ends, part := one(t, c, nil)
	began := time.Now()
	part.since = began.Add(-time.Hour)
	look := func(err error) {
		c.mapped([]string{"t"}, map[string]*pair{"t": ends}, &wire.Metadata{Topics: map[string]wire.TopicMetadata{"t": {Err: err}}})
	}
	look(kerr.UnknownTopicOrPartition)
	require.False(t, part.halted, "a broker that has just started knows no topic")
	require.Empty(t, c.unstartedLocked(began))
	part.absent = began.Add(-absentFor)
	look(nil)
	require.True(t, part.halted)
	require.Empty(t, c.unstartedLocked(began))

	look(kerr.LeaderNotAvailable)
	require.False(t, part.halted)
	look(kerr.TopicAuthorizationFailed)
	require.True(t, part.halted)
}
