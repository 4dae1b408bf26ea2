package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// metric is one that docs/metrics.md lists, the one list of them.
type metric struct {
	labels []string // beside route, sorted
	later  bool     // it need not be there from the start
}

// metrics reads the list.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	for row := range strings.Lines(read(t, "docs/metrics.md")) {
		cell, meaning, ok := strings.Cut(strings.TrimPrefix(row, "| `causeway_"), " | ")
		if !ok || !strings.HasPrefix(row, "| `causeway_") {
			continue
		}
		later := regexp.MustCompile(`(?i)there from the first one on|only where`).MatchString(meaning)
		for _, m := range regexp.MustCompile("`?(causeway_[a-z_]+)(?:{([a-z_,]+)})?`").FindAllStringSubmatch("causeway_"+cell, -1) {
			require.NotContains(t, all, m[1], "twice")
			one := metric{later: later}
			if m[2] != "" {
				one.labels = strings.Split(m[2], ",")
				slices.Sort(one.labels)
			}
			all[m[1]] = one
		}
	}
	require.NotEmpty(t, all)
	return all
}

// defined finds the metrics that the programs' sources define, with their labels; nil where those are not written beside the name.
func defined(t *testing.T) map[string]*[]string {
	t.Helper()
	all := map[string]*[]string{}
	fset := token.NewFileSet()
	root := inRoot(".")
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"test", "deploy", "tools", "bin", "node_modules", "testdata"}, name)):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if name := metricName(call); name != "" {
					require.NotContains(t, all, name, "defined twice")
					all[name] = labelsOf(call)
				}
			}
			return true
		})
		return nil
	}))
	return all
}

// metricName is the name of the metric that a call makes.
func metricName(call *ast.CallExpr) string {
	for _, arg := range call.Args {
		if name := text(arg); strings.HasPrefix(name, "causeway_") {
			return name
		}
		options, ok := arg.(*ast.CompositeLit)
		if !ok {
			continue
		}
		for _, field := range options.Elts {
			if pair, isPair := field.(*ast.KeyValueExpr); isPair && strings.HasPrefix(text(pair.Value), "causeway_") {
				return text(pair.Value)
			}
		}
	}
	return ""
}

// labelsOf are the variable labels of the metric that a call makes, sorted: in a list of their own, or what stands behind name and help.
func labelsOf(call *ast.CallExpr) *[]string {
	labels := []string{}
	for i, arg := range call.Args {
		switch arg := arg.(type) {
		case *ast.CompositeLit:
			if _, list := arg.Type.(*ast.ArrayType); list {
				for _, one := range arg.Elts {
					labels = append(labels, text(one))
				}
			}
		case *ast.BasicLit:
			if i > 1 {
				labels = append(labels, text(arg))
			}
		case *ast.Ident:
			if i == 1 {
				return nil // a list that several metrics share
			}
		}
	}
	slices.Sort(labels)
	return &labels
}

func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return s
}

// TestEveryMetricIsDocumented holds docs/metrics.md against the sources, both ways, names and labels.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	listed, found := metrics(t), defined(t)
	require.Greater(t, len(found), 30)
	for name, labels := range found {
		require.Contains(t, listed, name, "docs/metrics.md lacks it")
		if labels != nil {
			require.Subset(t, listed[name].labels, *labels, "labels of %s; those that are constant stand elsewhere", name)
		}
	}
	for name := range listed {
		require.Contains(t, found, name, "docs/metrics.md lists what no program has")
	}
	for _, m := range regexp.MustCompile(`causeway_[a-z_]+[a-z]`).FindAllString(read(t, "README.md"), -1) {
		require.Contains(t, listed, m, "README.md lists what no program has")
	}
}

// use is a metric as an expression names it.
type use struct {
	name   string
	labels map[string][]string // label: the values that are looked for
}

var (
	selector = regexp.MustCompile(`\b((?:causeway|go|process)_[a-z0-9_]+|up\b)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)`)
)

// uses are the metrics that an expression names, and grouped the labels that it groups by.
func uses(expr string) (all []use, grouped []string) {
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		u := use{name: m[1], labels: map[string][]string{}}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			u.labels[l[1]] = strings.Split(l[2], "|")
		}
		all = append(all, u)
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			grouped = append(grouped, strings.TrimSpace(label))
		}
	}
	return all, grouped
}

// requireServed fails unless all metrics and labels of an expression are listed ones, or Go's and Prometheus' own.
func requireServed(t *testing.T, listed map[string]metric, where, expr string) {
	t.Helper()
	all, grouped := uses(expr)
	require.NotEmpty(t, all, "%s names no metric", where)
	known := []string{"route", "job", "instance", "le"}
	for _, u := range all {
		own := []string{"route", "job", "instance"}
		if strings.HasPrefix(u.name, "causeway_") {
			name := u.name
			if _, ok := listed[name]; !ok {
				name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
				own = append(own, "le")
			}
			require.Contains(t, listed, name, where)
			own = append(own, listed[name].labels...)
		}
		for label := range u.labels {
			require.Contains(t, own, label, "%s: %s has no such label", where, u.name)
		}
		known = append(known, own...)
	}
	for _, label := range grouped {
		require.Contains(t, known, label, "%s: none of its metrics has it", where)
	}
}
