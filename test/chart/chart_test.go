package chart_test

import (
	"bytes"
	"flag"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the goldens anew")

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // Helm tells of each link in the chart, each time
	os.Exit(m.Run())
}

const (
	chartDir = "../../deploy/charts/causeway"
	golden   = "../deploy/testdata/chart" // read by the tests of test/deploy too, which run what stands in them
)

// valueSets are the chart's own defaults, the files of its folder ci, and what docs/deploy.md shows.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	sets := map[string]map[string]any{"default": {}}
	files, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		values, err := chartutil.ReadValuesFile(file)
		require.NoError(t, err)
		sets[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = values
	}
	require.Len(t, sets, 3)
	document, err := os.ReadFile("../../docs/deploy.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(document), "```yaml sjc1-dca1.yaml\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "```")
	sets["documented"], err = chartutil.ReadValues([]byte(text))
	require.NoError(t, err)
	return sets
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	require.NoError(t, err)
	return c
}

// render is what `helm template mirror` prints with these values, each document behind its template's name.
func render(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	c := load(t)
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "mirror", Namespace: "mirrors", Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for doc := range strings.SplitSeq("\n"+files[name], "\n---") {
			if doc = strings.TrimSpace(doc); doc != "" {
				out.WriteString("---\n# Source: " + name + "\n" + doc + "\n")
			}
		}
	}
	return out.String(), nil
}

// TestLintFindsNothing is `helm lint --strict`.
func TestLintFindsNothing(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		for _, m := range lint.All(chartDir, values, "mirrors", true).Messages {
			require.Less(t, m.Severity, support.WarningSev, "%s: %s", name, m)
		}
	}
}

// TestChartRendersAsItsGoldens keeps what the chart gives for each set of values in the repository, for people and for test/deploy.
func TestChartRendersAsItsGoldens(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		text, err := render(t, values)
		require.NoError(t, err, name)
		text = withoutDashboard(text)
		path := filepath.Join(golden, name+".yaml")
		if *update {
			require.NoError(t, os.MkdirAll(golden, 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), text, "%s: `go test ./... -update` in test/chart writes it anew, if that is meant", name)
	}
}

// withoutDashboard shortens the one line that is the whole dashboard.
func withoutDashboard(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  causeway.json: ") {
			lines[i] = "  causeway.json: \"{}\"\n"
		}
	}
	return strings.Join(lines, "")
}

// kinds are all that the chart may give, in the types of Kubernetes and of the Prometheus operator.
var kinds = map[string]func() any{
	"v1 ConfigMap":                            func() any { return &core.ConfigMap{} },
	"v1 Pod":                                  func() any { return &core.Pod{} },
	"v1 Service":                              func() any { return &core.Service{} },
	"v1 ServiceAccount":                       func() any { return &core.ServiceAccount{} },
	"apps/v1 StatefulSet":                     func() any { return &apps.StatefulSet{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"autoscaling/v2 HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"monitoring.coreos.com/v1 ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
	"monitoring.coreos.com/v1 PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
}

// objects decodes manifests strictly: an unknown or doubled field is an error.
func objects(t *testing.T, text string) (all []any) {
	t.Helper()
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(doc), &head), doc)
		if head.Kind == "" {
			continue
		}
		kind := head.APIVersion + " " + head.Kind
		require.Contains(t, kinds, kind)
		into := kinds[kind]()
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), into), doc)
		all = append(all, into)
	}
	return all
}

func of[T any](all []any) (found []*T) {
	for _, o := range all {
		if one, ok := o.(*T); ok {
			found = append(found, one)
		}
	}
	return found
}

func TestManifestsAreWhatKubernetesKnows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, values := range valueSets(t) {
		text, err := render(t, values)
		require.NoError(t, err)
		for _, o := range objects(t, text) {
			for kind, empty := range kinds {
				if sameType(o, empty()) {
					seen[kind] = true
				}
			}
		}
	}
	require.Len(t, seen, len(kinds), "each kind is given by some values")
}

// TestPodsMeanWhatTheySay holds probes, ports, volumes and times against each other.
func TestPodsMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, values := range valueSets(t) {
		text, err := render(t, values)
		require.NoError(t, err)
		all := objects(t, text)
		config := of[core.ConfigMap](all)
		require.NotEmpty(t, config)
		sets := of[apps.StatefulSet](all)
		require.NotEmpty(t, sets, name)
		for _, set := range sets {
			pod := set.Spec.Template.Spec
			requireGuarded(t, pod)
			require.Subset(t, set.Spec.Template.Labels, set.Spec.Selector.MatchLabels)
			require.Len(t, pod.Containers, 1)
			c := pod.Containers[0]
			require.Equal(t, "/healthz", c.LivenessProbe.HTTPGet.Path)
			require.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
			require.Equal(t, c.Ports[0].Name, c.LivenessProbe.HTTPGet.Port.StrVal)
			require.Equal(t, c.LivenessProbe.HTTPGet.Scheme, c.ReadinessProbe.HTTPGet.Scheme)
			require.NotEqual(t, values["tls"] != nil, c.LivenessProbe.HTTPGet.Scheme == core.URISchemeHTTP)
			require.GreaterOrEqual(t, *pod.TerminationGracePeriodSeconds, shutdownSeconds(t, config[0])+10, "it is killed while it drains")
			requireService(t, all, set.Spec.ServiceName, set.Spec.Template.Labels)
		}
		for _, pod := range of[core.Pod](all) {
			requireGuarded(t, pod.Spec)
		}
		for _, budget := range of[policy.PodDisruptionBudget](all) {
			require.True(t, slices.ContainsFunc(sets, func(s *apps.StatefulSet) bool {
				return matches(budget.Spec.Selector.MatchLabels, s.Spec.Template.Labels)
			}))
		}
		for _, scaler := range of[autoscaling.HorizontalPodAutoscaler](all) {
			at := slices.IndexFunc(sets, func(s *apps.StatefulSet) bool { return s.Name == scaler.Spec.ScaleTargetRef.Name })
			require.GreaterOrEqual(t, at, 0)
			require.Nil(t, sets[at].Spec.Replicas, "an upgrade must not undo what was scaled")
		}
		for _, monitor := range of[monitoring.ServiceMonitor](all) {
			found := slices.DeleteFunc(of[core.Service](all), func(s *core.Service) bool { return !matches(monitor.Spec.Selector.MatchLabels, s.Labels) })
			require.Len(t, found, 1, "each pod is scraped once")
			require.Equal(t, monitor.Spec.Endpoints[0].Port, found[0].Spec.Ports[0].Name)
			require.Equal(t, "causeway", *monitor.Spec.Endpoints[0].RelabelConfigs[0].Replacement, "the alerts look for the job by its name")
		}
	}
}

// requireGuarded wants a pod that can do nothing but its work, whose mounts are there.
func requireGuarded(t *testing.T, pod core.PodSpec) {
	t.Helper()
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.Equal(t, core.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.False(t, *pod.AutomountServiceAccountToken)
	volumes := map[string]bool{"state": true}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range pod.Containers {
		require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		require.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
		for _, m := range c.VolumeMounts {
			require.True(t, volumes[m.Name], m.Name)
		}
	}
}

// TestAlertsAreTheRulesFile compares the chart's alerts with the one file of them.
func TestAlertsAreTheRulesFile(t *testing.T) {
	t.Parallel()
	text, err := render(t, valueSets(t)["everything"])
	require.NoError(t, err)
	rules := of[monitoring.PrometheusRule](objects(t, text))
	require.Len(t, rules, 1)
	file, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	require.NoError(t, err)
	var want monitoring.PrometheusRuleSpec
	require.NoError(t, yaml.UnmarshalStrict(file, &want))
	require.NotEmpty(t, want.Groups)
	require.Equal(t, want, rules[0].Spec)
}

func TestDashboardIsWhole(t *testing.T) {
	t.Parallel()
	text, err := render(t, valueSets(t)["everything"])
	require.NoError(t, err)
	want, err := os.ReadFile("../../deploy/grafana/causeway.json")
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(of[core.ConfigMap](objects(t, text)), func(m *core.ConfigMap) bool { return m.Data["causeway.json"] == string(want) }))
}

// TestWrongValuesAreRefused: each with the key in what is said.
func TestWrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"/mode":                           `mode: many`,
		"replica":                         `worker: {replica: 3}`,
		"/config/worker/shutdown_timeout": `config: {worker: {shutdown_timeout: 60s}}`,
		"/config/server/listen":           `config: {server: {listen: ":9000"}}`,
		"/config/route/source/bootstrap":  `config: {route: {source: {bootstrap: []}}}`,
		"mountPath":                       `secretMounts: [{secret: a, mountPath: /etc/passwd}]`,
		"serviceMonitor.tlsConfig: must":  `{tls: {secret: a}, serviceMonitor: {enabled: true}}`,
	} {
		values, err := chartutil.ReadValues([]byte(text))
		require.NoError(t, err)
		_, err = render(t, values)
		require.ErrorContains(t, err, want, text)
	}
}
