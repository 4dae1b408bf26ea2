package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryOptionIsDocumented keeps the tables of options and keys in docs/migrate-from-ureplicator.md complete, and free of others.
func TestEveryOptionIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/migrate-from-ureplicator.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n## Options of the worker\n(.*?)\n## `).FindSubmatch(text)
	require.NotNil(t, section)
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllSubmatch(section[1], -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[1], -1) {
			require.False(t, documented[string(name[1])] && string(name[1]) != "zookeeper.connect", "twice: %s", name[1])
			documented[string(name[1])] = true
		}
	}
	known := map[string]bool{"help": true, "bootstrap.servers": true, "client.*": true}
	for _, o := range options() {
		known[o.Name] = true
	}
	for _, o := range append(consumerKeys(), producerKeys()...) {
		known[o.Name] = true
	}
	require.Equal(t, known, documented)
}

// TestOneHostHasRoomForAll reads the file of docs/cluster.md as the processes on one host do. It is not parallel: it changes the environment.
func TestOneHostHasRoomForAll(t *testing.T) {
	text, err := os.ReadFile("../../docs/cluster.md")
	require.NoError(t, err)
	file := regexp.MustCompile("(?s)`trial.yaml`.*?```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, file)
	own := bytes.ReplaceAll(file[1], []byte("…"), []byte("9092"))
	path := filepath.Join(t.TempDir(), "trial.yaml")
	require.NoError(t, os.WriteFile(path, own, 0o600))
	taken := map[string]string{}
	commands := regexp.MustCompile(`PORT=(\d+) ID=(\S+) bin/causeway-(\w+) --config trial.yaml`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, commands, 3)
	for _, c := range commands {
		t.Setenv("PORT", c[1])
		t.Setenv("ID", c[2])
		s, err := read([]string{"--config", path})
		require.NoError(t, err)
		require.Equal(t, c[2], s.id)
		require.Equal(t, "127.0.0.1:"+c[1], s.Server.Listen)
		require.Empty(t, taken[s.id]+taken[s.Server.Listen], "twice")
		taken[s.id], taken[s.Server.Listen] = c[0], c[0]
	}
}
