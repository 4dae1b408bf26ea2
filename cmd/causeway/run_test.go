package main

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func TestExitCodes(t *testing.T) {
	t.Parallel()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := []string{"--source", "127.0.0.1:1", "--target", "127.0.0.1:2", "--topics", "orders"}
	with := func(command string, more ...string) []string {
		return append(append(strings.Fields(command), good...), more...)
	}
	for _, row := range []struct {
		name string
		args []string
		code int
		has  []string // in stderr
	}{
		{"help", []string{"--help"}, 0, nil},
		{"no command shows help", nil, 0, nil},
		{"version", []string{"version"}, 0, nil},
		{"version as the other programs have it", []string{"--version"}, 0, nil},
		{"a command misspelt", []string{"stats"}, 2, []string{`causeway: unknown command "stats", did you mean "status"?`}},
		{"a command misspelt before its child", []string{"topic", "list"}, 2, []string{`unknown command "topic", did you mean "topics"?`}},
		{"a child misspelt", []string{"topics", "lst"}, 2, []string{`unknown command "lst", did you mean "list"?`}},
		{"the flags of a command misspelt", []string{"stats", "--api", "http://127.0.0.1:1", "-o", "json"}, 2, []string{"causeway: unknown command \"stats\", did you mean \"status\"?\ncauseway: try --help\n"}},
		{"the flags of a child misspelt", []string{"topics", "lst", "--api", "x"}, 2, []string{"causeway: unknown command \"lst\", did you mean \"list\"?\ncauseway: try --help\n"}},
		{"flags misspelt", []string{"standalone", "--sourc", "a:1", "--topic=orders"}, 2, []string{`--sourc: unknown flag, did you mean "--source"?`, `--topic: unknown flag, did you mean "--topics"?`}},
		{"a star alone", with("standalone", "--topics", "*"), 1, []string{"missing argument to repetition operator: `*` (all topics are \".*\")"}},
		{"completion", []string{"completion", "bash"}, 0, nil},
		{"unknown command", []string{"mirror"}, 2, []string{"mirror", "--help"}},
		{"unknown child", []string{"topics", "paint"}, 2, []string{"paint"}},
		{"unknown flag", []string{"status", "--colour"}, 2, []string{"--colour"}},
		{"malformed flag", []string{"standalone", "--streams", "many"}, 2, []string{`causeway: --streams "many": must be a whole number`}},
		{"all malformed flags at once", []string{"standalone", "--streams", "x", "--fetchers=9999999999999999999", "--commit-interval", "soon", "--create-topics=maybe", "--colour"}, 2, []string{
			`--streams "x": must be a whole number`, `--fetchers "9999999999999999999": is out of range`, `--commit-interval "soon": must be a duration`,
			`--create-topics "maybe": must be true or false`, "--colour: unknown flag",
		}},
		{"all malformed flags of verify", []string{"verify", "--sample", "half", "--timeout", "1", "orders"}, 2, []string{`--sample "half": must be a number`, `--timeout "1": must be a duration`, `unexpected argument "orders"`}},
		{"all unknown flags at once", []string{"standalone", "--colour", "red", "-zq", "--streams", "x", "--sauce=a", "--target", "-b", "--topics", "t", "--bogus"}, 2, []string{
			"causeway: --colour: unknown flag\n", "causeway: -z: unknown flag\n", "causeway: -q: unknown flag\n", `causeway: --sauce: unknown flag, did you mean "--source"?`,
			`--streams "x": must be a whole number`, "causeway: --bogus: unknown flag\n",
		}},
		{"an unknown flag before the command", []string{"-z", "status"}, 2, []string{"-z: unknown flag"}},
		{"a flag without its value", []string{"wait", "--topic"}, 2, []string{"--topic: needs a value"}},
		{"an unknown short flag", []string{"wait", "-z"}, 2, []string{"-z: unknown flag"}},
		{"wrong output form", []string{"status", "-o", "xml"}, 2, []string{"table, json or yaml"}},
		{"missing argument", []string{"topics", "describe"}, 2, []string{"causeway: TOPIC: must be given\n"}},
		{"surplus argument", []string{"wait", "orders"}, 2, []string{"causeway: unexpected argument \"orders\"\n"}},
		{"surplus arguments", []string{"topics", "describe", "a", "b", "c"}, 2, []string{`unexpected argument "b"`, `unexpected argument "c"`}},
		{"a switch and its value apart", with("standalone", "--create-topics", "maybe"), 2, []string{`unexpected argument "maybe"; the value of --create-topics is joined to it: --create-topics=false`}},
		{"less than no time hides no other fault", with("standalone", "--commit-interval", "-3s", "--start", "yesterday"), 1, []string{`worker.commit_interval (--commit-interval) "-3s": must be at least 10ms`, "route.start (--start)"}},
		{"less than no size", with("standalone", "--memory", "-5"), 1, []string{`--memory "-5": must not be negative`}},
		{"nothing configured", []string{"standalone"}, 1, []string{"route.source (--source): bootstrap", "route.target (--target): bootstrap", "route.topics.include (--topics)"}},
		{"all faults at once", with("standalone", "--start", "yesterday", "--memory", "1MiB", "--delivery", "twice", "--isolation", "none", "--rename", "x", "--listen", "nowhere", "--streams", "0", "--spill-max", "1MiB", "--log-level", "loud", "--topics", "a(", "--exclude", "["), 1, []string{
			`route.start (--start) "yesterday": must be`, `worker.memory (--memory) "1MiB": must be at least 64MiB`, `route.delivery (--delivery) "twice"`, `route.isolation (--isolation) "none"`,
			`route.topics.rename (--rename) "x": has no {topic}`, `server.listen (--listen) "nowhere"`, `worker.streams (--streams) "0"`, `worker.spill.max_bytes (--spill-max) "1MiB": must be 0 or at least 64MiB`, `log.level (--log-level) "loud"`,
			`route.topics.include[1] (--topics) "a("`, `route.topics.exclude[0] (--exclude) "["`,
		}},
		{"a size that is none", with("standalone", "--memory", "lots"), 1, []string{`--memory "lots"`}},
		{"source is target", []string{"standalone", "--source", "a:1", "--target", "a:1", "--topics", "x"}, 1, []string{"onto itself"}},
		{"no such file", []string{"standalone", "--config", filepath.Join(dir, "none.yaml")}, 1, []string{"--config", "none.yaml", "no such file"}},
		{"unknown key names the nearest", []string{"config", "validate", "--config", file("near.yaml", "route:\n  tpics: {}\n")}, 1, []string{"near.yaml", "tpics", "topics"}},
		{"a policy that is not there", with("config validate", "--config", file("policy.yaml", "route: {on: {diverged: resend, nonsense: halt}}")), 1, []string{`route.on.diverged "resend"`, `route.on.nonsense "halt"`}},
		{"a rename that no topic can have", with("config validate", "--rename", "{topic} x/y"), 1, []string{`route.topics.rename (--rename) "{topic} x/y": gives no topic a name`}},
		{"a cluster's name that no topic can have", with("config validate", "--rename", "{source}.{topic}", "--source-name", "a:b"), 1, []string{`route.topics.rename (--rename) "{source}.{topic}": gives "a:b.{topic}"`}},
		{"a cluster without a name", with("config validate", "--source-name", "", "--target-name", "a b"), 1, []string{`route.source.name (--source-name) ""`, `route.target.name (--target-name) "a b"`}},
		{"a mapping file that does not exist", with("config validate", "--config", file("mapping.yaml", "route: {topics: {mapping_file: /nowhere/x}}")), 1, []string{`route.topics.mapping_file "/nowhere/x": cannot be read: no such file`}},
		{"an override that is no topic", with("config validate", "--config", file("override.yaml", "route: {topics: {overrides: {'(': {}}}}")), 1, []string{`route.topics.overrides "(": must be the whole name of one topic`}},
		{"valid", with("config validate"), 0, nil},
		{"busy port", with("standalone", "--listen", busy.Addr().String(), "--state", filepath.Join(dir, "s1")), 1, []string{`server.listen (--listen) "` + busy.Addr().String() + `"`, "address already in use"}},
		{"state that is a file", with("standalone", "--listen", "127.0.0.1:0", "--state", file("taken", "x")), 1, []string{"offsets.dir (--state)", "taken"}},
		{"no mirror to ask", []string{"status", "--api", "127.0.0.1:1"}, 1, []string{"http://127.0.0.1:1", "refused"}},
		{"an address that is none", []string{"topics", "list", "--api", "ftp://x"}, 1, []string{`--api "ftp://x"`}},
		{"wait that times out", []string{"wait", "--topic", "t", "--api", "127.0.0.1:1", "--timeout", "10ms"}, 1, []string{"timed out"}},
		{"wait for less than nothing", []string{"wait", "--lag", "-1", "--timeout", "-3s"}, 1, []string{`--lag "-1": must be 0 or more`, `--timeout "-3s": must be 0s or more`}},
		{"since what", []string{"events", "--since", "noon"}, 1, []string{`--since "noon"`}},
		{"verify cannot reach", with("verify", "--timeout", "1s", "--state", filepath.Join(dir, "s2"), "--from", "checkpoint", "--source", file("x", "")+":1"), 2, nil},
		{"verify wrong values", with("verify", "--from", "middle", "--sample", "2", "--timeout", "0s"), 2, []string{`--from "middle"`, `--sample "2"`, `--timeout "0s"`}},
		{"demo in a file", []string{"demo", "--dir", file("nodir", ""), "--rate", "0", "--listen", "127.0.0.1:0"}, 1, []string{`--dir "` + filepath.Join(dir, "nodir") + `": `, "--rate"}},
		{"demo in a folder that cannot hold positions", []string{"demo", "--dir", filepath.Dir(file("state", "")), "--for", "1s", "--listen", "127.0.0.1:0"}, 1, []string{`--dir "` + filepath.Join(dir, "state") + `": `}},
		{"demo wrong values", []string{"demo", "--rate", "0", "--for", "-1s", "--listen", "x"}, 1, []string{"--rate", "--for", "server.listen"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(t.Context(), row.args...)
			require.Equal(t, row.code, code, "stdout: %s\nstderr: %s", stdout, stderr)
			for _, text := range row.has {
				require.Contains(t, stderr, text)
			}
			if row.code == 0 {
				require.Empty(t, stderr)
			} else {
				require.NotEmpty(t, stderr)
			}
		})
	}
}

func TestPanicIsOwnFault(t *testing.T) {
	t.Parallel()
	code := func() (code int) {
		var errs strings.Builder
		defer func() { require.Contains(t, errs.String(), "internal fault") }()
		return run(nil, []string{"status", "--watch", "--api", "127.0.0.1:1"}, nil, &errs) //nolint:staticcheck // a nil context and writer are the fault
	}()
	require.Equal(t, exitFault, code)
}

// TestHelpGolden keeps the names of commands and flags from changing unnoticed. Read the diff after -rewrite.
func TestHelpGolden(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command, path ...string)
	walk = func(cmd *cobra.Command, path ...string) {
		name := strings.Join(append([]string{"causeway"}, path...), "-") + ".txt"
		code, stdout, stderr := command(t.Context(), append(path, "--help")...)
		require.Equal(t, 0, code, stderr)
		golden := filepath.Join("testdata", "help", name)
		if *rewrite {
			require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o750))
			require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err, "run with -rewrite and read the diff")
		require.Equal(t, string(want), stdout)
		for _, child := range cmd.Commands() {
			if child.Name() != "completion" && child.Name() != "help" {
				walk(child, append(append([]string{}, path...), child.Name())...)
			}
		}
	}
	walk(newRoot(os.Stdout, os.Stderr))
}

func TestFlagsComplete(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"standalone", "--isolation", ""}, "read_uncommitted"},
		{[]string{"standalone", "--log-level", "w"}, "warn"},
		{[]string{"status", "-o", ""}, "yaml"},
		{[]string{"verify", "--from", ""}, "checkpoint"},
		{[]string{"partitions", "reset", "--to", "l"}, "latest"},
	} {
		code, stdout, stderr := command(t.Context(), append([]string{"__complete"}, row.args...)...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, row.want+"\n", row.args)
	}
}

func TestOnlyWrongUsagePointsToHelp(t *testing.T) {
	t.Parallel()
	const hint = "try --help"
	code, _, stderr := command(t.Context(), "verify", "--source", "127.0.0.1:1", "--target", "127.0.0.1:2", "--topics", "t", "--from", "checkpoint", "--state", t.TempDir())
	require.Equal(t, exitIncomparable, code)
	require.NotContains(t, stderr, hint, "the usage was right")
	code, _, stderr = command(t.Context(), "verify", "--bogus")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, hint)
}
