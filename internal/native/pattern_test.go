package native

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func filterOf(t *testing.T, include, exclude []string) Filter {
	t.Helper()
	var f Filter
	for _, text := range include {
		p, err := compilePattern(text)
		require.NoError(t, err)
		f.include = append(f.include, p)
	}
	for _, text := range exclude {
		p, err := compilePattern(text)
		require.NoError(t, err)
		f.exclude = append(f.exclude, p)
	}
	return f
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	f := filterOf(t, []string{"orders|bills", `pay\..*`, "__.*"}, []string{".*secret"})
	for _, row := range []struct {
		topic    string
		internal bool
		want     string
	}{
		{"orders", false, ""},
		{"bills", false, ""},
		{"orders2", false, "matches no include pattern"}, // whole name, also with an alternation
		{"my-bills", false, "matches no include pattern"},
		{"pay.eu", false, ""},
		{"payXeu", false, "matches no include pattern"},
		{"pay.secret", false, "matches the exclude pattern .*secret"},
		{"__consumer_offsets", false, "internal topic"},
		{"orders", true, "internal topic"},
	} {
		require.Equal(t, row.want, f.Refusal(row.topic, row.internal), row.topic)
	}
}

func TestMissingNamesOnlyLiterals(t *testing.T) {
	t.Parallel()
	f := filterOf(t, []string{"orders", "eu.bills", `eu\.pay`, "clicks.*", "there"}, nil)
	require.Equal(t, []string{"orders", "eu.bills", "eu.pay"}, f.Missing(func(name string) bool { return name == "there" }))
}

func TestCompilePattern(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a(", "a)|(b", "[z-a]"} {
		_, err := compilePattern(text)
		require.Error(t, err, text)
	}
}

func TestSplitPatterns(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a", "b{1,2}", "[x,y]z", "(p,q)", `r\,s`, "t"}, SplitPatterns(`a, b{1,2},[x,y]z,(p,q),r\,s ,t`))
	require.Equal(t, []string{""}, SplitPatterns(""))
}
