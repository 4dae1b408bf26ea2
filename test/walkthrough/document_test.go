package walkthrough_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// document is what a reader is told to write and to type.
type document struct {
	files  map[string]string  // by name
	blocks map[string][]block // of commands, by the heading that they stand below
}

// block is the commands of one sh block.
type block []command

// command is one command line.
type command struct {
	words  []string
	status int    // of the answer to a call; 0: the document tells none
	body   string // how the answer begins, or what a program prints
}

var (
	fence  = regexp.MustCompile("(?s)\n```(sh|properties|yaml|json)(?: ([a-z.-]+))?\n(.*?\n)```|\n## ([^\n]*)")
	answer = regexp.MustCompile(`^([1-5][0-9][0-9])(?: (.*))?$`)
	word   = regexp.MustCompile(`'([^']*)'|(\S+)`)
)

func documentText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// readDocument reads a file of docs/.
func readDocument(t *testing.T, name string) document {
	t.Helper()
	d := document{files: map[string]string{}, blocks: map[string][]block{}}
	heading := ""
	for _, m := range fence.FindAllStringSubmatch(documentText(t, name), -1) {
		switch kind, file, content := m[1], m[2], m[3]; {
		case m[4] != "":
			heading = m[4]
		case kind == "sh":
			d.blocks[heading] = append(d.blocks[heading], commands(t, content))
		case file != "":
			d.files[file] = content
		}
	}
	return d
}

// commands reads a block. Every line is a command, or the answer of the one before it.
func commands(t *testing.T, content string) block {
	t.Helper()
	var b block
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "# "); ok {
			require.NotEmpty(t, b, "an answer without a command: %s", line)
			b[len(b)-1].answered(t, text)
			continue
		}
		require.False(t, strings.HasPrefix(line, "#"), "a comment that is no answer: %s", line)
		var c command
		for _, m := range word.FindAllStringSubmatch(line, -1) {
			c.words = append(c.words, m[1]+m[2])
		}
		require.NotEmpty(t, c.words, "an empty line in a block of commands")
		c.words[0] = strings.TrimPrefix(c.words[0], "bin/")
		b = append(b, c)
	}
	return b
}

// answered takes what the document tells of a command's answer.
func (c *command) answered(t *testing.T, text string) {
	t.Helper()
	require.True(t, c.status == 0 && c.body == "", "a second answer: %s", text)
	if c.body = text; c.words[0] != "curl" {
		return
	}
	m := answer.FindStringSubmatch(text)
	require.NotNil(t, m, "a comment that is no answer: %s", text)
	c.status, _ = strconv.Atoi(m[1])
	c.body = m[2]
}
