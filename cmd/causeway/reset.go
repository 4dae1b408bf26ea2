package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

func newPartitionsReset(stdout io.Writer) *cobra.Command {
	var to resetPlace
	return partitionVerb{
		use: "reset", short: "Set the position of a partition: records from there on are copied, also if they were before",
		example: "  causeway partitions reset --topic orders --partition 3 --to 2026-01-02T15:04:05Z",
		args:    with(asUsed, "to"),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().Var(&to, "to", "`WHERE`: earliest, latest, an offset of the source or a time (RFC 3339)")
			choices(cmd, "to", "earliest", "latest")
		},
		do: func(ctx context.Context, c *client, p route.Partition) (string, error) { return reset(ctx, c, p, to) },
	}.command(stdout)
}

// reset asks for a reset and tells what is known of it: one process has carried it out when it answers, and has told so in an event; in a
// cluster it is noted for the worker that has the partition.
func reset(ctx context.Context, c *client, p route.Partition, to resetPlace) (done string, err error) {
	var before api.List[events.Event]
	newest := url.Values{"sort": {"-id"}, "limit": {"1"}}
	if err = c.get(ctx, "/api/v1/events", newest, &before); err != nil {
		return "", err
	}
	if err = c.send(ctx, http.MethodPost, partitionPath(p, "reset"), map[string]any{"to": to.json()}, nil); err != nil {
		return "", err
	}
	done = fmt.Sprintf("reset to %s noted; it is carried out as soon as the partition's clusters answer, and told in an event", string(to))
	since := url.Values{"type": {string(events.CheckpointOverridden)}}
	for i := range before.Items {
		since.Set("since", strconv.FormatInt(before.Items[i].ID, 10))
	}
	told, err := getAll[events.Event](ctx, c, "/api/v1/events", since)
	if err != nil {
		return done, nil //nolint:nilerr // it is noted all the same
	}
	for i := range told {
		e := &told[i]
		if e.Topic == p.Topic && e.Partition != nil && *e.Partition == p.Partition && e.FirstOffset != nil {
			done = fmt.Sprintf("position set to %d (%s)", *e.FirstOffset, e.Reason)
		}
	}
	return done, nil
}

// resetPlace is where a position is set to: earliest, latest, an offset or a time. It is a flag value, so that a wrong one is wrong usage.
type resetPlace string

// String gives it as it was given.
func (p *resetPlace) String() string { return string(*p) }

// Type names the value in help texts.
func (*resetPlace) Type() string { return "place" }

// Set takes what the API does.
func (p *resetPlace) Set(text string) error {
	_, err := operator.ParsePlace(text)
	if wrong, ok := errors.AsType[*operator.InvalidError](err); ok {
		return errors.New(wrong.Reason)
	}
	*p = resetPlace(text)
	return err
}

// json is its form in the API: offsets are numbers there.
func (p *resetPlace) json() any {
	if offset, err := strconv.ParseInt(string(*p), 10, 64); err == nil {
		return offset
	}
	return string(*p)
}
