package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryOptionIsDocumented keeps the table of options in docs/migrate-from-ureplicator.md complete, and free of others.
func TestEveryOptionIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/migrate-from-ureplicator.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n## Options of the controller\n(.*?)\n## `).FindSubmatch(text)
	require.NotNil(t, section)
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllSubmatch(section[1], -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[1], -1) {
			require.False(t, documented[string(name[1])], "twice: %s", name[1])
			documented[string(name[1])] = true
		}
	}
	known := map[string]bool{}
	for _, name := range flags() {
		known[name] = true
	}
	for _, o := range options() {
		known[o.Name] = true
	}
	require.Equal(t, known, documented)
}
