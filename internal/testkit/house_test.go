package testkit_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var callsMain = regexp.MustCompile(`(?s)func TestMain\(.*\b(testkit|kafkatest)\.Main\(`)

// house is what the walk over a module finds.
type house struct {
	fset   *token.FileSet
	faults []string
	tested map[string]bool // folder with tests: TestMain is as it should be
	docs   map[string]bool // folder of a library: doc.go is there
}

// inspect returns the breaches of the house rules that no linter sees, below root.
func inspect(t *testing.T, root string) []string {
	t.Helper()
	h := &house{fset: token.NewFileSet(), tested: map[string]bool{}, docs: map[string]bool{}}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if d.IsDir() && path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || anotherModule(path)) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		return h.file(path)
	}))
	for dir, ok := range h.tested {
		if !ok {
			h.faults = append(h.faults, dir+": has tests, but no TestMain that calls testkit.Main or kafkatest.Main")
		}
	}
	for dir, ok := range h.docs {
		if !ok {
			h.faults = append(h.faults, dir+": has no doc.go")
		}
	}
	for i, fault := range h.faults {
		h.faults[i] = strings.TrimPrefix(fault, root+string(filepath.Separator))
	}
	return h.faults
}

// anotherModule says that a folder is not of this module: it holds tools, and tests that need what the programs must not.
func anotherModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func (h *house) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(h.fset, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	dir, isTest := filepath.Dir(path), strings.HasSuffix(path, "_test.go")
	if isTest {
		h.tested[dir] = h.tested[dir] || callsMain.Match(text)
	}
	if file.Name.Name != "main" {
		h.docs[dir] = h.docs[dir] || filepath.Base(path) == "doc.go"
	}
	if n := bytes.Count(text, []byte("\n")); n > 800 {
		h.faults = append(h.faults, fmt.Sprintf("%s: has %d lines, more than 800", path, n))
	}
	owned := map[int]bool{} // lines that a comment about an owner covers
	for _, group := range file.Comments {
		if strings.Contains(strings.ToLower(group.Text()), "owned by") {
			owned[h.fset.Position(group.Pos()).Line] = true
			owned[h.fset.Position(group.End()).Line+1] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if at := h.fset.Position(n.Pos()); !isTest && !owned[at.Line] {
				h.faults = append(h.faults, fmt.Sprintf("%s:%d: bare go statement without \"// owned by\"", path, at.Line))
			}
		case *ast.StructType:
			if f := n.Fields.NumFields(); f > 20 {
				h.faults = append(h.faults, fmt.Sprintf("%s:%d: struct has %d fields, more than 20", path, h.fset.Position(n.Pos()).Line, f))
			}
		}
		return true
	})
	return nil
}

func TestModuleKeepsTheHouseRules(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	faults := inspect(t, root)
	require.Empty(t, faults, "\n%s", strings.Join(faults, "\n"))
}

func TestInspectFindsEachBreach(t *testing.T) {
	t.Parallel()
	many := "package p\ntype s struct {" + strings.Repeat("_ int\n", 21) + "}\n"
	testMain := "package p\nfunc TestMain(m *testing.M) { testkit.Main(m) }\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"clean", map[string]string{"p/doc.go": "package p\n", "p/p_test.go": testMain, "p/a.go": "package p\nfunc f() { go f() } // owned by nobody: a test\n"}, ""},
		{"owner above", map[string]string{"p/doc.go": "package p\nfunc f() {\n// owned by nobody: a\n// test\ngo f()\n}\n"}, ""},
		{"bare go", map[string]string{"p/doc.go": "package p\nfunc f() {\ngo f()\n}\n"}, "p/doc.go:3: bare go statement without \"// owned by\""},
		{"bare go in a test", map[string]string{"p/doc.go": "package p\n", "p/p_test.go": testMain + "func f() { go f() }\n"}, ""},
		{"large struct", map[string]string{"p/doc.go": many}, "p/doc.go:2: struct has 21 fields, more than 20"},
		{"long file", map[string]string{"p/doc.go": "package p\n" + strings.Repeat("\n", 800)}, "p/doc.go: has 801 lines, more than 800"},
		{"no doc.go", map[string]string{"p/a.go": "package p\n"}, "p: has no doc.go"},
		{"program", map[string]string{"p/a.go": "package main\n"}, ""},
		{"no TestMain", map[string]string{"p/doc.go": "package p\n", "p/p_test.go": "package p\n"}, "p: has tests, but no TestMain that calls testkit.Main or kafkatest.Main"},
		{"test data", map[string]string{"testdata/a.go": many}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for name, text := range tc.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			require.Equal(t, tc.want, strings.Join(inspect(t, root), "\n"))
		})
	}
}
