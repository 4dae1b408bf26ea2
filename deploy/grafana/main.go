// Grafana writes the dashboard for Grafana to its standard output, as JSON. What it shows is in panels.go; a row here is a row there.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
}

// write writes the dashboard.
func write(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(dashboard())
}

// object is a JSON object.
type object map[string]any

const (
	schema  = 38 // of the dashboard's JSON: that of Grafana 9
	columns = 24 // of Grafana's grid
	height  = 8  // of a panel
)

// dashboard lays the rows out, each on lines of its own.
func dashboard() object {
	var all []object
	id, y := 0, 0
	for _, r := range rows() {
		id++
		all = append(all, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{}, "gridPos": place(0, y, columns, 1)})
		y++
		x, tall := 0, 0
		for _, p := range r.panels {
			if x+p.width > columns {
				x, y, tall = 0, y+tall, 0
			}
			id++
			shown := p.json()
			shown["id"], shown["gridPos"] = id, place(x, y, p.width, p.height)
			all = append(all, shown)
			x, tall = x+p.width, max(tall, p.height)
		}
		y += tall
	}
	return object{
		"uid": "causeway", "title": "Causeway", "description": "Mirrors of Kafka topics: docs/metrics.md says what the metrics mean, docs/runbook.md what to do.",
		"tags": []string{"kafka", "causeway"}, "schemaVersion": schema, "version": 1, "editable": true, "graphTooltip": 1, "refresh": "30s",
		"time": object{"from": "now-3h", "to": "now"}, "timezone": "browser", "links": []object{},
		"templating": object{"list": variables()}, "annotations": object{"list": annotations()}, "panels": all,
	}
}

func place(x, y, width, height int) object { return object{"x": x, "y": y, "w": width, "h": height} }

// source is the data source that is chosen at the top.
func source() object { return object{"type": "prometheus", "uid": "${source}"} }

// variables are the choices at the top: data source, route, process, topic.
func variables() []object {
	choice := func(name, label, query string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source(), "query": object{"query": query, "refId": name}, "definition": query,
			"refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		}
	}
	return []object{
		{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus", "current": object{}},
		choice("route", "Route", "label_values(causeway_build_info, route)"),
		choice("process", "Process", `label_values(causeway_build_info{route=~"$route"}, instance)`),
		choice("topic", "Topic", `label_values(causeway_lag_records{route=~"$route"}, topic)`),
	}
}

// annotations mark the moments in which something happened.
func annotations() []object {
	mark := func(name, color, types string) object {
		return object{
			"name": name, "datasource": source(), "enable": true, "iconColor": color, "titleFormat": "{{type}}", "textFormat": "{{instance}}", "step": "60s",
			"expr": `sum by (type, instance) (increase(causeway_events_total{route=~"$route",type=~"` + types + `"}[1m])) > 0`,
		}
	}
	return []object{
		mark("Data", "red", "range_skipped|target_changed|source_diverged|duplicates_possible|foreign_writer"),
		mark("Workers", "blue", "worker_joined|worker_lost|leader_changed"),
	}
}
