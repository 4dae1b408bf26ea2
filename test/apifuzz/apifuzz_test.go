package apifuzz_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// token is the servers'.
const token = "s3cret"

// patience is how long processes may take to be ready on a busy machine.
const patience = 60 * time.Second

// lab is two clusters in memory, and a folder.
type lab struct {
	fuzzer, dir    string
	source, target *kfake.Cluster
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{fuzzer: os.Getenv("CAUSEWAY_SCHEMATHESIS"), dir: t.TempDir()}
	if l.fuzzer == "" {
		t.Skip("CAUSEWAY_SCHEMATHESIS names no program: make api-fuzz installs it")
	}
	for _, place := range []**kfake.Cluster{&l.source, &l.target} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders", "clicks"))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		*place = c
	}
	l.write(t, "token", token)
	return l
}

func (l *lab) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(l.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// start builds a program and runs it with the native file until the test ends; more are lines of that file. It returns where it answers.
func (l *lab) start(t *testing.T, program, more string, args ...string) string {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	binary := filepath.Join(l.dir, program)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/"+program).CombinedOutput()
	require.NoError(t, err, string(out))
	file := l.write(t, program+".yaml", fmt.Sprintf("route:\n  source: {name: a, bootstrap: [%q]}\n  target: {name: b, bootstrap: [%q]}\n"+
		"  topics: {include: [orders, clicks], rename: \"copy.{topic}\"}\nserver: {listen: %q, auth: {token_file: %q}}\nlog: {level: warn}\n%s",
		l.source.ListenAddrs()[0], l.target.ListenAddrs()[0], kafkad.Loopback(ports[0]), filepath.Join(l.dir, "token"), more))
	run := kafkatest.NewProgram(program, l.dir, append(append([]string{binary}, args...), "--config", file)...)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		require.NoError(t, run.Stop())
		if t.Failed() {
			t.Log(run.Log())
		}
		require.Zero(t, run.ExitCode())
	})
	return "http://" + kafkad.Loopback(ports[0])
}

// awaitReady waits until a process does its work.
func awaitReady(t *testing.T, address string) {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/readyz", http.NoBody)
		require.NoError(t, err)
		answer, err := client.Do(req)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	}, patience, 50*time.Millisecond, "%s is not ready", address)
}

// fuzz throws requests at the operations that a filter leaves, with the token and without.
func (l *lab) fuzz(t *testing.T, address string, filter ...string) {
	t.Helper()
	awaitReady(t, address)
	examples := "10"
	if testkit.Long() {
		examples = "100"
	}
	args := []string{
		"--config-file", "schemathesis.toml", "run", "../../api/openapi.yaml", "--url", address, "--checks", "all", "--phases", "examples,coverage,fuzzing",
		"--max-examples", examples, "--request-timeout", "20", "--no-color", "--seed", "1",
		"--generation-database", "none",
	}
	args = append(args, filter...)
	for name, header := range map[string][]string{"with the token": {"--header", "Authorization: Bearer " + token}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), l.fuzzer, append(args, header...)...).CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}

// otherMethods is the check that only a controller, which has all methods of a path, can pass.
const otherMethods = "allow_header_conformance"

// TestAMirrorAnswersAsDescribed is of one process.
func TestAMirrorAnswersAsDescribed(t *testing.T) {
	l := newLab(t)
	address := l.start(t, "causeway", fmt.Sprintf("offsets: {store: file, dir: %q}\n", filepath.Join(l.dir, "state")), "standalone")
	l.fuzz(t, address, "--include-by", "/x-roles/0 == standalone", "--exclude-checks", otherMethods)
}

// TestAClusterAnswersAsDescribed is of a controller that leads and its worker.
func TestAClusterAnswersAsDescribed(t *testing.T) {
	l := newLab(t)
	coordination := fmt.Sprintf("coordination: {zookeeper: %q, cluster: fuzzed}\nworker: {id: mirror-1}\n", kafkatest.SharedZooKeeper(t).Addr())
	worker := l.start(t, "worker", coordination)
	controller := l.start(t, "controller", coordination)
	l.fuzz(t, worker, "--include-by", "/x-roles/1 == worker", "--exclude-path", "/", "--exclude-checks", otherMethods)
	l.fuzz(t, controller, "--exclude-path", "/", "--exclude-operation-id", "translateOffsets") // uReplicator's REST has the root, and workers translate
}
