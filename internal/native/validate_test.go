package native

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

func TestStart(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"earliest": true, "latest": true, "2026-01-02T03:04:05Z": true, "90m": true,
		"": false, "0s": false, "-1h": false, "2026-01-02": false, "Earliest": false,
	} {
		require.Equal(t, good, validateStart(text) == nil, text)
	}
}

// judge returns the faults of every section of a file that is f's defaults with one change.
func judge(change func(*File)) string {
	f := Default()
	f.Coordination.ZooKeeper = "zk1:2181,zk2:2181/chroot"
	change(&f)
	err := errors.Join(f.ValidateModes(), f.ValidateWorker(), f.ValidateCoordination(), f.ValidateOffsets(StoreZooKeeper, StoreFile),
		f.ValidateController(), f.ValidateServer(), f.ValidateLog())
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestEveryFaultNamesItsKey(t *testing.T) {
	t.Parallel()
	require.Empty(t, judge(func(*File) {}))
	for key, change := range map[string]func(*File){
		"route.isolation":                 func(f *File) { f.Route.Isolation = "none" },
		"route.limits.records_per_second": func(f *File) { f.Route.Limits.RecordsPerSecond = -1 },
		"route.loops":                     func(f *File) { f.Route.Loops = "keep" },
		"route.start":                     func(f *File) { f.Route.Start = "soon" },
		"worker.memory":                   func(f *File) { f.Worker.Memory = 1 << 20 },
		"worker.ack_window":               func(f *File) { f.Worker.AckWindow = 10_001 },
		"worker.commit_interval":          func(f *File) { f.Worker.CommitInterval = 1 },
		"worker.in_flight":                func(f *File) { f.Worker.InFlight = "much" },
		"worker.spill.max_bytes":          func(f *File) { f.Worker.Spill.MaxBytes = 1 << 20 },
		"worker.spill.dir":                func(f *File) { f.Worker.Spill.MaxBytes = 1 << 30 },
		"worker.spill.memory_capacity":    func(f *File) { f.Worker.Spill.MemoryCapacity = -1 },
		"coordination.zookeeper":          func(f *File) { f.Coordination.ZooKeeper = "zk1:,zk2" },
		"coordination.cluster":            func(f *File) { f.Coordination.Cluster = "a/b" },
		"coordination.session_timeout":    func(f *File) { f.Coordination.SessionTimeout = 1 },
		"offsets.store":                   func(f *File) { f.Offsets.Store = "memory" },
		"offsets.zookeeper":               func(f *File) { f.Offsets.ZooKeeper = ":2181" },
		"offsets.group":                   func(f *File) { f.Offsets.Group = "a/b" },
		"offsets.dir":                     func(f *File) { f.Offsets.Store, f.Offsets.Dir = StoreFile, "" },
		"controller.rebalance.threshold":  func(f *File) { f.Controller.Rebalance.Threshold = 0.5 },
		"controller.rebalance.handover":   func(f *File) { f.Controller.Rebalance.Handover = "fast" },
		"controller.standby_workers":      func(f *File) { f.Controller.StandbyWorkers = -1 },
		"controller.backup.dir":           func(f *File) { f.Controller.Backup.Git = "git@host:repo" },
		"server.listen":                   func(f *File) { f.Server.Listen = "8080" },
		"log.level":                       func(f *File) { f.Log.Level = "loud" },
	} {
		require.Contains(t, judge(change), key)
	}
}

func TestPoliciesAreThoseThatAreThere(t *testing.T) {
	t.Parallel()
	for key, words := range route.Policies() {
		for _, word := range words {
			require.NoError(t, validatePolicies(map[string]string{key: word}))
		}
	}
	require.ErrorContains(t, validatePolicies(map[string]string{"refused": "raise"}), `route.on.refused "raise": this version can only halt, skip, dead-letter`)
	for topic, good := range map[string]bool{
		"{topic}.dead-letter": true, "dead_letters": true, "x-{topic}": true, "": false, "{topic}": false, "{target}.x": false, "a b": false, "..": false,
	} {
		require.Equal(t, good, validateDeadLetter(topic) == nil, topic)
	}
}

// TestProgramsWithoutFlagsNameNone: a worker told of `server.listen (--listen)`, which it does not have.
func TestProgramsWithoutFlagsNameNone(t *testing.T) {
	t.Parallel()
	f := Default()
	f.Server.Listen, f.Route.Source.Name = "8080", ""
	err := Unflagged(errors.Join(f.ValidateServer(), f.ValidateRoute()))
	require.ErrorContains(t, err, `server.listen "8080": must be HOST:PORT or :PORT`)
	require.ErrorContains(t, err, "route.source: bootstrap: ")
	require.NotContains(t, err.Error(), "(--")
	var fault *FaultError
	require.ErrorAs(t, err, &fault)
	require.NoError(t, Unflagged(nil))
}

func TestNamesHaveDefaults(t *testing.T) {
	t.Parallel()
	f := Default()
	f.Route.Source.Name, f.Route.Target.Name = "sjc1", "dca1"
	f.Coordination.ZooKeeper = "zk1:2181"
	require.Equal(t, "causeway-sjc1-dca1", f.Group())
	require.Equal(t, "zk1:2181", f.OffsetsZooKeeper())
	require.NotEmpty(t, f.WorkerID("w"))
	f.Worker.ID, f.Offsets.Group, f.Offsets.ZooKeeper = "w9", "g", "zk9:2181"
	require.Equal(t, []string{"w9", "g", "zk9:2181"}, []string{f.WorkerID("w"), f.Group(), f.OffsetsZooKeeper()})
}

func TestSpillGoesBelowThePositions(t *testing.T) {
	t.Parallel()
	f := Default()
	f.Offsets.Store, f.Offsets.Dir, f.Worker.Spill.MaxBytes = StoreFile, "/var/lib/causeway", 1<<30
	require.NoError(t, f.ValidateWorker())
	require.Equal(t, "/var/lib/causeway/spill", f.Spill().Dir)
	require.NoError(t, f.Spill().Validate())
	f.Worker.Spill.Dir = "/big"
	require.Equal(t, "/big", f.Spill().Dir)
}

func TestLoopsAreDroppedWhereOthersMayWrite(t *testing.T) {
	t.Parallel()
	f := Default()
	f.Route.Loops = LoopsDrop
	require.NoError(t, f.ValidateModes())
	f.Coordination.ZooKeeper = "zk1:2181"
	require.ErrorContains(t, f.ValidateCoordination(), "route.loops")
	f.Route.On["foreign_writer"] = "halt"
	require.ErrorContains(t, f.ValidateModes(), "route.on.foreign_writer: halt")
}
