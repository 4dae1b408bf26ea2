package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/events"
)

const (
	watchEvery   = 2 * time.Second
	clearScreen  = "\x1b[H\x1b[2J"
	recentEvents = "5"
)

// statusView is what `status` shows: the API's answer and the newest events.
type statusView struct {
	api.Status

	RecentEvents []events.Event `json:"recent_events"`

	missing []string // topics that are named and do not exist; for the table, api.Excluded has them for programs
}

func newStatus(stdout io.Writer) *cobra.Command {
	var (
		c     client
		out   output
		watch bool
	)
	cmd := &cobra.Command{
		Use: "status", Short: "Show the route, its partitions by state, lag, throughput and recent events", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			if !watch {
				return showStatus(ctx, &c, &out, stdout)
			}
			for {
				if isTerminal(stdout) {
					fmt.Fprint(stdout, clearScreen)
				} else if out == "table" { // json and yaml are for programs
					fmt.Fprintf(stdout, "--- %s\n", time.Now().Format(time.RFC3339))
				}
				if err := showStatus(ctx, &c, &out, stdout); err != nil && ctx.Err() == nil {
					fmt.Fprintln(stdout, err) // a mirror that restarts is worth watching too
				}
				if !pause(ctx, watchEvery) {
					return nil
				}
			}
		}),
	}
	c.flag(cmd)
	out.flag(cmd)
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again every 2 s until interrupted")
	return cmd
}

func showStatus(ctx context.Context, c *client, out *output, w io.Writer) error {
	var view statusView
	if err := c.get(ctx, "/api/v1/status", nil, &view.Status); err != nil {
		return err
	}
	var newest api.List[events.Event]
	if err := c.get(ctx, "/api/v1/events", url.Values{"sort": {"-id"}, "limit": {recentEvents}}, &newest); err != nil {
		return err
	}
	view.RecentEvents = newest.Items
	if *out == "table" && view.LeaderAddress == "" { // of a standby another process would have to be asked
		view.missing = missingTopics(ctx, c)
	}
	return out.print(w, view, func(t *table) {
		r := view.Route
		state := r.State
		if r.Reason != "" {
			state += ": " + r.Reason
		}
		t.row("route", routeText(r.Name))
		t.row("state", t.painted(state))
		t.row("partitions", t.painted(states(r.Partitions)))
		if len(view.missing) > 0 {
			t.row("missing", strings.Join(view.missing, ", ")+": "+missingReason)
		}
		t.row("lag", lagText(r.LagRecords))
		t.row("throughput", rate(r.RecordsPerSecond)+", "+megabytes(r.BytesPerSecond))
		t.row("workers", count(view.Workers))
		t.row("up", seconds(view.UptimeSeconds))
		t.row("version", view.Role+" "+view.Version)
		for i := range view.RecentEvents {
			e := &view.RecentEvents[i]
			t.row("event", e.Time.Format(time.RFC3339)+" "+string(e.Severity)+" "+string(e.Type)+" "+place(e)+" "+eventText(e))
		}
	})
}

// missingTopics are those that are named for the mirror and do not exist; none if they cannot be told.
func missingTopics(ctx context.Context, c *client) (names []string) {
	var excluded api.List[api.Excluded]
	if err := c.get(ctx, "/api/v1/excluded-topics", url.Values{"filter": {missingReason}, "limit": {"20"}}, &excluded); err != nil {
		return nil
	}
	for _, e := range excluded.Items {
		if e.Reason == missingReason {
			names = append(names, e.Topic)
		}
	}
	return names
}

// lagText is a lag in words; -1 is one that is not known.
func lagText(records int64) string {
	if records < 0 {
		return "unknown"
	}
	return plural(records, "record")
}

// routeText is a route in words, with the name that metrics and logs have for it.
func routeText(name string) string {
	parts := strings.Split(name, "@") // @source@target@id
	if len(parts) != 4 {
		return name
	}
	return fmt.Sprintf("%s -> %s (%s)", parts[1], parts[2], name)
}

// place names what an event is about.
func place(e *events.Event) string {
	switch {
	case e.Topic == "":
		return e.Route
	case e.Partition == nil:
		return e.Topic
	default:
		return fmt.Sprintf("%s-%d", e.Topic, *e.Partition)
	}
}
