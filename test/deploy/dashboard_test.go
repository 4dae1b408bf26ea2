package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// expressions are those of the dashboard, by where they stand: panels, marks and choices.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	type panel struct {
		Title   string `json:"title"`
		Targets []struct {
			RefID string `json:"refId"`
			Expr  string `json:"expr"`
		} `json:"targets"`
	}
	var shown struct {
		Panels      []panel `json:"panels"`
		Annotations struct {
			List []struct {
				Name string `json:"name"`
				Expr string `json:"expr"`
			} `json:"list"`
		} `json:"annotations"`
		Templating struct {
			List []struct {
				Name       string `json:"name"`
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/causeway.json")), &shown))
	all := map[string]string{}
	for i, p := range shown.Panels {
		for _, target := range p.Targets {
			all[fmt.Sprintf("panel %d, %s, %s", i, p.Title, target.RefID)] = target.Expr
		}
	}
	for _, a := range shown.Annotations.List {
		all["mark "+a.Name] = a.Expr
	}
	for _, v := range shown.Templating.List {
		if m := regexp.MustCompile(`^label_values\((.*), ([a-z]+)\)$`).FindStringSubmatch(v.Definition); m != nil {
			all["choice "+v.Name] = "count by (" + m[2] + ") (" + m[1] + ")"
		}
	}
	return all
}

// TestDashboardAsksForWhatIsServed has Prometheus' own parser read every query, once Grafana's variables have values.
func TestDashboardAsksForWhatIsServed(t *testing.T) {
	t.Parallel()
	listed, all := metrics(t), expressions(t)
	require.Greater(t, len(all), 40)
	var records []map[string]string
	for where, expr := range all {
		expr = strings.NewReplacer("$__rate_interval", "1m", "$route", ".*", "$process", ".*", "$topic", ".*").Replace(expr)
		require.NotContains(t, expr, "$", where)
		requireServed(t, listed, where, expr)
		records = append(records, map[string]string{"record": fmt.Sprintf("query:%d", len(records)), "expr": expr})
	}
	file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	require.NoError(t, err)
	promtool(t, "", "check", "rules", write(t, t.TempDir(), "queries.yaml", string(file)))
	seen, detail := strings.Join(slices.Collect(maps.Values(all)), "\n"), regexp.MustCompile("^causeway_(gateway|helix|network|purgatory|spill)_")
	for name := range listed {
		if !detail.MatchString(name) {
			require.Contains(t, seen, name, "no panel shows it")
		}
	}
}
