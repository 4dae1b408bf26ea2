package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// holding gives a term of a cluster that mirrors a topic, without its jobs.
func holding(t *testing.T, backup Backup) *Term {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Backup = backup
	r := newRig(t, cfg, "w1")
	term := newTerm(r.Controller, r.cluster)
	require.NoError(t, term.Add(t.Context(), "orders", 2))
	return term
}

func TestABackupIsWrittenWhenSomethingHasChanged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	term := holding(t, Backup{Dir: dir, Name: "env-mirrors"})
	b := newBackups(term)
	require.NoError(t, b.run(t.Context()))
	read := func(name string, into any) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, into))
	}
	var saved Saved
	read("causeway-backup-env-mirrors.json", &saved)
	require.Equal(t, []SavedTopic{{Topic: "orders", Partitions: 2, Owners: map[int32]string{0: "w1", 1: "w1"}}}, saved.Topics)
	var ideals []map[string]any
	read("idealState-backup-env-mirrors", &ideals)
	require.Equal(t, []map[string]any{{"topic": "orders", "idealStateMeta": map[string]any{
		"0": map[string]any{"w1": "ONLINE"}, "1": map[string]any{"w1": "ONLINE"},
	}}}, ideals)
	read("partitionAssgn-backup-env-mirrors", &ideals)
	require.Equal(t, "orders", ideals[0]["topic"])

	path := filepath.Join(dir, "causeway-backup-env-mirrors.json")
	require.NoError(t, os.Remove(path))
	require.NoError(t, b.run(t.Context()))
	require.NoFileExists(t, path, "nothing has changed")
	require.NoError(t, term.Delete(t.Context(), "orders"))
	require.NoError(t, b.run(t.Context()))
	require.NoFileExists(t, path, "an empty cluster is not written over a backup")
	require.NoError(t, term.Add(t.Context(), "payments", 1))
	require.NoError(t, b.run(t.Context()))
	require.FileExists(t, path)
}

// A controller that had led before never pushed again once another one had pushed.
func TestBackupsGoOnAfterTheLeaderChangedTwice(t *testing.T) {
	remote := filepath.Join(t.TempDir(), "remote.git")
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"--git-dir", remote}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	git("init", "--bare", remote)
	one := holding(t, Backup{Dir: filepath.Join(t.TempDir(), "clone"), Git: remote, Name: "m"})
	two := holding(t, Backup{Dir: filepath.Join(t.TempDir(), "clone"), Git: remote, Name: "m"})
	other := holding(t, Backup{Dir: filepath.Join(t.TempDir(), "clone"), Git: remote, Name: "other"})
	require.NoError(t, newBackups(one).run(t.Context()))
	require.NoError(t, two.Add(t.Context(), "payments", 1))
	require.NoError(t, newBackups(two).run(t.Context()), "the second controller leads")
	require.NoError(t, newBackups(other).run(t.Context()), "another route's backup is in the same repository")
	require.NoError(t, one.Add(t.Context(), "audit", 1))
	require.NoError(t, newBackups(one).run(t.Context()), "the first one leads again")
	branch := git("for-each-ref", "--format=%(refname)")
	require.Equal(t, "4", git("rev-list", "--count", branch))
	require.Contains(t, git("show", branch+":causeway-backup-m.json"), "audit")
	require.Contains(t, git("show", branch+":causeway-backup-other.json"), "orders")
}

// What was paused, limited or taken off ran from its creation until that was written, too.
func TestRestoreBringsNothingOnlineThatIsTakenOff(t *testing.T) {
	r := newRig(t, DefaultConfig(), "w1")
	w := &watched{fakeCluster: r.cluster}
	term := newTerm(r.Controller, w)
	saved := Saved{Version: SavedVersion, Topics: []SavedTopic{
		{Topic: "orders", Partitions: 2, Owners: map[int32]string{0: "w1", 1: "w1"}, Off: []int32{1}, Settings: &operator.Topic{Settings: operator.Settings{Paused: true}}},
	}}
	require.NoError(t, term.Restore(t.Context(), saved))
	require.NoError(t, term.Restore(t.Context(), saved), "again")
	require.Equal(t, []string{"pause orders", "create orders: map[0:map[w1:ONLINE] 1:map[w1:OFFLINE]]"}, w.did)

	r.cluster.live("w1", false)
	saved.Topics[0].Topic = "payments"
	require.NoError(t, term.Restore(t.Context(), saved), "without a worker, too")
	require.Equal(t, Assignment{1: {"w1": Offline}}, term.State().Topics["payments"].Assigned)
}

// Partitions moved again in a cluster that was restored.
func TestRestoreKeepsBalancingOff(t *testing.T) {
	old := newTerm(newRig(t, DefaultConfig(), "w1").Controller, newFakeCluster("w1"))
	require.NoError(t, old.SetBalancing(t.Context(), false))
	off := old.Save()
	require.NoError(t, old.SetBalancing(t.Context(), true))
	on := old.Save()
	on.Time = off.Time
	require.NotEqual(t, on, off, "or the switch alone would be no change")

	r := newRig(t, DefaultConfig(), "w1")
	term := newTerm(r.Controller, r.cluster)
	require.NoError(t, term.Restore(t.Context(), on))
	require.True(t, term.Balancing())
	require.NoError(t, term.Restore(t.Context(), off))
	require.False(t, term.Balancing())
	require.NoError(t, term.Restore(t.Context(), on))
	require.False(t, term.Balancing(), "what somebody has turned off since is not taken away")
	r.cluster.edit(func(s *State) { s.Balancing, s.Maintenance = true, true })
	require.False(t, term.Balancing())
	require.False(t, term.Save().BalancingOff, "that Helix is in maintenance is no setting of ours")
}

// What was moved by hand went wherever balance had it once the cluster was restored.
func TestRestoreKeepsPartitionsWhereTheyWereMovedByHand(t *testing.T) {
	old := newTerm(newRig(t, DefaultConfig(), "w1", "w2").Controller, newFakeCluster("w1", "w2"))
	require.NoError(t, old.Add(t.Context(), "orders", 3))
	require.NoError(t, old.Move(t.Context(), part("orders", 0), "w2"))
	require.NoError(t, old.Move(t.Context(), part("orders", 1), "w2"))
	text, err := json.Marshal(old.Save())
	require.NoError(t, err)
	var saved Saved
	require.NoError(t, json.Unmarshal(text, &saved))

	r := newRig(t, DefaultConfig(), "w1", "w2")
	term := newTerm(r.Controller, r.cluster)
	require.NoError(t, term.Add(t.Context(), "orders", 3))
	require.NoError(t, term.Move(t.Context(), part("orders", 1), "w1"))
	require.NoError(t, term.Restore(t.Context(), saved))
	require.Equal(t, map[route.Partition]string{part("orders", 0): "w2", part("orders", 1): "w1"}, term.State().Pins, "nothing is taken away")

	var invalid *InvalidError
	saved.Topics[0].Pins = map[int32]string{3: "w1"}
	require.ErrorAs(t, term.Restore(t.Context(), saved), &invalid)
	saved.Topics[0].Pins = map[int32]string{0: ""}
	require.ErrorAs(t, term.Restore(t.Context(), saved), &invalid)
}

// watched notes what is written of topics.
type watched struct {
	*fakeCluster

	did []string
}

func (w *watched) Create(ctx context.Context, topics ...Topic) error {
	for _, one := range topics {
		w.did = append(w.did, fmt.Sprintf("create %s: %v", one.Name, one.Assigned))
	}
	return w.fakeCluster.Create(ctx, topics...)
}

func (w *watched) Configure(ctx context.Context, topic string, change func(*operator.Topic)) error {
	w.did = append(w.did, "pause "+topic)
	return w.fakeCluster.Configure(ctx, topic, change)
}

func TestRestoreRefusesWhatIsNoTopicAndNoPartition(t *testing.T) {
	r := newRig(t, DefaultConfig(), "w1")
	term := newTerm(r.Controller, r.cluster)
	for name, saved := range map[string]Saved{
		"exclusion": {Version: SavedVersion, Excluded: []string{"a/b"}},
		"off":       {Version: SavedVersion, Topics: []SavedTopic{{Topic: "t", Partitions: 1, Off: []int32{1}}}},
		"owner":     {Version: SavedVersion, Topics: []SavedTopic{{Topic: "t", Partitions: 1, Owners: map[int32]string{-1: "w1"}}}},
	} {
		var invalid *InvalidError
		require.ErrorAs(t, term.Restore(t.Context(), saved), &invalid, name)
	}
	require.Empty(t, term.State().Topics)
	require.Empty(t, term.State().Excluded)
}

func TestABackupIsPushedIntoARepository(t *testing.T) {
	remote, clone := filepath.Join(t.TempDir(), "remote.git"), filepath.Join(t.TempDir(), "clone")
	run := func(args ...string) string {
		out, err := exec.Command("git", args...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	run("init", "--bare", remote)
	term := holding(t, Backup{Dir: clone, Git: remote, Name: "m"})
	b := newBackups(term)
	require.NoError(t, b.run(t.Context()))
	require.NoError(t, term.Add(t.Context(), "payments", 1))
	require.NoError(t, b.run(t.Context()))
	branch := run("--git-dir", remote, "for-each-ref", "--format=%(refname)")
	require.Equal(t, "2", run("--git-dir", remote, "rev-list", "--count", branch))
	require.Contains(t, run("--git-dir", remote, "show", branch+":causeway-backup-m.json"), "payments")

	gone := newBackups(holding(t, Backup{Dir: filepath.Join(t.TempDir(), "clone"), Git: filepath.Join(t.TempDir(), "nothing")}))
	require.ErrorContains(t, gone.run(t.Context()), "git clone")
}

// A folder that was given relative to where the controller runs was cloned into a folder of that name beside itself, and no backup was ever written;
// one in a folder that was not there yet was not cloned at all.
func TestABackupIsClonedIntoARelativeFolder(t *testing.T) {
	remote := filepath.Join(t.TempDir(), "remote.git")
	out, err := exec.Command("git", "init", "--bare", remote).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Chdir(t.TempDir())
	dir := filepath.Join("state", "backups")
	require.NoError(t, newBackups(holding(t, Backup{Dir: dir, Git: remote, Name: "m"})).run(t.Context()))
	require.FileExists(t, filepath.Join(dir, "causeway-backup-m.json"))
	require.DirExists(t, filepath.Join(dir, ".git"))
}
