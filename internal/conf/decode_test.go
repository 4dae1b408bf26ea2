package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

type limits struct {
	Records int64 `yaml:"records_per_second"`
	Bytes   Bytes `yaml:"bytes_per_second"`
}

type cluster struct {
	Name      string   `yaml:"name"`
	Bootstrap []string `yaml:"bootstrap"`
	Password  string   `yaml:"password"`
	TLS       *struct {
		CAFile string `yaml:"ca_file"`
	} `yaml:"tls"`
}

type settings struct {
	Source    cluster           `yaml:"source"`
	Streams   int               `yaml:"streams"`
	Share     float64           `yaml:"share"`
	Create    bool              `yaml:"create"`
	Memory    Bytes             `yaml:"memory"`
	Interval  Duration          `yaml:"commit_interval"`
	Timeout   time.Duration     `yaml:"timeout"`
	Mapping   map[string]string `yaml:"mapping"`
	Overrides map[string]limits `yaml:"overrides"`
	Free      any               `yaml:"free"`
	limits    `yaml:",inline"`
	hidden    int
}

func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"STREAMS": "7", "HOST": "kafka-a:9092", "PASSWORD": "007", "NULL": "null", "EMPTY": "", "EVIL": "x\nstreams: 99 # }", "MEMORY": "64KiB", "SECRET": "hunter2",
	}[name]
	return value, ok
}

func TestDecodeOverDefaults(t *testing.T) {
	t.Parallel()
	got := settings{Streams: 4, Create: true, Memory: 256 << 20, Mapping: map[string]string{"kept": "k"}, hidden: 1}
	require.NoError(t, Decode([]byte(`
source: &s
  name: sjc1
  bootstrap: [a:1, b:2]
  tls: {ca_file: /ca.pem}
share: 1.5
commit_interval: 1h30m
timeout: 5s
streams:
mapping: {a: b, "1": 2}
overrides: {orders: {records_per_second: 5, bytes_per_second: 10MB}}
free: [1, {x: y}]
bytes_per_second: 10
`), &got, environment))
	require.Equal(t, []string{"a:1", "b:2"}, got.Source.Bootstrap)
	require.Equal(t, "/ca.pem", got.Source.TLS.CAFile)
	require.Equal(t, 4, got.Streams, "a key without value leaves the default")
	require.True(t, got.Create)
	require.Equal(t, Bytes(256<<20), got.Memory)
	require.Equal(t, 90*time.Minute, got.Interval.Duration())
	require.Equal(t, 5*time.Second, got.Timeout)
	require.Equal(t, map[string]string{"kept": "k", "a": "b", "1": "2"}, got.Mapping)
	require.Equal(t, limits{5, 10_000_000}, got.Overrides["orders"])
	require.Equal(t, Bytes(10), got.Bytes)
}

func TestEmptyFilesSetNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "null\n"} {
		got := settings{Streams: 4}
		require.NoError(t, Decode([]byte(text), &got, nil), "%q", text)
		require.Equal(t, settings{Streams: 4}, got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"unknown key", "stream: 4", `line 1: stream: unknown key, did you mean "streams"?`},
		{"dash for underscore", "\ncommit-interval: 4s", `line 2: commit-interval: unknown key, did you mean "commit_interval"?`},
		{"swapped letters", "stremas: 4", `line 1: stremas: unknown key, did you mean "streams"?`},
		{"nested", "source:\n  boostrap: []", `line 2: source.boostrap: unknown key, did you mean "bootstrap"?`},
		{"in a map", "overrides:\n  orders: {records: 3}", `line 2: overrides.orders.records: unknown key, did you mean "records_per_second"?`},
		{"nothing near", "source: {zzzzzzzzzzzzzzzz: 1}", `line 1: source.zzzzzzzzzzzzzzzz: unknown key, known are bootstrap, name, password, tls; nearest is "bootstrap"`},
		{"behind a pointer", "source: {tls: {ca: x}}", `line 1: source.tls.ca: unknown key, did you mean "ca_file"?`},
		{"unexported", "hidden: 3", `line 1: hidden: unknown key, known are`},
		{"twice", "streams: 1\nstreams: 2", `line 2: streams: stands twice, first in line 1`},
		{"twice in a map", "mapping: {a: b, a: c}", `line 1: mapping.a: stands twice`},
		{"no number", "streams: many", `line 1: streams: want a whole number, got "many"`},
		{"fraction", "streams: 1.5", `line 1: streams: want a whole number, got "1.5"`},
		{"no truth", "create: perhaps", `line 1: create: want true or false, got "perhaps"`},
		{"list for one", "streams: [1]", `line 1: streams`},
		{"list for text", "source: {name: [x]}", `line 1: source.name: want one value, got a list`},
		{"map for text", "source: {name: {x: y}}", `line 1: source.name: want one value, got keys and values`},
		{"one for list", "source: {bootstrap: a:1}", `line 1: source.bootstrap: want a list, got "a:1"`},
		{"one for map", "mapping: x", `line 1: mapping: want keys and values, got "x"`},
		{"list for struct", "source: [a]", `line 1: source: want keys and values, got a list`},
		{"another file", "a-secret", `line 1: want keys and values, got text`},
		{"whole document", "[a]", `line 1: want keys and values, got a list`},
		{"size", "memory: lots", `line 1: memory: want a size such as 64KiB or 256MiB, got "lots"`},
		{"map for size", "memory: {}", `line 1: memory: want one value, got keys and values`},
		{"duration", "commit_interval: 5", `line 1: commit_interval: want a duration such as 200ms, 5s or 1h30m, got "5"`},
		{"standard duration", "timeout: soon", `line 1: timeout: want a duration, got "soon"`},
		{"unset variable", "source:\n  name: ${NOPE}", `line 2: source.name: environment variable NOPE is not set`},
		{"open variable", "source:\n  name: a ${NOPE", `line 2: source.name: ${ without name and }; write $${`},
		{"variable without name", "source:\n  name: a ${}", `${ without name and }`},
		{"secret in the wrong place", `streams: ${SECRET}`, `line 1: streams: want a whole number, got what ${SECRET} stands for`},
		{"secret as a size", `memory: ${SECRET}`, `line 1: memory: what ${SECRET} stands for is refused`},
		{"a tab", "source:\n\tname: a", "found character that cannot start any token (a tab? YAML is indented by spaces)"},
		{"not yaml", "a: [", "parse configuration: yaml: line"},
		{"variable in flow", "source: {name: ${HOST}}", "needs quotes"},
		{"second document", "streams: 1\n---\nstreams: 2", "a second document"},
		{"alias of itself", "source: &x\n  <<: *x", "contains itself"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := settings{Streams: 4}
			err := Decode([]byte(test.text), &got, environment)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "hunter2")
			require.Equal(t, settings{Streams: 4}, got, "what is at fault is not read")
		})
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	err := Decode([]byte("memroy: 1\nsource:\n  nam: x\n  bootstrap: {}\nstreams: a\ncommit_interval: b\nshare: ${NOPE}\n"), &settings{}, environment)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 6, "%s", err)
	for i, line := range []string{"line 1: memroy", "line 3: source.nam", "line 4: source.bootstrap", "line 5: streams", "line 6: commit_interval", "line 7: share: environment"} {
		require.True(t, strings.HasPrefix(lines[i], line), "%q", lines[i])
	}
	var fault *FaultError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "memroy", fault.Key)
}

// TestWhatIsRightIsReadBesideFaults: a wrong key must not hide from the caller that another value is out of bounds.
func TestWhatIsRightIsReadBesideFaults(t *testing.T) {
	t.Parallel()
	got := settings{Streams: 4, Interval: Duration(time.Second), Mapping: map[string]string{"kept": "k"}}
	err := Decode([]byte(`
memroy: 1GiB
source: {name: sjc1, nam: x, bootstrap: [a:1, {}, "${NOPE}", b:2], tls: {ca: x}}
streams: 0
create: true
commit_interval: soon
memory: 5
memory: 6
share: &half 0.5
mapping: {a: b, c: [], d: e, d: f}
overrides:
  good: {records_per_second: 5}
  some: {records_per_second: 6, bytes_per_second: lots}
  none: {records: 7}
  same: &wrong {records_per_second: 8, records: 9}
  again: *wrong
  more: {<<: *wrong, bytes_per_second: 1KiB}
free: *half
`), &got, environment)
	require.Equal(t, "sjc1", got.Source.Name)
	require.Equal(t, []string{"a:1", "b:2"}, got.Source.Bootstrap)
	require.Nil(t, got.Source.TLS)
	require.Zero(t, got.Streams)
	require.True(t, got.Create)
	require.Equal(t, Duration(time.Second), got.Interval, "the default")
	require.Zero(t, got.Memory, "nobody knows which of two is meant")
	require.InDelta(t, 0.5, got.Share, 0)
	require.InDelta(t, 0.5, got.Free, 0)
	require.Equal(t, map[string]string{"kept": "k", "a": "b"}, got.Mapping)
	require.Equal(t, map[string]limits{"good": {5, 0}, "some": {6, 0}, "same": {8, 0}, "more": {8, 1024}, "again": {8, 0}}, got.Overrides)
	for _, want := range []string{
		"memroy", "source.nam", "source.bootstrap[1]", "NOPE", "tls.ca", "commit_interval", "memory: stands twice", "mapping.c", "mapping.d: stands twice",
		"overrides.some.bytes_per_second", "overrides.none.records", "overrides.same.records",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	var got settings
	require.NoError(t, Decode([]byte(`
source: {name: "${PASSWORD}", password: '${NULL}', bootstrap: ["${HOST}", "x-${STREAMS}-$${HOST}-${EMPTY}$5"]}
streams: ${STREAMS}
share: "${STREAMS}"
memory: ${MEMORY}
mapping: {"${HOST}": "${EVIL}"}
free: ${STREAMS}
`), &got, environment))
	require.Equal(t, "007", got.Source.Name)
	require.Equal(t, "null", got.Source.Password, "text stays text")
	require.Equal(t, []string{"kafka-a:9092", "x-7-${HOST}-$5"}, got.Source.Bootstrap)
	require.Equal(t, 7, got.Streams)
	require.InDelta(t, 7.0, got.Share, 0)
	require.Equal(t, Bytes(64<<10), got.Memory)
	require.Equal(t, map[string]string{"${HOST}": "x\nstreams: 99 # }"}, got.Mapping, "no structure comes from a value, keys are left alone")
	require.Equal(t, 7, got.Free)
}

func TestAliasesAndMerges(t *testing.T) {
	t.Parallel()
	var got settings
	require.NoError(t, Decode([]byte("overrides:\n  a: &a {records_per_second: 5}\n  b: *a\n  c: {<<: *a, bytes_per_second: 1KiB}\n"), &got, nil))
	require.Equal(t, map[string]limits{"a": {5, 0}, "b": {5, 0}, "c": {5, 1024}}, got.Overrides)
	err := Decode([]byte("free: &a {records: 5}\noverrides:\n  c: {<<: *a}\n  d: {<<: [*a]}\n"), &got, nil)
	require.Len(t, strings.Split(err.Error(), "\n"), 2, "%s", err)
	require.ErrorContains(t, err, "overrides.c.records: unknown key")
}

func FuzzDecode(f *testing.F) {
	f.Add("source: {name: \"${HOST}\", tls: {ca_file: x}}\nstreams: 3\noverrides: {a: {bytes_per_second: 1}}")
	f.Add("a: &a [*a]\n? {b: c}\n: d\n<<: *a")
	f.Fuzz(func(t *testing.T, text string) {
		before := settings{Streams: 4}
		got := before
		if err := Decode([]byte(text), &got, environment); err != nil {
			if strings.HasPrefix(err.Error(), "parse configuration") {
				require.Equal(t, before, got)
			}
		}
	})
}

func TestBytes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		want  Bytes
		again string
	}{
		{"0", 0, "0"},
		{"1", 1, "1"},
		{"1024", 1024, "1KiB"},
		{"64KiB", 64 << 10, "64KiB"},
		{"256MiB", 256 << 20, "256MiB"},
		{"1 GiB", 1 << 30, "1GiB"},
		{"2TiB", 2 << 40, "2TiB"},
		{"10kB", 10_000, "10000"},
		{"10MB", 10_000_000, "10000000"},
		{"5B", 5, "5"},
		{"1536KiB", 1536 << 10, "1536KiB"},
	}
	for _, test := range tests {
		var got Bytes
		require.NoError(t, got.UnmarshalText([]byte(test.text)))
		require.Equal(t, test.want, got, test.text)
		require.Equal(t, test.again, got.String())
	}
	for _, text := range []string{"", "x", "-1", "1.5GiB", "1QiB", "9223372036854775807KiB", "9223372036854775808", "MiB"} {
		got := Bytes(3)
		require.Error(t, got.UnmarshalText([]byte(text)), text)
		require.Equal(t, Bytes(3), got)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, again := range map[string]string{"5m": "5m", "1h0m0s": "1h", "90s": "1m30s", "0": "0s", "1h30m": "1h30m", "200ms": "200ms", "10m": "10m", "1h0m5s": "1h0m5s"} {
		var got Duration
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, again, got.String())
	}
	for _, text := range []string{"", "5", "-5s", "soon"} {
		require.Error(t, new(Duration).UnmarshalText([]byte(text)), text)
	}
}

func TestValuesSurviveYAML(t *testing.T) {
	t.Parallel()
	type both struct {
		B Bytes    `yaml:"b"`
		D Duration `yaml:"d"`
	}
	rapid.Check(t, func(t *rapid.T) {
		want := both{Bytes(rapid.Int64Min(0).Draw(t, "b")), Duration(rapid.Int64Min(0).Draw(t, "d"))}
		text, err := yaml.Marshal(want)
		require.NoError(t, err)
		var got both
		require.NoError(t, Decode(text, &got, nil))
		require.Equal(t, want, got)
	})
}

func TestSecret(t *testing.T) {
	t.Parallel()
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for content, want := range map[string]string{"s3": "s3", "s3\n": "s3", "s3\r\n": "s3", "s 3 \n\n": "s 3 \n"} {
		got, err := Secret(write(content))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, content := range []string{"", "\n", strings.Repeat("x", maxSecret+1)} {
		path := write(content)
		_, err := Secret(path)
		require.ErrorContains(t, err, path)
		require.Less(t, len(err.Error()), 400, "the content is not repeated")
	}
	_, err := Secret(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)

	path := write("from file")
	for _, row := range []struct{ value, path, want string }{{"", "", ""}, {"v", "", "v"}, {"", path, "from file"}} {
		got, err := SecretOr(row.value, row.path)
		require.NoError(t, err)
		require.Equal(t, row.want, got)
	}
	_, err = SecretOr("hunter2", path)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), "hunter2")
}
