package api

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePageIsWhatItsSourcesGive compares sources and built files with what the last build noted of both, so that neither is changed without
// the other. That the build itself gives these files is checked where Node is: npm run check.
func TestThePageIsWhatItsSourcesGive(t *testing.T) {
	t.Parallel()
	const folder = "../ui"
	text, err := os.ReadFile(filepath.Join(folder, "built.sha256"))
	require.NoError(t, err)
	noted := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, path, ok := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, ok, line)
		noted[path] = sum
	}
	present := map[string]string{}
	sum := func(path string) {
		content, readErr := os.ReadFile(filepath.Join(folder, path))
		require.NoError(t, readErr)
		digest := sha256.Sum256(content)
		present[path] = hex.EncodeToString(digest[:])
	}
	for _, name := range []string{"build.mjs", "package.json", "package-lock.json", "tsconfig.json"} {
		sum(name)
	}
	for _, dir := range []string{"src", "../api/web"} {
		files, dirErr := os.ReadDir(filepath.Join(folder, dir))
		require.NoError(t, dirErr)
		for _, file := range files {
			sum(dir + "/" + file.Name())
		}
	}
	require.Equal(t, noted, present, "run make ui")
}

func TestThePageAsksNobodyElse(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	require.NoError(t, fs.WalkDir(web, "web", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "web/"), "index.html")
		code, header, body := h.do(t, "GET", "/ui/"+name)
		require.Equal(t, 200, code, name)
		require.Equal(t, pagePolicy, header.Get("Content-Security-Policy"), name)
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), name)
		require.NotEmpty(t, body, name)
		if strings.HasSuffix(path, ".html") || strings.HasSuffix(path, ".css") {
			require.NotContains(t, body, "://", name)
			require.NotContains(t, body, " style=", name)
		}
		return nil
	}))
}
