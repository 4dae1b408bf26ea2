package main

import (
	"context"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/route"
)

func newPartitions(stdout io.Writer) *cobra.Command {
	return group("partitions", "Show and change the partitions of the route",
		newPartitionsList(stdout), newPartitionsReset(stdout), newPartitionsRetry(stdout), newPartitionsMove(stdout),
		newPartitionsPause(stdout), newPartitionsResume(stdout), newPartitionsLimit(stdout),
	)
}

func newPartitionsList(stdout io.Writer) *cobra.Command {
	var (
		c             client
		out           output
		topic, filter string
	)
	list := &cobra.Command{
		Use: "list", Short: "List partitions with state, offsets and lag", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			parts, err := partitionsOf(ctx, &c, topic, filterQuery(filter))
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
	return list
}

// partitionsOf are those of a topic, or all. A topic that is not mirrored is an error.
func partitionsOf(ctx context.Context, c *client, topic string, q url.Values) ([]api.Partition, error) {
	if topic != "" {
		q.Set("topic", topic)
	}
	parts, err := getAll[api.Partition](ctx, c, "/api/v1/partitions", q)
	if err == nil && topic != "" && len(parts) == 0 { // the topic is not mirrored, or the filter keeps nothing of it: the API knows
		err = c.get(ctx, topicPath(topic), nil, &api.Topic{})
	}
	return parts, err
}

func partitionRows(t *table, parts []api.Partition) {
	t.row("PARTITION", "TARGET", "WORKER", t.painted("STATE"), "ACKED", "COMMITTED", "END", "LAG", "BEHIND", "RECORDS", "PATH", "REASON")
	for i := range parts {
		p := &parts[i]
		source := route.Partition{Topic: p.Topic, Partition: p.Partition}
		target := route.Partition{Topic: p.TargetTopic, Partition: p.TargetPartition}
		reason := p.Reason
		if reason == "" {
			reason = p.LastError
		}
		t.row(source.String(), target.String(), p.Worker, t.painted(p.State), count(p.Acked), count(p.Committed), count(p.SourceEnd),
			count(p.LagRecords), behind(p.LagRecords, p.LagSeconds), rate(p.RecordsPerSecond), p.Path, reason)
	}
}
