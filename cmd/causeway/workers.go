package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

func newWorkers(stdout io.Writer) *cobra.Command {
	return group("workers", "Show the workers of the cluster, and take one out or back in",
		newWorkersList(stdout), newWorkersDrain(stdout), newWorkersEnable(stdout))
}

func newWorkersList(stdout io.Writer) *cobra.Command {
	var (
		c      client
		out    output
		filter string
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List workers with state, partitions and throughput", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			workers, err := getAll[api.Worker](ctx, &c, "/api/v1/workers", filterQuery(filter))
			if err != nil {
				return c.whose(ctx, err)
			}
			return out.print(stdout, workers, func(t *table) {
				t.row("WORKER", t.painted("STATE"), "PARTITIONS", "RECORDS", "BYTES")
				for i := range workers {
					w := &workers[i]
					t.row(w.ID, t.painted(w.State), count(w.Partitions), rate(w.RecordsPerSecond), megabytes(w.BytesPerSecond))
				}
			})
		}),
	}
	c.flag(cmd)
	out.flag(cmd)
	cmd.Flags().StringVar(&filter, "filter", "", "only workers whose name or state contains this text")
	return cmd
}

func newWorkersDrain(stdout io.Writer) *cobra.Command {
	return verb{
		use: "drain ID", short: "Give all partitions of a worker to the others, and no new ones to it", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			if err := c.send(ctx, http.MethodPost, workerPath(args[0], "drain"), nil, nil); err != nil {
				return "", err
			}
			return args[0] + ": draining; " + whereTo(ctx, c, args[0]), nil
		},
	}.command(stdout)
}

// whereTo says what becomes of the partitions of a worker that drains. While there is no other one they stay, and are mirrored.
func whereTo(ctx context.Context, c *client, drained string) string {
	workers, err := getAll[api.Worker](ctx, c, "/api/v1/workers", nil)
	other := func(w api.Worker) bool {
		return w.ID != drained && (w.State == api.WorkerActive || w.State == api.WorkerStandby)
	}
	if err == nil && !slices.ContainsFunc(workers, other) {
		return "it keeps its partitions until there is another worker that can take them"
	}
	return "its partitions go to other workers"
}

func newWorkersEnable(stdout io.Writer) *cobra.Command {
	return verb{
		use: "enable ID", short: "Let a drained worker have its share again", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			return args[0] + ": enabled; it gets its share again", c.send(ctx, http.MethodPost, workerPath(args[0], "enable"), nil, nil)
		},
	}.command(stdout)
}

func workerPath(id, below string) string {
	return "/api/v1/workers/" + url.PathEscape(id) + "/" + below
}
