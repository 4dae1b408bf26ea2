package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

func newTopics(stdout io.Writer) *cobra.Command {
	return group("topics", "Show and change the topics of the route",
		newTopicsList(stdout), newTopicsDescribe(stdout), newTopicsAdd(stdout), newTopicsRemove(stdout), newTopicsExpand(stdout),
		newTopicsPause(stdout), newTopicsResume(stdout), newTopicsLimit(stdout),
	)
}

func newTopicsList(stdout io.Writer) *cobra.Command {
	var (
		c        client
		out      output
		filter   string
		excluded bool
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List mirrored topics with their totals", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			if excluded {
				return listExcluded(ctx, &c, &out, stdout, filter)
			}
			topics, err := getAll[api.Topic](ctx, &c, "/api/v1/topics", filterQuery(filter))
			if err != nil {
				return err
			}
			return out.print(stdout, topics, func(t *table) {
				t.row("TOPIC", "TARGET", "PARTITIONS", t.painted("STATES"), "LAG", "BEHIND", "RECORDS", "BYTES")
				for i := range topics {
					p := &topics[i]
					t.row(p.Topic, p.TargetTopic, strconv.Itoa(p.PartitionCount), t.painted(states(p.States)), count(p.LagRecords),
						behind(p.LagRecords, p.LagSeconds), rate(p.RecordsPerSecond), megabytes(p.BytesPerSecond))
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
		Use: "describe TOPIC", Short: "Show one topic and its partitions", Args: asUsed,
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var topic api.Topic
		if err := c.get(cmd.Context(), topicPath(args[0]), nil, &topic); err != nil {
			return asExit(err)
		}
		return asExit(out.print(stdout, topic, func(t *table) {
			t.row("topic", topic.Topic+" -> "+topic.TargetTopic)
			t.row("partitions", t.painted(states(topic.States)))
			t.row("lag", fmt.Sprintf("%s, %s", lagText(topic.LagRecords), behind(topic.LagRecords, topic.LagSeconds)))
			t.row("throughput", rate(topic.RecordsPerSecond)+", "+megabytes(topic.BytesPerSecond))
			t.row("")
			partitionRows(t, topic.Partitions)
		}))
	}
	c.flag(cmd)
	out.flag(cmd)
	return cmd
}

func filterQuery(filter string) url.Values {
	if filter == "" {
		return url.Values{}
	}
	return url.Values{"filter": {filter}}
}

// topicPath is where the API has a topic, or what belongs to it.
func topicPath(topic string, below ...string) string {
	parts := []string{"/api/v1/topics", url.PathEscape(topic)}
	for _, part := range below {
		parts = append(parts, url.PathEscape(part))
	}
	return strings.Join(parts, "/")
}
