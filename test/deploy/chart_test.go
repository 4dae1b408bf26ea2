package deploy_test

import (
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// manifest is what is looked at of one that the Helm chart renders.
type manifest struct {
	Kind string
	Data map[string]string
	Spec podSpec
}

type podSpec struct {
	Containers []struct {
		Name    string
		Command []string
		Env     []struct{ Name string }
	}
	Template struct{ Spec *podSpec }
}

// charted is what the chart starts with one set of values: the native file, and the command lines by container.
type charted struct {
	config   string
	commands map[string][]string
}

// newCharted reads the rendered manifests, which `make chart-lint` holds against the chart.
func newCharted(t *testing.T, values string) charted {
	t.Helper()
	c := charted{commands: map[string][]string{}}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, "test/deploy/testdata/chart/"+values+".yaml")))
	for {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if text := m.Data["causeway.yaml"]; text != "" {
			c.config = text
		}
		pod := &m.Spec
		if pod.Template.Spec != nil {
			pod = pod.Template.Spec
		}
		for _, container := range pod.Containers {
			require.Equal(t, "POD_NAME", container.Env[0].Name)
			c.commands[container.Name] = container.Command
		}
	}
	require.NotEmpty(t, c.config)
	return c
}

// here is the host of one of the pods.
func (c charted) here(t *testing.T, l *lab, pod string, more ...string) host {
	t.Helper()
	more = append(more, "source-kafka:9092", l.source.Bootstrap()[0], "kafka-a:9092", l.source.Bootstrap()[0],
		"target-kafka:9092", l.target.Bootstrap()[0], "kafka-b:9092", l.target.Bootstrap()[0], "listen: :8080", `listen: ":8080"`)
	h := l.here(t, strings.NewReplacer(more...).Replace(c.config))
	h.environ["POD_NAME"] = pod
	return h
}

// run runs a command that ends by itself, and wants code 0 of it.
func (h host) run(t *testing.T, line []string) string {
	t.Helper()
	words := h.command(t, line)
	out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// TestChartCopies runs what the chart's pods run: the pre-flight of `helm test`, which finds nothing and changes nothing, and then a cluster and a
// mirror in one process.
func TestChartCopies(t *testing.T) {
	t.Parallel()
	cluster, together := newCharted(t, "default"), newLab(t, "charted")
	require.ElementsMatch(t, []string{"check", "controller", "worker"}, slices.Collect(maps.Keys(cluster.commands)))
	only := []string{`- .*`, "- charted", "cluster: causeway", "cluster: charted"}
	told := cluster.here(t, together, "check-0", only...).run(t, cluster.commands["check"])
	require.Contains(t, told, "the target does not have it yet and would create it\n")
	require.Contains(t, told, "0 errors, 0 warnings\n")
	for _, name := range []string{"controller", "worker"} {
		start(t, name, cluster.here(t, together, name+"-0", only...).command(t, cluster.commands[name])...)
	}

	single, alone := newCharted(t, "standalone"), newLab(t, "charted-alone")
	require.ElementsMatch(t, []string{"check", "standalone"}, slices.Collect(maps.Keys(single.commands)))
	only = []string{"- orders", "- charted-alone", "/var/lib/causeway/", t.TempDir() + "/"}
	require.Contains(t, single.here(t, alone, "check-0", only...).run(t, single.commands["check"]), "0 errors, 0 warnings\n")
	start(t, "standalone", single.here(t, alone, "standalone-0", only...).command(t, single.commands["standalone"])...)
	together.arrived(t)
	alone.arrived(t)
}
