package testkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGuaranteesNameTestsThatExist: docs/guarantees.md names for each case the tests that show it. Each must be there, and each case once.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	require.NoError(t, err)
	cases := map[string]int{}
	for _, line := range regexp.MustCompile(`(?m)^\| (C\d+) \|.*$`).FindAllSubmatch(text, -1) {
		cases[string(line[1])]++
		require.Regexp(t, "`[a-z/]+\\.Test", string(line[0]))
	}
	for n := 1; n <= 31; n++ {
		want := 1
		if n == 19 || n >= 21 && n <= 25 { // they are about the sync of configurations, groups and permissions
			want = 0
		}
		require.Equal(t, want, cases[fmt.Sprintf("C%d", n)], "lines of C%d", n)
	}
	tests := map[string]string{}
	named := regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)(?:/(C\\d+))?`").FindAllSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		folder, name, part := string(m[1]), string(m[2]), string(m[3])
		if tests[folder] == "" {
			tests[folder] = testsOf(t, filepath.Join(root, filepath.FromSlash(folder)))
		}
		_, body, found := strings.Cut(tests[folder], "\nfunc "+name+"(t *testing.T)")
		require.True(t, found, "%s has no %s", folder, name)
		if part != "" {
			body, _, _ = strings.Cut(body, "\n}\n")
			require.Regexp(t, `t\.Run\("[^"]*\b`+part+`\b`, body, "%s.%s", folder, name)
		}
	}
}

// testsOf is all test files of a folder, one behind the other.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
