package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

// puttingBack is how long dead letters may take to be put back; servers give up sooner.
const puttingBack = 10 * time.Minute

func newDeadLetters(stdout io.Writer) *cobra.Command {
	return group("dead-letters", "Show records that the target refused, and put them back", newDeadLettersList(stdout), newDeadLettersRetry(stdout))
}

func newDeadLettersList(stdout io.Writer) *cobra.Command {
	var (
		c      client
		out    output
		filter string
	)
	cmd := &cobra.Command{Use: "list TOPIC", Short: "List a topic's dead letters that were not put back", Args: asUsed}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		ctx := cmd.Context()
		letters, err := getAll[api.DeadLetter](ctx, &c, "/api/v1/dead-letters/"+url.PathEscape(args[0]), filterQuery(filter))
		if err != nil {
			return asExit(c.whose(ctx, err))
		}
		return asExit(out.print(stdout, letters, func(t *table) {
			t.row("TIME", "SOURCE", "OFFSET", "TARGET", "BYTES", "REASON")
			for i := range letters {
				l := &letters[i]
				t.row(l.Time.UTC().Format(time.RFC3339), fmt.Sprintf("%s-%d", l.Topic, l.Partition), count(l.Offset),
					fmt.Sprintf("%s-%d", l.TargetTopic, l.TargetPartition), count(l.Bytes), l.Reason)
			}
		}))
	}
	c.flag(cmd)
	out.flag(cmd)
	cmd.Flags().StringVar(&filter, "filter", "", "only letters whose reason or target topic contains this text")
	return cmd
}

func newDeadLettersRetry(stdout io.Writer) *cobra.Command {
	return verb{
		use: "retry TOPIC", short: "Write a topic's dead letters to where they were refused", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			path := "/api/v1/dead-letters/" + url.PathEscape(args[0]) + "/retry"
			body, err := c.do(ctx, call{method: http.MethodPost, path: path, wait: puttingBack})
			if err != nil {
				return "", c.whose(ctx, err)
			}
			var did api.DeadLetters
			err = c.understand(body, path, &did)
			return fmt.Sprintf("%s: %s put back from %s, %d refused again, %d passed over that are none of its own",
				args[0], some(did.PutBack, "record"), did.DeadLetterTopic, did.Refused, did.Foreign), err
		},
	}.command(stdout)
}
