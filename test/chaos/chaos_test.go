package chaos_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// settings are CHAOS_SEED and CHAOS_FOR: without them any seed, and as long as CI has time for.
func settings(t *testing.T) (seed uint64, lasting time.Duration) {
	t.Helper()
	seed, lasting = rand.Uint64(), 12*time.Second
	if testkit.Long() {
		lasting = 10 * time.Minute
	}
	var err error
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CHAOS_SEED")
	}
	if text := os.Getenv("CHAOS_FOR"); text != "" {
		lasting, err = time.ParseDuration(text)
		require.NoError(t, err, "CHAOS_FOR")
	}
	return seed, lasting
}

// TestChaos does to a cluster what a seed says: each record arrives once, in order, but for what events name.
func TestChaos(t *testing.T) {
	seed, lasting := settings(t)
	t.Logf("CHAOS_SEED=%d CHAOS_FOR=%v", seed, lasting)
	versions := []string{kafkatest.Kafka4}
	if lasting > time.Minute {
		versions = []string{kafkatest.Kafka3, kafkatest.Kafka4}
	}
	s := newStage(t, versions...)
	subjects := everything(len(versions), len(s.workers), len(s.disks))
	if lasting <= time.Minute {
		for i := range subjects {
			subjects[i].rest /= 3
		}
	}
	schedule := plan(seed, lasting, subjects)
	for _, a := range schedule {
		t.Log(a)
	}
	t.Log("logs are below", t.ArtifactDir())
	err := s.play(t.Context(), schedule)
	t.Log("all faults are over")
	require.NoError(t, err)
	s.heal(t)
	s.verdict(t)
	for _, a := range s.actors() {
		require.NoError(t, a.alive())
		require.NoError(t, a.Stop())
		require.Equal(t, 0, a.ExitCode(), a.id)
	}
}

// play does all actions, each at its time or when the former one of its subject is over.
func (s *stage) play(ctx context.Context, schedule []action) error {
	courses := map[string][]action{}
	for _, a := range schedule {
		courses[a.subject] = append(courses[a.subject], a)
	}
	began := time.Now()
	all, ctx := errgroup.WithContext(ctx)
	for _, course := range courses {
		all.Go(func() error {
			for _, a := range course {
				await(ctx, a.at-time.Since(began))
				if err := ctx.Err(); err != nil {
					return err // of another course, whose own error came first
				}
				s.t.Logf("%s: at %.3fs %s %s", time.Now().UTC().Format("15:04:05.000"), time.Since(began).Seconds(), a.subject, a.kind)
				if err := s.strike(ctx, a); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// heal waits until everything flows again, ends the feeds and waits until all is copied.
func (s *stage) heal(t *testing.T) {
	t.Helper()
	for _, c := range s.clusters {
		require.NoError(t, inSync(t.Context(), c))
	}
	began := time.Now()
	require.NoError(t, s.caughtUp(t.Context()))
	t.Logf("everything is copied %v after the last fault", time.Since(began))
	await(t.Context(), time.Second) // fresh records for each partition
	for _, f := range s.feeds {
		require.NoError(t, f.end())
	}
	require.NoError(t, s.caughtUp(t.Context()))
	for _, a := range s.actors() {
		require.NoError(t, a.alive())
		a.sample()
	}
}
