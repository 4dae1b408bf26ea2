package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/route"
)

func newTopics(stdout io.Writer) *cobra.Command {
	return group("topics", "Show topics of the route", newTopicsList(stdout), newTopicsDescribe(stdout))
}

func newTopicsList(stdout io.Writer) *cobra.Command {
	var (
		c        client
		out      output
		filter   string
		excluded bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List mirrored topics with their totals", Args: cobra.NoArgs,
		RunE: action(func(ctx context.Context) error {
			if excluded {
				return listExcluded(ctx, &c, &out, stdout, filter)
			}
			topics, err := getAll[api.Topic](ctx, &c, "/api/v1/topics", filterQuery(filter))
			if err != nil {
				return err
			}
			return out.print(stdout, topics, func(t *table) {
				t.row("TOPIC", "TARGET", "PARTITIONS", "STATES", "LAG", "BEHIND", "RECORDS", "BYTES")
				for i := range topics {
					p := &topics[i]
					t.row(p.Topic, p.TargetTopic, strconv.Itoa(p.PartitionCount), states(p.States), count(p.LagRecords),
						seconds(p.LagSeconds), rate(p.RecordsPerSecond), megabytes(p.BytesPerSecond))
				}
			})
		}),
	}
	c.flag(cmd)
	out.flag(cmd)
	cmd.Flags().StringVar(&filter, "filter", "", "only topics whose name or state contains this text")
	cmd.Flags().BoolVar(&excluded, "excluded", false, "list the topics that are not mirrored, with the reason")
	return cmd
}

func listExcluded(ctx context.Context, c *client, out *output, w io.Writer, filter string) error {
	topics, err := getAll[api.Excluded](ctx, c, "/api/v1/excluded-topics", filterQuery(filter))
	if err != nil {
		return err
	}
	return out.print(w, topics, func(t *table) {
		t.row("TOPIC", "REASON")
		for _, e := range topics {
			t.row(e.Topic, e.Reason)
		}
	})
}

func newTopicsDescribe(stdout io.Writer) *cobra.Command {
	var (
		c   client
		out output
	)
	cmd := &cobra.Command{
		Use: "describe TOPIC", Short: "Show one topic and its partitions", Args: cobra.ExactArgs(1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var topic api.Topic
		if err := c.get(cmd.Context(), "/api/v1/topics/"+url.PathEscape(args[0]), nil, &topic); err != nil {
			return asExit(err)
		}
		return asExit(out.print(stdout, topic, func(t *table) {
			t.row("topic", topic.Topic+" -> "+topic.TargetTopic)
			t.row("partitions", states(topic.States))
			t.row("lag", fmt.Sprintf("%s records, %s", count(topic.LagRecords), seconds(topic.LagSeconds)))
			t.row("throughput", rate(topic.RecordsPerSecond)+", "+megabytes(topic.BytesPerSecond))
			t.row("")
			partitionRows(t, topic.Partitions)
		}))
	}
	c.flag(cmd)
	out.flag(cmd)
	return cmd
}

func newPartitions(stdout io.Writer) *cobra.Command {
	var (
		c             client
		out           output
		topic, filter string
	)
	list := &cobra.Command{
		Use: "list", Short: "List partitions with state, offsets and lag", Args: cobra.NoArgs,
		RunE: action(func(ctx context.Context) error {
			q := filterQuery(filter)
			if topic != "" {
				q.Set("topic", topic)
			}
			parts, err := getAll[api.Partition](ctx, &c, "/api/v1/partitions", q)
			if err == nil && topic != "" && len(parts) == 0 { // the topic is not mirrored, or the filter keeps nothing of it: the API knows
				err = c.get(ctx, "/api/v1/topics/"+url.PathEscape(topic), nil, &api.Topic{})
			}
			if err != nil {
				return err
			}
			return out.print(stdout, parts, func(t *table) { partitionRows(t, parts) })
		}),
	}
	c.flag(list)
	out.flag(list)
	list.Flags().StringVar(&topic, "topic", "", "only partitions of this topic")
	list.Flags().StringVar(&filter, "filter", "", "only partitions whose name or state contains this text")
	return group("partitions", "Show partitions of the route", list)
}

func partitionRows(t *table, parts []api.Partition) {
	t.row("PARTITION", "TARGET", "STATE", "ACKED", "COMMITTED", "END", "LAG", "BEHIND", "RECORDS", "PATH", "REASON")
	for i := range parts {
		p := &parts[i]
		source := route.Partition{Topic: p.Topic, Partition: p.Partition}
		target := route.Partition{Topic: p.TargetTopic, Partition: p.TargetPartition}
		reason := p.Reason
		if reason == "" {
			reason = p.LastError
		}
		t.row(source.String(), target.String(), p.State, count(p.Acked), count(p.Committed), count(p.SourceEnd), count(p.LagRecords),
			seconds(p.LagSeconds), rate(p.RecordsPerSecond), p.Path, reason)
	}
}

func filterQuery(filter string) url.Values {
	if filter == "" {
		return url.Values{}
	}
	return url.Values{"filter": {filter}}
}
