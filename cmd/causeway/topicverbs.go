package main

import (
	"context"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

// topicPartitions is what the API takes and gives of a topic that is added or expanded.
type topicPartitions struct {
	Topic      string `json:"topic,omitempty"`
	Partitions int32  `json:"partitions,omitempty"`
}

func newTopicsAdd(stdout io.Writer) *cobra.Command {
	var partitions int32
	return verb{
		use: "add TOPIC", short: "Mirror a topic, also one that was removed", args: asUsed,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().Var(number{&partitions, 1}, "partitions", "`N` partitions; if left out, as many as the source has")
		},
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			var added topicPartitions
			err := c.send(ctx, http.MethodPost, "/api/v1/topics", topicPartitions{args[0], partitions}, &added)
			return args[0] + ": added with " + some(int64(added.Partitions), "partition"), err
		},
	}.command(stdout)
}

func newTopicsRemove(stdout io.Writer) *cobra.Command {
	return verb{
		use: "remove TOPIC", short: "Mirror a topic no more, until it is added again", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			err := c.send(ctx, http.MethodDelete, topicPath(args[0]), nil, nil)
			return args[0] + ": mirrored no more; its positions are kept, and what is on the target stays there", err
		},
	}.command(stdout)
}

func newTopicsExpand(stdout io.Writer) *cobra.Command {
	var partitions int32
	return verb{
		use: "expand TOPIC", short: "Mirror more partitions of a topic", args: with(asUsed, "partitions"),
		flags: func(cmd *cobra.Command) {
			cmd.Flags().Var(number{&partitions, 1}, "partitions", "`N` partitions altogether; topics do not shrink")
		},
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			err := c.send(ctx, http.MethodPost, topicPath(args[0], "expand"), topicPartitions{Partitions: partitions}, nil)
			return args[0] + ": " + some(int64(partitions), "partition"), err
		},
	}.command(stdout)
}

func newTopicsPause(stdout io.Writer) *cobra.Command {
	return verb{
		use: "pause TOPIC", short: "Stop copying a topic until it is resumed", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			return args[0] + ": paused", c.send(ctx, http.MethodPost, topicPath(args[0], "pause"), nil, nil)
		},
	}.command(stdout)
}

func newTopicsResume(stdout io.Writer) *cobra.Command {
	return verb{
		use: "resume TOPIC", short: "Let a paused topic go on where it was", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			return args[0] + ": resumed", c.send(ctx, http.MethodPost, topicPath(args[0], "resume"), nil, nil)
		},
	}.command(stdout)
}

func newTopicsLimit(stdout io.Writer) *cobra.Command {
	var l limits
	return verb{
		use: "limit TOPIC", short: "Copy a topic no faster than so much a second", args: withAny(asUsed, limitFlags()...),
		example: "  causeway topics limit orders --records-per-second 5000 --bytes-per-second 10MiB",
		flags:   l.flag,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			return args[0] + ": " + l.String(), c.send(ctx, http.MethodPut, topicPath(args[0], "limits"), l, nil)
		},
	}.command(stdout)
}
