package connector

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
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

// By policy it is no trouble to be told to mirror a topic that was deleted.
func TestTopicThatTheSourceLacksStopsByPolicy(t *testing.T) {
	t.Parallel()
	c := idle(t, io.Discard)
	c.cfg.On.Deleted = mirror.Stop
	ends, part := one(t, c, nil)
	part.absent = time.Now().Add(-absentFor)
	for range 2 {
		c.mapped([]string{"t"}, map[string]*pair{"t": ends}, &wire.Metadata{Topics: map[string]wire.TopicMetadata{"t": {Err: kerr.UnknownTopicOrPartition}}})
		s := unstarted(part, false)
		require.Equal(t, []string{"stopped", mirror.ReasonDeleted, ""}, []string{s.State, s.Reason, s.LastError})
	}
	require.Equal(t, 1, c.waiting()[mirror.Stopped])
	told := c.deps.Events.Since(0)
	require.Len(t, told, 1, "told once, however often it is tried")
	require.Equal(t, []any{events.TopicDeleted, events.Warning}, []any{told[0].Type, told[0].Severity})

	c.blocked(ends.parts, kerr.LeaderNotAvailable)
	require.Equal(t, "starting", unstarted(part, false).State)
}
