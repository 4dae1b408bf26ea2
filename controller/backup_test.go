package controller

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
