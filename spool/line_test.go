package spool

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
	"github.com/causeway-mirror/causeway/route"
)

func TestWhatTheSourceHasDeletedComesFromDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.grow(20)
	r.drained()
	for round := range 3 {
		r.spilled(100)
		r.drained()
		r.until("not drained", func() bool { return len(r.told(events.SpillDrained)) == round+1 })
	}
	r.grow(20)
	r.drained()
	r.until("kept what is stored as copied", func() bool { return r.onDisk() == route.NoOffset })
	r.whole(0)
	require.Len(t, r.told(events.SpillStarted), 3)
	require.Len(t, r.told(events.SpillDrained), 3)
	require.Equal(t, r.end/perBatch*batchBytes, route.Offset(r.lane.charged), "what came from disk was counted twice against the limits, or not at all")
}

// What a lane held and lost when its target went away was fetched a second time, behind what was on disk.
func TestLaneThatIsReadAgainGetsFromDiskWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(60)
	r.lane.back()
	r.until("nothing arrived", func() bool { return r.lane.where() > 30*perBatch })
	r.lane.away() // nothing was acknowledged
	require.Zero(t, r.lane.where())
	r.drained()
	r.whole(0)
	require.Empty(t, r.lane.faults)
}

func TestStartedAgainGoesOnFromDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(60)
	r.stop()
	r.open("log")
	r.join()
	r.drained()
	r.whole(0)
	require.Empty(t, r.told(events.SpillSetAside))
}

// Before a lane runs, a worker whose target is away reads on to disk.
func TestLineWithoutLaneReadsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.NoError(t, r.line.Begin(route.Position{LeaderEpoch: -1}))
	r.grow(60)
	r.until("not on disk", func() bool { return r.onDisk() == r.end })
	r.start = r.end
	r.stop()
	r.open("log")
	require.NoError(t, r.line.Begin(route.Position{LeaderEpoch: -1}))
	r.grow(30)
	r.until("not on disk", func() bool { return r.onDisk() == r.end })
	r.start = r.end
	r.join()
	r.drained()
	r.whole(0)
}

// Before its lane ran, a partition was read on to disk as fast as its source gave it.
func TestLineWithoutLaneHeedsTheLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.NoError(t, r.line.Begin(route.Position{LeaderEpoch: -1}))
	r.grow(60)
	r.lane.limit(true)
	require.False(t, r.fetch())
	r.lane.limit(false)
	r.until("not on disk", func() bool { return r.onDisk() == r.end })
	require.Equal(t, r.end/perBatch*batchBytes, route.Offset(r.lane.charged))
	r.start = r.end
	r.join()
	r.drained()
	r.whole(0)
	require.Equal(t, r.end/perBatch*batchBytes, route.Offset(r.lane.charged), "what came from disk was counted twice against the limits")
}

// A partition that was paused while it spilled and had no lane yet was read on.
func TestLineWithoutLaneIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.NoError(t, r.line.Begin(route.Position{LeaderEpoch: -1}))
	r.grow(60)
	r.until("nothing on disk", func() bool { return r.onDisk() > 0 })
	r.line.Hold(true)
	require.False(t, r.fetch())
	r.line.Hold(false)
	r.until("not on disk", func() bool { return r.onDisk() == r.end })
}

// A disk that failed for good was only in the log.
func TestDiskThatFailsIsToldOnceUntilItIsMended(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	stands := filepath.Join(r.dir, partition.String())
	for round := range 2 {
		require.NoError(t, os.WriteFile(stands, nil, 0o600)) // no folder can be made there
		if round == 0 {
			r.join()
		}
		r.grow(20)
		r.lane.away()
		r.until("no event", func() bool { return len(r.told(events.SpillFailed)) == round+1 })
		first := r.line.since()
		r.until("not tried again", func() bool { return r.line.since().After(first) })
		require.Len(t, r.told(events.SpillFailed), round+1)
		require.Contains(t, r.line.Trouble(), "orders-3")
		require.NoError(t, os.Remove(stands))
		r.drained()
		r.until("kept what is stored as copied", func() bool { return r.onDisk() == route.NoOffset })
		r.until("not mended", func() bool { return r.line.Trouble() == "" })
	}
	r.whole(0)
	require.Empty(t, r.lane.faults)
}

// since is when the disk failed last.
func (l *Line) since() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bad.at
}

func TestSpillOfAnotherLogIsSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(60)
	r.stop()
	r.open("made anew")
	r.start = 0
	r.join()
	r.drained()
	r.whole(0)
	require.Len(t, r.told(events.SpillSetAside), 1)
}

func TestFullDiskHoldsTheSourceBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *Config) { cfg.Spill.MaxBytes = 40 * batchBytes })
	r.join()
	r.grow(200)
	r.lane.away()
	r.until("no event", func() bool { return len(r.told(events.DiskFull)) == 1 })
	require.Less(t, r.onDisk(), r.end)
	r.drained()
	r.whole(0)
	require.Empty(t, r.lane.faults)
	require.Empty(t, r.told(events.SpillFailed))
}

// What came while a write that found no room was taken back stayed in line behind it, did not adjoin, and was told as a disk that fails.
func TestFullDiskIsNoneThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *Config) { cfg.Spill.MaxBytes, cfg.Retry = 40*batchBytes, time.Millisecond })
	r.join()
	r.grow(100_000)
	r.lane.away()
	for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
		r.fetch()
	}
	require.Len(t, r.told(events.DiskFull), 1)
	require.Empty(t, r.told(events.SpillFailed))
}

// damage changes a byte in the middle of the second file.
func (r *rig) damage() {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, partition.String(), "*.spill"))
	require.NoError(r.t, err)
	slices.Sort(files)
	require.Greater(r.t, len(files), 3)
	text, err := os.ReadFile(files[1])
	require.NoError(r.t, err)
	text[len(text)/2] ^= 1
	require.NoError(r.t, os.WriteFile(files[1], text, 0o600))
}

func TestDamageIsFetchedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(100)
	r.damage()
	r.start = 0 // the source has it still
	read := len(r.read)
	r.drained()
	r.whole(0)
	require.Len(t, r.read, read)
	require.Len(t, r.told(events.SpillCorrupt), 1)
	require.Empty(t, r.lane.faults)
}

func TestDamageThatTheSourceHasNoMoreIsAGapOfItsRangeAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(100)
	r.damage()
	r.drained()
	damaged := r.told(events.SpillCorrupt)
	require.Len(t, damaged, 1)
	first, last := *damaged[0].FirstOffset, *damaged[0].LastOffset
	require.Len(t, r.lane.faults, 1)
	require.Equal(t, last+1, r.lane.faults[0].Extent.Start)
	for at := route.Offset(0); at < r.end; at += perBatch {
		require.Equal(t, at < first || at > last, r.lane.got[at], "%d", at)
	}
}

// What the source deletes before it comes to the disk is a gap when the lane comes to it, and what lies behind is on disk.
func TestGapOnTheWayToDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(50)
	gap := r.end
	r.grow(10)
	r.start = r.end
	r.spilled(50)
	r.drained()
	require.Len(t, r.lane.faults, 1)
	require.Equal(t, gap+10*perBatch, r.lane.faults[0].Extent.Start)
	for at := route.Offset(0); at < r.end; at += perBatch {
		require.Equal(t, at < gap || at >= gap+10*perBatch, r.lane.got[at], "%d", at)
	}
}

// A lane that was read again while it waited for the source to close a hole was told that the source has what lies before no more, as long as no
// worker had come to it: what was on disk was skipped.
func TestLaneThatIsReadAgainBeforeAHoleGetsFromDiskWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.join()
	r.spilled(50)
	gap := r.end
	r.grow(10)
	r.start = r.end
	r.spilled(50)
	r.lane.back()
	require.Eventually(t, func() bool { return r.line.holeEnds() == gap+10*perBatch }, 20*time.Second, time.Millisecond, "not come to the gap")
	_, stale, _ := r.line.Want()
	r.line.stepping.Lock() // all workers are busy
	r.lane.away()          // nothing was acknowledged
	r.lane.back()
	r.fetch()
	r.line.Fail(stale, &route.Fault{Class: route.SourceChanged, Code: mirror.CodeOutOfRange, Extent: route.Extent{Start: r.start}})
	r.line.stepping.Unlock()
	require.Empty(t, r.lane.faults)
	r.drained()
	require.Len(t, r.lane.faults, 1)
	for at := route.Offset(0); at < r.end; at += perBatch {
		require.Equal(t, at < gap || at >= gap+10*perBatch, r.lane.got[at], "%d", at)
	}
}

// holeEnds is up to where the source serves the lane.
func (l *Line) holeEnds() route.Offset {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hole
}

// Everything goes over the disk where no partition may hold anything in memory.
func TestNothingInMemoryIsDiskAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *Config) { cfg.Spill.Limits.MemoryCapacity = 0 })
	r.join()
	r.grow(50)
	r.drained()
	r.whole(0)
	require.Len(t, r.read, 50)
	require.Equal(t, r.end, r.onDisk())
}
