package main

// row is a line of panels below a title.
type row struct {
	title  string
	panels []panel
}

// panel is one picture.
type panel struct {
	kind          string // stat, timeseries, table
	title, help   string
	unit          string // one of Grafana's
	width, height int
	queries       []query
	stacked       bool
	steps         []object // of colours by value; none: by series
}

// query is an expression and the name of its series.
type query struct{ expr, legend string }

// rate is over a window that fits the zoom and the scrape interval.
const rate = "[$__rate_interval]"

// Selectors: of a route, of its processes, of its topics.
const (
	ofRoute   = `{route=~"$route"}`
	ofProcess = `{route=~"$route",instance=~"$process"}`
	ofTopic   = `{route=~"$route",topic=~"$topic"}`
)

func stat(title, unit, expr, help string, steps ...object) panel {
	return panel{kind: "stat", title: title, help: help, unit: unit, width: 4, height: 4, queries: []query{{expr, ""}}, steps: steps}
}

func graph(title, unit, help string, queries ...query) panel {
	return panel{kind: "timeseries", title: title, help: help, unit: unit, width: 8, height: height, queries: queries}
}

func (p panel) stack() panel {
	p.stacked = true
	return p
}

func (p panel) wide() panel {
	p.width = 12
	return p
}

// from colours values from a bound on.
func from(value any, color string) object { return object{"value": value, "color": color} }

// rows are what the dashboard shows.
func rows() []row {
	return []row{overview(), topics(), workers(), dataPath(), coordination(), process()}
}

func overview() row {
	good, bad := from(nil, "green"), from(1, "red")
	return row{"Overview", []panel{
		stat("Lag", "short", "sum(causeway_lag_records"+ofRoute+")", "Records that the target has not acknowledged yet.", good),
		stat("Furthest behind", "s", "max(causeway_lag_seconds"+ofRoute+")", "How long the partition that is furthest behind has been so.", good, from(60, "orange"), from(300, "red")),
		stat("Records a second", "short", "sum(rate(causeway_records_total"+ofRoute+rate+"))", "Acknowledged by the target.", from(nil, "blue")),
		stat("Bytes a second", "Bps", "sum(rate(causeway_bytes_total"+ofRoute+rate+"))", "Batches as on the wire, compressed.", from(nil, "blue")),
		stat("Halted", "short", `sum(causeway_partitions{route=~"$route",state="halted"})`, "Partitions that stand still and need something: CausewayPartitionHalted.", good, bad),
		stat("Routes in trouble", "short",
			`count((causeway_events_total{route=~"$route",type="route_degraded"} - ignoring (type) causeway_events_total{route=~"$route",type="route_recovered"}) > 0) or vector(0)`,
			"Processes that cannot reach a cluster, or make no progress: CausewayRouteDegraded.", good, bad),
		graph("Partitions by state", "short", "Of workers and mirrors in one process.", query{"sum by (state) (causeway_partitions" + ofRoute + ")", "{{state}}"}).stack(),
		graph("Lag by route", "short", "The controller's counts what nobody mirrors, too.",
			query{"sum by (route) (causeway_lag_records" + ofRoute + ")", "{{route}}"},
			query{"sum by (route) (causeway_controller_lag_records" + ofRoute + ")", "{{route}}, by the controller"}),
		graph("Events", "short", "Since the last point; docs/events.md.",
			query{"sum by (type) (increase(causeway_events_total" + ofRoute + rate + ")) > 0", "{{type}}"}).stack(),
	}}
}

func topics() row {
	return row{"Topics", []panel{
		graph("Lag", "short", "Records not acknowledged yet, the ten topics with most.", query{"topk(10, sum by (topic) (causeway_lag_records" + ofTopic + "))", "{{topic}}"}),
		graph("Lag in bytes", "bytes", "About what these records take, by the mean of those before, the ten topics with most.",
			query{"topk(10, sum by (topic) (causeway_lag_bytes" + ofTopic + "))", "{{topic}}"}),
		graph("Behind", "s", "How long the topic's last partition has been behind, the ten with most.", query{"topk(10, max by (topic) (causeway_lag_seconds" + ofTopic + "))", "{{topic}}"}),
		graph("Records a second", "short", "The ten topics with most.", query{"topk(10, sum by (topic) (rate(causeway_records_total" + ofTopic + rate + ")))", "{{topic}}"}),
		graph("Bytes a second", "Bps", "The ten topics with most.", query{"topk(10, sum by (topic) (rate(causeway_bytes_total" + ofTopic + rate + ")))", "{{topic}}"}),
		graph("Share of batches that pass raw", "percentunit", "The others are rewritten, which costs about ten times as much.",
			query{`sum by (topic) (rate(causeway_batches_total{route=~"$route",topic=~"$topic",path="raw"}` + rate + `)) / sum by (topic) (rate(causeway_batches_total` + ofTopic + rate + `))`, "{{topic}}"}),
		graph("Offsets skipped without a copy", "short", "CausewayDataSkipped.",
			query{"sum by (topic, reason) (increase(causeway_skipped_records_total" + ofTopic + rate + ")) > 0", "{{topic}}: {{reason}}"}),
		graph("Records left out of two-way topics", "short", "What the route back has brought; a second. As many as that one copies.",
			query{"topk(10, sum by (topic) (rate(causeway_returned_records_total" + ofTopic + rate + ")))", "{{topic}}"}),
		{
			kind: "table", title: "Partitions furthest behind", help: "Records that the target has not acknowledged yet.", unit: "short", width: columns, height: height,
			queries: []query{{"topk(20, sum by (route, topic, partition, instance) (causeway_lag_records" + ofTopic + "))", ""}},
		},
	}}
}

func workers() row {
	return row{"Workers", []panel{
		graph("Partitions that are copied", "short", "By worker.", query{`sum by (instance) (causeway_partitions{route=~"$route",instance=~"$process",state="mirroring"})`, "{{instance}}"}).stack(),
		graph("Records a second", "short", "By worker.", query{"sum by (instance) (rate(causeway_records_total" + ofProcess + rate + "))", "{{instance}}"}).stack(),
		graph("Partitions that are not", "short", "By worker and state; paused ones are somebody's wish.",
			query{`sum by (instance, state) (causeway_partitions{route=~"$route",instance=~"$process",state!="mirroring"}) > 0`, "{{instance}}: {{state}}"}).stack(),
	}}
}

func dataPath() row {
	quantile := func(q, name string) query {
		return query{"histogram_quantile(" + q + ", sum by (le) (rate(causeway_replication_latency_seconds_bucket" + ofProcess + rate + ")))", name}
	}
	return row{"Data path", []panel{
		graph("Latency", "s", "From the fetch answer to the acknowledgement of a batch.", quantile("0.5", "half"), quantile("0.99", "99 of 100"), quantile("0.999", "999 of 1000")),
		graph("Fetch errors", "short", "Answers of the source a second; LINK is a broken connection.", query{"sum by (error) (rate(causeway_fetch_errors_total" + ofProcess + rate + "))", "{{error}}"}),
		graph("Produce errors", "short", "Batches a second that the target did not acknowledge.", query{"sum by (error) (rate(causeway_produce_errors_total" + ofProcess + rate + "))", "{{error}}"}),
		graph("Unanswered requests", "short", "By broker of the target.", query{"sum by (broker) (causeway_in_flight_requests" + ofProcess + ")", "broker {{broker}}"}),
		graph("Buffers", "bytes", "Reserved for batches in memory.", query{"causeway_buffer_bytes" + ofProcess, "{{instance}}"}),
		graph("Age of the oldest position that is not stored", "s", "CausewayCommitOld.", query{"causeway_commit_age_seconds" + ofProcess, "{{instance}}"}),
		graph("Duplicates avoided", "short", "Records that were found on the target after a break, and not sent again.",
			query{"sum by (instance) (increase(causeway_duplicates_avoided_total" + ofProcess + rate + "))", "{{instance}}"}).wide(),
		graph("Partitions that got a connection of their own", "short", "Because their answers were late.",
			query{"sum by (instance) (increase(causeway_slow_partitions_total" + ofProcess + rate + "))", "{{instance}}"}).wide(),
	}}
}

func coordination() row {
	return row{"Coordination", []panel{
		graph("Leaders and workers", "short", "One leader a route, always.",
			query{"sum by (route) (causeway_controller_leader" + ofRoute + ")", "leaders of {{route}}"}, query{"max by (route) (causeway_workers" + ofRoute + ")", "workers of {{route}}"}),
		graph("Partitions that moved", "short", "By reason.", query{"sum by (reason) (increase(causeway_rebalance_moves_total" + ofRoute + rate + "))", "{{reason}}"}).stack(),
		graph("Partitions as the workers report them", "short", "Those that are not ONLINE.",
			query{`sum by (state) (causeway_controller_partitions{route=~"$route",state=~"offline|error"})`, "{{state}}"}),
		graph("Transitions a second", "short", "On the workers, by result.", query{"sum by (result) (rate(causeway_helix_transitions_total" + ofRoute + rate + "))", "{{result}}"}),
		graph("Suspended workers", "short", "ZooKeeper is silent: CausewaySuspended.", query{"sum by (route) (causeway_helix_suspended" + ofRoute + ")", "{{route}}"}),
		graph("Tasks that failed", "short", "Of the leader: CausewayControllerTaskFails.",
			query{"sum by (task) (increase(causeway_controller_job_errors_total" + ofRoute + rate + "))", "{{task}}"}),
		graph("Rebalances take", "s", "From the decision to its last write, of those that moved something.",
			query{"histogram_quantile(0.99, sum by (le) (rate(causeway_rebalance_seconds_bucket" + ofRoute + rate + ")))", "99 of 100"}).wide(),
		graph("Topics whose state does not fit", "short", "Not all of their partitions are reported.",
			query{`sum by (route) (causeway_controller_topics{route=~"$route",state="error"})`, "{{route}}"}).wide(),
	}}
}

func process() row {
	return row{"Processes", []panel{
		graph("Processor", "percentunit", "Cores in use.", query{`rate(process_cpu_seconds_total{instance=~"$process"}` + rate + `) and on (instance) causeway_build_info` + ofProcess, "{{instance}}"}),
		graph("Memory", "bytes", "Resident.", query{`process_resident_memory_bytes{instance=~"$process"} and on (instance) causeway_build_info` + ofProcess, "{{instance}}"}),
		graph("Goroutines", "short", "", query{`go_goroutines{instance=~"$process"} and on (instance) causeway_build_info` + ofProcess, "{{instance}}"}),
		graph("HTTP requests a second", "short", "By status.", query{"sum by (code) (rate(causeway_http_requests_total" + ofProcess + rate + "))", "{{code}}"}),
		graph("Certificates end in", "s", "Our own for the clusters, and the API's: CausewayCertificateExpires.",
			query{"min by (cluster) (causeway_certificate_expiry_seconds" + ofProcess + ")", "{{cluster}}"},
			query{"min(causeway_server_certificate_expiry_seconds" + ofProcess + ")", "API"}),
		graph("Room on the disk with the positions", "bytes", "CausewayDiskFull.", query{"causeway_state_free_bytes" + ofProcess, "{{instance}}"}),
		{
			kind: "table", title: "Builds", help: "", unit: "short", width: columns, height: 6,
			queries: []query{{"count by (route, instance, version, revision, goversion) (causeway_build_info" + ofProcess + ")", ""}},
		},
	}}
}

// json is the panel as Grafana reads it.
func (p panel) json() object {
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source(), "expr": q.expr, "legendFormat": q.legend}
		if p.kind != "timeseries" {
			target["instant"] = true
		}
		if p.kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	defaults := object{"unit": p.unit, "custom": object{}}
	if len(p.steps) > 0 {
		defaults["color"], defaults["thresholds"] = object{"mode": "thresholds"}, object{"mode": "absolute", "steps": p.steps}
	}
	shown := object{
		"type": p.kind, "title": p.title, "description": p.help, "datasource": source(), "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
	}
	switch p.kind {
	case "stat":
		shown["options"] = object{"colorMode": "background", "graphMode": "area", "reduceOptions": object{"calcs": []string{"lastNotNull"}}}
	case "table":
		hidden := object{"Time": true, "__name__": true}
		shown["options"] = object{"showHeader": true}
		shown["transformations"] = []object{{"id": "organize", "options": object{"excludeByName": hidden}}}
	default:
		custom := object{"fillOpacity": 10, "showPoints": "never"}
		if p.stacked {
			custom["stacking"], custom["fillOpacity"] = object{"mode": "normal", "group": "A"}, 40
		}
		defaults["custom"], defaults["min"] = custom, 0
		shown["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	}
	return shown
}
