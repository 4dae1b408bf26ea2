package deploy_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mirror/causeway/events"
)

const runbookURL = "https://github.com/causeway-mirror/causeway/blob/main/docs/runbook.md#"

// rules is a file of alert rules.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) []rule {
	t.Helper()
	var file rules
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/prometheus/alerts.yaml")), &file))
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.Greater(t, len(all), 15)
	return all
}

func TestRulesPassTheirTests(t *testing.T) {
	t.Parallel()
	promtool(t, "", "check", "rules", inRoot("deploy/prometheus/alerts.yaml"))
	promtool(t, "", "test", "rules", inRoot("deploy/prometheus/alerts_test.yaml"))
}

// TestDocumentedScrapeConfigurationIsOne checks the files from which Prometheus is told of the programs and the rules.
func TestDocumentedScrapeConfigurationIsOne(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```yaml prometheus.yml\n(.*?)```").FindStringSubmatch(read(t, "docs/metrics.md"))
	require.Len(t, block, 2)
	dir := t.TempDir()
	write(t, dir, "alerts.yaml", read(t, "deploy/prometheus/alerts.yaml"))
	for name, text := range map[string]string{"documented.yml": block[1], "compose.yml": read(t, "deploy/compose/prometheus.yml")} {
		promtool(t, "", "check", "config", write(t, dir, name, strings.ReplaceAll(text, "/etc/prometheus/", "")))
		require.Regexp(t, `job_name: causeway`, text, "the alerts look for the job by its name")
	}
}

func TestRulesNameWhatIsServed(t *testing.T) {
	t.Parallel()
	listed := metrics(t)
	for _, r := range alerts(t) {
		requireServed(t, listed, r.Alert, r.Expr)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		all, _ := uses(r.Expr)
		for _, u := range all {
			for _, kind := range u.labels["type"] {
				require.Contains(t, events.Types(), events.Type(kind), r.Alert)
			}
		}
	}
}

// TestEveryAlertIsTestedAndHasItsPage finds each alert firing in the rules' tests, and in the runbook, which has no others.
func TestEveryAlertIsTestedAndHasItsPage(t *testing.T) {
	t.Parallel()
	tests, book := read(t, "deploy/prometheus/alerts_test.yaml"), read(t, "docs/runbook.md")
	pages := map[string]string{}
	for page := range strings.SplitSeq(book, "\n## ") {
		name, body, _ := strings.Cut(page, "\n")
		pages[name] = body
	}
	for _, r := range alerts(t) {
		fires := strings.Contains(tests, `labels: '{alertname="`+r.Alert+`"}', value: `) ||
			regexp.MustCompile(`alertname: `+r.Alert+`\n +exp_alerts:\n`).MatchString(tests)
		require.True(t, fires, "%s fires in no test", r.Alert)
		require.Equal(t, runbookURL+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		require.Contains(t, pages, r.Alert, "the runbook lacks it")
		for _, part := range []string{"**Means** ", "\n```sh\n", "\n**Do** ", "\n**Over** "} {
			require.Contains(t, pages[r.Alert], part, r.Alert)
		}
		delete(pages, r.Alert)
	}
	require.Len(t, pages, 1, "what stands before the first alert, and no alert that there is not")
}
