package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/events"
)

// followWait is how long one long poll of --follow lasts.
const followWait = 30 * time.Second

type eventsCommand struct {
	client client
	out    output
	follow bool
	since  string
	kind   string
	stdout io.Writer
}

func newEvents(stdout io.Writer) *cobra.Command {
	e := &eventsCommand{stdout: stdout}
	cmd := &cobra.Command{
		Use: "events", Short: "List what happened: halts, skipped ranges, truncations, changes", Args: asUsed,
		RunE: action(e.run),
	}
	e.client.flag(cmd)
	e.out.flag(cmd)
	cmd.Flags().BoolVar(&e.follow, "follow", false, "go on printing new ones until interrupted")
	cmd.Flags().StringVar(&e.since, "since", "", "only newer ones: a duration back (1h), a time (RFC 3339) or an event's id")
	cmd.Flags().StringVar(&e.kind, "type", "", "only this type, see docs/events.md")
	return cmd
}

func (e *eventsCommand) run(ctx context.Context) error {
	id, from, err := parseSince(e.since, time.Now())
	if err != nil {
		return err
	}
	q := url.Values{"since": {strconv.FormatInt(id, 10)}}
	if e.kind != "" {
		q.Set("type", e.kind)
	}
	found, err := getAll[events.Event](ctx, &e.client, "/api/v1/events", q)
	if err != nil {
		return err
	}
	for len(found) > 0 && found[0].Time.Before(from) {
		id, found = found[0].ID, found[1:]
	}
	if !e.follow {
		return e.out.print(e.stdout, found, func(t *table) {
			t.row("ID", "TIME", "SEVERITY", "TYPE", "WHERE", "MESSAGE")
			for i := range found {
				t.row(eventCells(&found[i])...)
			}
		})
	}
	return e.tail(ctx, id, found)
}

// tail prints events as they come, one line each, also in JSON.
func (e *eventsCommand) tail(ctx context.Context, id int64, found []events.Event) error {
	for {
		for i := range found {
			if err := e.line(&found[i]); err != nil {
				return err
			}
			id = found[i].ID
		}
		q := url.Values{"since": {strconv.FormatInt(id, 10)}, "wait": {followWait.String()}}
		if e.kind != "" {
			q.Set("type", e.kind)
		}
		var page api.List[events.Event]
		if err := e.client.get(ctx, "/api/v1/events", q, &page); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // interrupted is how following ends
			}
			if !transient(err) {
				return err
			}
			pause(ctx, time.Second) // a mirror that restarts goes on with greater ids
		}
		found = page.Items
	}
}

func (e *eventsCommand) line(ev *events.Event) error {
	if e.out == "table" {
		cells := eventCells(ev)
		_, err := fmt.Fprintf(e.stdout, "%s  %-7s  %-20s  %s  %s\n", cells[1], cells[2], cells[3], cells[4], cells[5])
		return err
	}
	text, err := json.Marshal(ev)
	if err == nil && e.out == "yaml" {
		text, err = jsonToYAML(text)
		text = append([]byte("---\n"), text...)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s\n", text)
	return err
}

func eventCells(e *events.Event) []string {
	return []string{
		strconv.FormatInt(e.ID, 10), e.Time.Format(time.RFC3339), string(e.Severity), string(e.Type), place(e), eventText(e),
	}
}

// eventText is what an event says, with its offsets and its reason.
func eventText(e *events.Event) string {
	text := e.Message
	switch first, last := e.FirstOffset, e.LastOffset; {
	case first == nil || last == nil:
	case *first == *last: // a place, more often than one record
		text += fmt.Sprintf(" (at offset %d)", *first)
	default:
		text += fmt.Sprintf(" (offsets %d to %d)", *first, *last)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// parseSince reads an id, a duration back or a time. Ids grow with time, but only roughly, so times are compared with times.
func parseSince(text string, now time.Time) (id int64, from time.Time, err error) {
	if text == "" {
		return 0, time.Time{}, nil
	}
	if id, err = strconv.ParseInt(text, 10, 64); err == nil {
		return id, time.Time{}, nil
	}
	if d, durationErr := time.ParseDuration(text); durationErr == nil && d >= 0 {
		return 0, now.Add(-d), nil
	}
	if from, err = time.Parse(time.RFC3339, text); err == nil {
		return 0, from, nil
	}
	return 0, time.Time{}, fmt.Errorf("--since %q: must be a duration back (1h), a time (RFC 3339) or an event's id", text)
}
