package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/events"
)

// documents are checked against the program.
var documents = []string{"README.md", "docs/cli.md", "docs/events.md", "docs/api.md", "docs/cluster.md", "docs/migrate-from-ureplicator.md"}

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

// commandLines are the lines of sh blocks, and the short ones between backticks, that call causeway.
func commandLines(text string) []string {
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "bin/")
			if strings.HasPrefix(line, "causeway ") {
				lines = append(lines, line)
			}
		}
	}
	for _, inline := range regexp.MustCompile("`(causeway [a-z][^`]*)`").FindAllStringSubmatch(text, -1) {
		lines = append(lines, inline[1])
	}
	return lines
}

// TestDocumentedCommandsParse finds the command of every documented line and parses its flags and arguments.
func TestDocumentedCommandsParse(t *testing.T) {
	t.Parallel()
	for _, name := range documents {
		lines := commandLines(document(t, name))
		require.NotEmpty(t, lines, name)
		for _, line := range lines {
			root := newRoot(io.Discard, io.Discard)
			root.InitDefaultCompletionCmd()
			cmd, rest, err := root.Find(words(line)[1:])
			require.NoError(t, err, "%s: %s", name, line)
			require.NotSame(t, root, cmd, "%s: %s", name, line)
			require.NoError(t, cmd.ParseFlags(rest), "%s: %s", name, line)
			require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), "%s: %s", name, line)
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

// TestDocumentedKeysExist holds the README's configuration table against the settings.
func TestDocumentedKeysExist(t *testing.T) {
	t.Parallel()
	_, shown, _ := command(t.Context(), "config", "show", "--source", "a:1", "--target", "b:1", "--topics", "t", "-o", "yaml")
	for _, row := range regexp.MustCompile("(?m)^\\| `(?:route|worker|offsets|server|log)\\.[^|]*\\|").FindAllString(document(t, "README.md"), -1) {
		for _, key := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(row, -1) {
			last := key[1][strings.LastIndex(key[1], ".")+1:]
			require.Contains(t, shown, last+":", key[1])
		}
	}
	help, err := os.ReadFile(filepath.Join("testdata", "help", "causeway-standalone.txt"))
	require.NoError(t, err)
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)`").FindAllStringSubmatch(document(t, "README.md"), -1) {
		require.Contains(t, string(help), flag[1])
	}
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

// TestLinksLeadSomewhere follows the relative links of the documents.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, name := range documents {
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(document(t, name), -1) {
			_, err := os.Stat(filepath.Join("..", "..", filepath.Dir(name), link[1]))
			require.NoError(t, err, "%s links to %s", name, link[1])
		}
	}
}
