package deploy_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// installed is where image and units have the programs.
const installed = "/usr/local/bin/"

// host is the machine, or the container, on which a command line is meant to run.
type host struct {
	files   []string          // pairs for strings.NewReplacer: paths and addresses there, paths and addresses here
	environ map[string]string // of the process
}

// command is a command line as it runs here.
func (h host) command(t *testing.T, line []string) []string {
	t.Helper()
	name, ok := strings.CutPrefix(line[0], installed)
	require.True(t, ok, line)
	args := []string{"env"}
	for name, value := range h.environ {
		args = append(args, name+"="+value)
	}
	args = append(args, binary(t, name))
	for _, arg := range line[1:] {
		args = append(args, strings.NewReplacer(h.files...).Replace(arg))
	}
	return args
}

// dockerfile gives the instructions of the Dockerfile's last stage, by name, with the lists that they are in JSON.
func dockerfile(t *testing.T) map[string][][]string {
	t.Helper()
	all := map[string][][]string{}
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for line := range strings.Lines(text[strings.LastIndex(text, "\nFROM "):]) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var list []string
		if at := strings.Index(rest, "["); at < 0 || json.Unmarshal([]byte(rest[at:]), &list) != nil {
			list = strings.Fields(rest)
		}
		all[word] = append(all[word], list)
	}
	return all
}

// TestImageStartsADemo runs what the image runs when it is told nothing, and its health check.
func TestImageStartsADemo(t *testing.T) {
	t.Parallel()
	image := dockerfile(t)
	require.Equal(t, [][]string{{"65532:65532"}}, image["USER"], "not root, and a number, since Kubernetes looks for one")
	for _, program := range programs(t) {
		require.Contains(t, image["COPY"][0], "/src/bin/"+program)
	}
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	api := "http://" + kafkad.Loopback(ports[0])
	h := host{files: []string{":8080", kafkad.Loopback(ports[0])}, environ: map[string]string{"CAUSEWAY_API": api}}
	start(t, "image", h.command(t, append(image["ENTRYPOINT"][0], image["CMD"][0]...))...)
	check := h.command(t, image["HEALTHCHECK"][0])
	eventually(t, "the health check passes", func() bool {
		return exec.CommandContext(t.Context(), check[0], check[1:]...).Run() == nil
	})
	eventually(t, "it is ready", func() bool { status, _ := get(t, api+"/readyz"); return status == http.StatusOK })
}

// programs are what make build builds.
func programs(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob(inRoot("cmd/*/main.go"))
	require.NoError(t, err)
	var all []string
	for _, main := range mains {
		name := "causeway-" + filepath.Base(filepath.Dir(main))
		all = append(all, strings.Replace(name, "causeway-causeway", "causeway", 1))
	}
	require.GreaterOrEqual(t, len(all), 3)
	return all
}

// TestImageIsBuiltFromWhatProgramsAreMadeOf holds .dockerignore, which lets in what it names, against the programs' packages.
func TestImageIsBuiltFromWhatProgramsAreMadeOf(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/...")
	list.Dir = inRoot(".")
	out, err := list.Output()
	require.NoError(t, err)
	let := strings.Split(read(t, ".dockerignore"), "\n")
	for name := range strings.Lines(string(out)) {
		if folder, ours := strings.CutPrefix(strings.TrimSpace(name), "github.com/causeway-mirror/causeway/"); ours {
			folder, _, _ = strings.Cut(folder, "/")
			require.Contains(t, let, "!"+folder)
		}
	}
	for _, file := range []string{"!go.mod", "!go.sum", "!Makefile"} {
		require.Contains(t, let, file)
	}
}

// service is one of docker-compose.yaml.
type service struct {
	Entrypoint, Command []string
	Hostname            string
	Environment         map[string]string
	Volumes             []string
	Build               string
}

func compose(t *testing.T) map[string]service {
	t.Helper()
	var file struct{ Services map[string]service }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yaml")), &file))
	for name, s := range file.Services {
		for _, volume := range s.Volumes {
			require.FileExists(t, inRoot(strings.Split(volume, ":")[0]), name)
		}
	}
	return file.Services
}

// unit is the command line that a systemd unit starts.
func unit(t *testing.T, name string) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindAllStringSubmatch(read(t, "deploy/systemd/"+name), -1)
	require.Len(t, m, 1)
	return strings.Fields(m[0][1])
}

// TestUnitsAreSoundAndClosed has systemd's own tools judge the units, where they are.
func TestUnitsAreSoundAndClosed(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob(inRoot("deploy/systemd/*.service"))
	require.NoError(t, err)
	require.Len(t, units, len(programs(t)))
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	for _, path := range units {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		here := write(t, t.TempDir(), filepath.Base(path), regexp.MustCompile(installed+`\S+`).ReplaceAllString(string(text), "/bin/true"))
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", here).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
		out, err = exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=20", here).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// lab is two clusters and a ZooKeeper, with a topic that is to be copied.
type lab struct {
	source, target *kafkatest.Cluster
	topic          string
	written        int64
}

func newLab(t *testing.T, topic string) *lab {
	t.Helper()
	l := &lab{source: kafkatest.Shared(t, kafkatest.Kafka3), target: kafkatest.Shared(t, kafkatest.Kafka4), topic: topic}
	l.source.CreateTopic(t, topic, 4, nil)
	l.written = kafkatest.Load(t, l.source.Bootstrap(), kafkatest.LoadOptions{Topic: topic, Records: 200}).Committed
	return l
}

// here writes a configuration for this machine and returns the host that has it.
func (l *lab) here(t *testing.T, text string, more ...string) host {
	t.Helper()
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	dir := t.TempDir()
	text = strings.NewReplacer(append(more, "source:9092", l.source.Bootstrap()[0], "target:9092", l.target.Bootstrap()[0],
		"zookeeper:2181", l.source.ZooKeeper().Addr(), `":8080"`, `"`+kafkad.Loopback(ports[0])+`"`)...).Replace(text)
	return host{
		files:   []string{"/etc/causeway/causeway.yaml", write(t, dir, "causeway.yaml", text), "/var/lib/causeway", filepath.Join(dir, "state")},
		environ: map[string]string{"CAUSEWAY_API": "http://" + kafkad.Loopback(ports[0])},
	}
}

// arrived waits until all is copied, once, in order.
func (l *lab) arrived(t *testing.T) {
	t.Helper()
	kafkatest.AwaitRecords(t, l.target.Bootstrap(), l.topic, l.written, patience)
	d := kafkatest.Compare(t, l.source.Bootstrap(), l.target.Bootstrap(), l.topic, l.topic)
	require.True(t, d.Equal(), d.String())
	require.Equal(t, l.written, d.Records)
}

// TestComposedClusterCopies runs the command lines of docker-compose.yaml. Then it looks at the metrics of the leader and of a worker, and types the
// runbook's commands.
func TestComposedClusterCopies(t *testing.T) {
	t.Parallel()
	l := newLab(t, "orders")
	addresses := map[string]string{}
	for name, s := range compose(t) {
		if s.Build == "" {
			continue
		}
		require.Equal(t, name, s.Hostname)
		h := l.here(t, read(t, "deploy/compose/causeway.yaml"), `include: [".*"]`, "include: [orders]",
			"controller: {", "controller: {lag_interval: 1s, validate_interval: 1s, ") // else a minute passes until all is known
		maps.Copy(h.environ, s.Environment)
		addresses[name] = h.environ["CAUSEWAY_API"]
		start(t, name, h.command(t, append(slices.Clone(s.Entrypoint), s.Command...))...)
	}
	require.Len(t, addresses, 3)
	l.arrived(t)
	leader := addresses["controller"]
	eventually(t, "lag and states are known", func() bool {
		_, body := get(t, leader+"/metrics")
		return strings.Contains(body, `causeway_controller_lag_records{partition="3"`) && strings.Contains(body, `causeway_controller_partitions{`)
	})
	listed := metrics(t)
	scrape(t, addresses["worker-1"]).requireListed(t, listed)
	found := scrape(t, leader)
	found.requireListed(t, listed)
	for name := range listed {
		if strings.HasPrefix(name, "causeway_controller_") && name != "causeway_controller_job_errors_total" {
			require.True(t, found.has(name), name)
		}
	}
	consult(t, leader, func(words []string) bool {
		if at := slices.Index(words, "mirror-1"); at > 0 {
			words[at] = "worker-1"
		}
		return true
	})
}

// TestUnitsCopy runs what systemd would: a mirror in one process, and a controller with a worker.
func TestUnitsCopy(t *testing.T) {
	t.Parallel()
	documented := regexp.MustCompile("(?s)```yaml causeway.yaml\n(.*?)```").FindAllStringSubmatch(read(t, "docs/deploy.md"), -1)
	require.Len(t, documented, 2, "for one process, and for a cluster")
	alone := newLab(t, "alone")
	start(t, "standalone", alone.here(t, documented[0][1], "orders", "alone").command(t, unit(t, "causeway.service"))...)
	together := newLab(t, "together")
	for _, name := range []string{"causeway-controller.service", "causeway-worker.service"} {
		start(t, name, together.here(t, documented[1][1], "orders", "together").command(t, unit(t, name))...)
	}
	alone.arrived(t)
	together.arrived(t)
}
