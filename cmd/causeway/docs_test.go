package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mirror/causeway/events"
)

// documents are checked against the program.
var documents = []string{
	"README.md", "docs/cli.md", "docs/events.md", "docs/api.md", "docs/cluster.md", "docs/gateway.md", "docs/migrate-from-ureplicator.md", "docs/migrate-from-mirrormaker2.md",
	"docs/operations.md", "docs/runbook.md", "docs/troubleshooting.md", "docs/comparison.md", "docs/concepts.md", "docs/deploy.md", "docs/guarantees.md",
	"docs/metrics.md", "docs/performance.md", "docs/security.md",
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// words splits a command line as a shell does, as far as documents need it.
func words(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// commandLines are the lines that call causeway: those to be typed, and those that are only mentioned.
func commandLines(text string) []string { return append(typedLines(text), mentionedLines(text)...) }

// typedLines are those of sh blocks.
func typedLines(text string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "bin/")
			if strings.HasPrefix(line, "causeway ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// mentionedLines are the short ones between backticks.
func mentionedLines(text string) []string {
	var lines []string
	for _, inline := range regexp.MustCompile("`(causeway [a-z][^`]*)`").FindAllStringSubmatch(text, -1) {
		lines = append(lines, inline[1])
	}
	return lines
}

// parsed finds the command of a line and parses its flags and arguments.
func parsed(t *testing.T, line string) error {
	t.Helper()
	root := newRoot(io.Discard, io.Discard)
	root.InitDefaultCompletionCmd()
	cmd, rest, err := root.Find(words(line)[1:])
	require.NoError(t, err, line)
	require.NotSame(t, root, cmd, line)
	require.NoError(t, cmd.ParseFlags(rest), line)
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// TestDocumentedCommandsParse: what is to be typed is whole, and what is mentioned may leave out what a command needs.
func TestDocumentedCommandsParse(t *testing.T) {
	t.Parallel()
	missing := regexp.MustCompile(`(?m)^(--[^:\n]+|[A-Z]+): must be given\n?`)
	for _, name := range documents {
		text := document(t, name)
		require.NotEmpty(t, commandLines(text), name)
		for _, line := range typedLines(text) {
			require.NoError(t, parsed(t, line), "%s: %s", name, line)
		}
		for _, line := range mentionedLines(text) {
			if err := parsed(t, line); err != nil {
				require.Empty(t, missing.ReplaceAllString(err.Error(), ""), "%s: %s", name, line)
			}
		}
	}
}

// TestDocumentedConfigurationsAreValid runs each documented standalone and verify line, without a file, through the settings.
func TestDocumentedConfigurationsAreValid(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, name := range documents {
		for _, line := range commandLines(document(t, name)) {
			args := words(line)[1:]
			if args[0] != "standalone" || len(args) < 3 || strings.Contains(line, "config") {
				continue
			}
			checked++
			code, _, stderr := command(t.Context(), append([]string{"config", "validate"}, args[1:]...)...)
			require.Equal(t, 0, code, "%s: %s: %s", name, line, stderr)
		}
	}
	require.GreaterOrEqual(t, checked, 3)
}

// TestEveryCommandIsDocumented keeps docs/cli.md complete.
func TestEveryCommandIsDocumented(t *testing.T) {
	t.Parallel()
	text := document(t, "docs/cli.md")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() {
			require.Contains(t, text, "`"+cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(newRoot(io.Discard, io.Discard))
}

// shownKeys are the keys of `config show`, with those of empty maps.
func shownKeys(t *testing.T, args ...string) []string {
	t.Helper()
	code, shown, stderr := command(t.Context(), append([]string{"config", "show", "-o", "json"}, args...)...)
	require.Equal(t, 0, code, stderr)
	var doc any
	require.NoError(t, json.Unmarshal([]byte(shown), &doc))
	var keys []string
	var walk func(key string, v any)
	walk = func(key string, v any) {
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 {
			keys = append(keys, strings.TrimPrefix(key, "."))
			return
		}
		for _, name := range sortedKeys(m) {
			walk(key+"."+name, m[name])
		}
	}
	walk("", doc)
	return keys
}

// tableKeys are the keys in the first column of the README's configuration table, in full: a name without a section is beside the one before.
func tableKeys(t *testing.T) []string {
	t.Helper()
	var keys []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`(?:route|worker|offsets|server|log|coordination)\\b[^|]*)\\|").FindAllStringSubmatch(document(t, "README.md"), -1) {
		parent := ""
		for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(row[1], -1) {
			key := name[1]
			if !strings.Contains(key, ".") && parent != "" {
				key = parent + key
			}
			parent = key[:strings.LastIndex(key, ".")+1]
			keys = append(keys, key)
		}
	}
	return keys
}

// TestReadmeListsEveryKey holds the README's configuration table against `config show`, both ways.
func TestReadmeListsEveryKey(t *testing.T) {
	t.Parallel()
	shown, listed := shownKeys(t, "--source", "a:1", "--target", "b:1", "--topics", "t"), tableKeys(t)
	under := func(key, part string) bool { return key == part || strings.HasPrefix(key, part+".") }
	for _, key := range shown {
		require.True(t, slices.ContainsFunc(listed, func(part string) bool { return under(key, part) }), "README.md lacks %s", key)
	}
	for _, part := range listed {
		require.True(t, slices.ContainsFunc(shown, func(key string) bool { return under(key, part) }), "there is no %s", part)
	}
	help, err := os.ReadFile(filepath.Join("testdata", "help", "causeway-standalone.txt"))
	require.NoError(t, err)
	readme := document(t, "README.md")
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)`").FindAllStringSubmatch(readme, -1) {
		require.Contains(t, string(help), flag[1])
	}
	for _, flag := range regexp.MustCompile(`(?m)^ {6}(--[a-z-]+)`).FindAllStringSubmatch(string(help), -1) {
		if flag[1] != "--config" {
			require.Contains(t, readme, "`"+flag[1]+"`")
		}
	}
}

// TestCompleteFileIsComplete parses the file in docs/cli.md, which sets whatever can be set.
func TestCompleteFileIsComplete(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```yaml complete.yaml\n(.*?)```").FindStringSubmatch(document(t, "docs/cli.md"))
	require.Len(t, block, 2)
	file := writeFile(t, block[1])
	code, _, stderr := command(t.Context(), "config", "validate", "--config", file)
	require.Equal(t, 0, code, stderr)
	var written, shown map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block[1]), &written))
	_, text, _ := command(t.Context(), "config", "show", "--config", file)
	require.NoError(t, yaml.Unmarshal([]byte(text), &shown))
	var compare func(place string, want, got map[string]any)
	compare = func(place string, want, got map[string]any) {
		require.Equal(t, sortedKeys(want), sortedKeys(got), place)
		for name := range want {
			if inner, ok := want[name].(map[string]any); ok {
				compare(place+"."+name, inner, got[name].(map[string]any))
			}
		}
	}
	compare("", shown, written)
}

// TestEveryEventIsDocumented reads the types from their source, so that a new one cannot be forgotten.
func TestEveryEventIsDocumented(t *testing.T) {
	t.Parallel()
	source := document(t, "events/events.go")
	types := regexp.MustCompile(`Type = "([a-z_]+)"`).FindAllStringSubmatch(source, -1)
	require.Greater(t, len(types), 10)
	text := document(t, "docs/events.md")
	for _, m := range types {
		require.Regexp(t, "(?m)^\\| [^|]*`"+m[1]+"`[^|]*\\|", text)
		require.Contains(t, events.Types(), events.Type(m[1]))
	}
	require.Len(t, events.Types(), len(types))
	require.Contains(t, text, "| `"+string(events.DiskFull)+"` |")
}

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, strings.Count(document(t, "README.md"), "\n"), 150)
}

// TestLinksLeadSomewhere follows the relative links of all documents, to files and to headings.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	followed := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range regexp.MustCompile(`\]\(([^):]+)\)`).FindAllStringSubmatch(string(text), -1) {
			followed++
			file, heading, _ := strings.Cut(link[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			require.FileExists(t, existing(to), "%s links to %s", path, link[1])
			if heading != "" {
				require.Contains(t, headings(t, to), heading, "%s links to %s", path, link[1])
			}
		}
		return nil
	}))
	require.Greater(t, followed, 20)
}

// existing stands in for a folder, to which a link may lead too.
func existing(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return "main.go"
	}
	return path
}

// headings are those of a document as links name them.
func headings(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		kept := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}
