package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/internal/replace"
)

// backupView is what of a backup is told. The rest is the controller's.
type backupView struct {
	Topics []struct {
		Partitions int64 `json:"partitions"`
	} `json:"topics"`
}

// contents counts what a backup holds.
func contents(backup []byte) (string, error) {
	var view backupView
	if err := json.Unmarshal(backup, &view); err != nil {
		return "", err
	}
	partitions := int64(0)
	for _, topic := range view.Topics {
		partitions += topic.Partitions
	}
	return some(int64(len(view.Topics)), "topic") + " with " + some(partitions, "partition"), nil
}

// some counts things: 1 topic, 2 topics.
func some(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

func newBackup(stdout io.Writer) *cobra.Command {
	var (
		c    client
		file string
	)
	cmd := &cobra.Command{
		Use: "backup", Short: "Write down which topics are mirrored, by which workers, and their settings", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			var backup json.RawMessage
			if err := c.get(ctx, "/api/v1/backup", nil, &backup); err != nil {
				return c.whose(ctx, err)
			}
			if file == "" {
				_, err := fmt.Fprintf(stdout, "%s\n", backup)
				return err
			}
			held, err := contents(backup)
			if err != nil {
				return fmt.Errorf("read backup: %w", err)
			}
			if err = replace.File(file, append(backup, '\n')); err != nil {
				return fault("--output", file, unwritable(err))
			}
			_, err = fmt.Fprintf(stdout, "%s: %s written\n", file, held)
			return err
		}),
	}
	c.flag(cmd)
	cmd.Flags().VarP((*outputFile)(&file), "output", "o", "`FILE` to write, instead of the standard output")
	return cmd
}

func newRestore(stdout io.Writer) *cobra.Command {
	return verb{
		use: "restore FILE", short: "Bring back what a backup has and the cluster has not; nothing is taken away", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			backup, err := os.ReadFile(args[0])
			if err != nil {
				return "", fault("FILE", args[0], unreadable(err))
			}
			held, err := contents(backup)
			if err != nil {
				return "", fault("FILE", args[0], "is no backup: "+err.Error())
			}
			err = c.send(ctx, http.MethodPost, "/api/v1/restore", json.RawMessage(backup), nil)
			return fmt.Sprintf("%s: restored; it holds %s", args[0], held), err
		},
	}.command(stdout)
}
