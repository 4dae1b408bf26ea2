package main

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/route"
)

// partitionVerb is a verb of one partition, which flags name.
type partitionVerb struct {
	use, short string
	example    string
	args       cobra.PositionalArgs     // beside those that name the partition
	flags      func(cmd *cobra.Command) // nil: none of its own
	do         func(ctx context.Context, c *client, p route.Partition) (done string, err error)
}

func (v partitionVerb) command(stdout io.Writer) *cobra.Command {
	var p route.Partition
	if v.args == nil {
		v.args = asUsed
	}
	return verb{
		use: v.use, short: v.short, example: v.example, args: with(v.args, "topic", "partition"),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&p.Topic, "topic", "", "`NAME` of the topic")
			cmd.Flags().Var(number{&p.Partition, 0}, "partition", "`NUMBER` of the partition")
			if v.flags != nil {
				v.flags(cmd)
			}
		},
		do: func(ctx context.Context, c *client, _ []string) (string, error) {
			done, err := v.do(ctx, c, p)
			return p.String() + ": " + done, err
		},
	}.command(stdout)
}

// partitionPath is where the API has what belongs to a partition.
func partitionPath(p route.Partition, below string) string {
	return topicPath(p.Topic, "partitions", strconv.FormatInt(int64(p.Partition), 10), below)
}

// plain is a verb that needs nothing but the partition's name.
func plain(use, short, done string) partitionVerb {
	return partitionVerb{
		use: use, short: short,
		do: func(ctx context.Context, c *client, p route.Partition) (string, error) {
			return done, c.send(ctx, http.MethodPost, partitionPath(p, use), nil, nil)
		},
	}
}

func newPartitionsRetry(stdout io.Writer) *cobra.Command {
	return plain("retry", "Try a halted partition at once", "will be tried at once").command(stdout)
}

func newPartitionsPause(stdout io.Writer) *cobra.Command {
	return plain("pause", "Stop copying a partition until it is resumed", "paused").command(stdout)
}

func newPartitionsResume(stdout io.Writer) *cobra.Command {
	return plain("resume", "Let a paused partition go on where it was", "resumed").command(stdout)
}

func newPartitionsMove(stdout io.Writer) *cobra.Command {
	var to struct {
		Worker string `json:"worker"`
	}
	return partitionVerb{
		use: "move", short: "Bring a partition to a worker and keep it there", args: with(asUsed, "worker"),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&to.Worker, "worker", "", "`ID` of the worker; an empty one lets the partition be placed as balance needs it")
		},
		do: func(ctx context.Context, c *client, p route.Partition) (string, error) {
			done := "moves to " + to.Worker + ", and stays there until it is freed by an empty --worker"
			if to.Worker == "" {
				done = "freed; it goes where balance needs it"
			}
			return done, c.send(ctx, http.MethodPost, partitionPath(p, "move"), to, nil)
		},
	}.command(stdout)
}

func newPartitionsLimit(stdout io.Writer) *cobra.Command {
	var l limits
	return partitionVerb{
		use: "limit", short: "Copy a partition no faster than so much a second", args: withAny(asUsed, limitFlags()...), flags: l.flag,
		do: func(ctx context.Context, c *client, p route.Partition) (string, error) {
			return l.String(), c.send(ctx, http.MethodPut, partitionPath(p, "limits"), l, nil)
		},
	}.command(stdout)
}
