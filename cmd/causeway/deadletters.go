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
	return group("dead-letters", "Put records back that the target refused", newDeadLettersRetry(stdout))
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
