package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/internal/replace"
	"github.com/causeway-mirror/causeway/route"
)

// exportVersion is the version of an exported file that this code writes and reads.
const exportVersion = 1

// exported is a file of positions.
type exported struct {
	Version int        `json:"v"`
	Route   string     `json:"route"`
	Time    time.Time  `json:"time"`
	Offsets []position `json:"offsets"`
}

// position is the next source offset of a partition to be copied, as it is stored.
type position struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Offset    route.Offset `json:"offset"`
}

func (p position) of() route.Partition {
	return route.Partition{Topic: p.Topic, Partition: p.Partition}
}

func newOffsets(stdout io.Writer) *cobra.Command {
	return group("offsets", "Show, save and set the stored positions of partitions, and find offsets on the target", newOffsetsShow(stdout), newOffsetsExport(stdout), newOffsetsImport(stdout), newOffsetsTranslate(stdout))
}

func newOffsetsShow(stdout io.Writer) *cobra.Command {
	var (
		c     client
		out   output
		topic string
	)
	cmd := &cobra.Command{
		Use: "show", Short: "Show the stored positions, and how far they are from the end", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			parts, err := partitionsOf(ctx, &c, topic, url.Values{})
			if err != nil {
				return err
			}
			shown := make([]position, 0, len(parts))
			for i := range parts {
				shown = append(shown, position{parts[i].Topic, parts[i].Partition, parts[i].Committed})
			}
			return out.print(stdout, shown, func(t *table) {
				t.row("PARTITION", "STORED", "END")
				for i, p := range shown {
					t.row(p.of().String(), count(p.Offset), count(parts[i].SourceEnd))
				}
			})
		}),
	}
	c.flag(cmd)
	out.flag(cmd)
	cmd.Flags().StringVar(&topic, "topic", "", "only those of this topic")
	return cmd
}

func newOffsetsExport(stdout io.Writer) *cobra.Command {
	var (
		c           client
		topic, file string
	)
	cmd := &cobra.Command{
		Use: "export", Short: "Write the stored positions into a file that import reads", Args: asUsed,
		RunE: action(func(ctx context.Context) error {
			saved, unknown, err := export(ctx, &c, topic)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(saved, "", "  ")
			if err != nil {
				return fmt.Errorf("write positions: %w", err)
			}
			if file == "" {
				_, err = fmt.Fprintf(stdout, "%s\n", text)
				return err
			}
			if err = replace.File(file, append(text, '\n')); err != nil {
				return fault("--output", file, unwritable(err))
			}
			done := fmt.Sprintf("%s: %s written", file, some(int64(len(saved.Offsets)), "position"))
			if unknown > 0 {
				done += fmt.Sprintf("; of %s none is stored", some(int64(unknown), "partition"))
			}
			_, err = fmt.Fprintln(stdout, done)
			return err
		}),
	}
	c.flag(cmd)
	cmd.Flags().StringVar(&topic, "topic", "", "only those of this topic")
	cmd.Flags().VarP((*outputFile)(&file), "output", "o", "`FILE` to write, instead of the standard output")
	return cmd
}

// export asks for what is stored, and counts the partitions of which nothing is.
func export(ctx context.Context, c *client, topic string) (saved exported, unknown int, err error) {
	var status api.Status
	if err = c.get(ctx, "/api/v1/status", nil, &status); err != nil {
		return saved, 0, err
	}
	parts, err := partitionsOf(ctx, c, topic, url.Values{})
	if err != nil {
		return saved, 0, err
	}
	saved = exported{Version: exportVersion, Route: status.Route.Name, Time: time.Now().UTC().Truncate(time.Second), Offsets: []position{}}
	for i := range parts {
		if p := &parts[i]; p.Committed >= 0 {
			saved.Offsets = append(saved.Offsets, position{p.Topic, p.Partition, p.Committed})
		} else {
			unknown++
		}
	}
	return saved, unknown, nil
}

func newOffsetsImport(stdout io.Writer) *cobra.Command {
	return verb{
		use: "import FILE", short: "Reset each partition of an exported file to its position in it", args: asUsed,
		do: func(ctx context.Context, c *client, args []string) (string, error) {
			saved, err := readExported(args[0])
			if err != nil {
				return "", err
			}
			if err := resetAll(ctx, c, saved.Offsets); err != nil {
				return "", fmt.Errorf("not all of %s is imported: %w", some(int64(len(saved.Offsets)), "position"), err)
			}
			return fmt.Sprintf("%s: %s reset", args[0], some(int64(len(saved.Offsets)), "partition")), nil
		},
	}.command(stdout)
}

// resetAll asks for every reset that is not refused, and names each reason once, with the partitions that have it.
func resetAll(ctx context.Context, c *client, positions []position) error {
	var reasons []string // in the order in which they came
	of := map[string][]string{}
	for _, p := range positions {
		body := map[string]any{"to": p.Offset}
		err := c.send(ctx, http.MethodPost, partitionPath(p.of(), "reset"), body, nil)
		if err == nil {
			continue
		}
		reason := err.Error()
		if len(of[reason]) == 0 {
			reasons = append(reasons, reason)
		}
		of[reason] = append(of[reason], p.of().String())
		if _, refused := errors.AsType[*apiError](err); !refused {
			break // the others would not get through either
		}
	}
	var faults []error
	for _, reason := range reasons {
		faults = append(faults, fmt.Errorf("%s: %s", strings.Join(of[reason], ", "), reason))
	}
	return errors.Join(faults...)
}

// readExported reads a file, and finds everything in it that cannot be meant.
func readExported(file string) (exported, error) {
	var saved exported
	text, err := os.ReadFile(file)
	if err != nil {
		return saved, fault("FILE", file, unreadable(err))
	}
	if err = json.Unmarshal(text, &saved); err != nil {
		return saved, fault("FILE", file, "holds no positions: "+err.Error())
	}
	if saved.Version != exportVersion {
		return saved, fault("FILE", file, fmt.Sprintf("v: %d: must be %d", saved.Version, exportVersion))
	}
	var faults []error
	for _, p := range saved.Offsets {
		if p.Topic == "" || p.Partition < 0 || p.Offset < 0 {
			faults = append(faults, fault("FILE", file, fmt.Sprintf("%s: offset %d: must be 0 or more, of a partition that has a name", p.of(), p.Offset)))
		}
	}
	return saved, errors.Join(faults...)
}
