package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

// translation is what `offsets translate` is asked for.
type translation struct {
	client client
	out    output
	topic  string
	part   int32
	offset int64
	group  string
}

func newOffsetsTranslate(stdout io.Writer) *cobra.Command {
	var t translation
	cmd := &cobra.Command{
		Use: "translate", Short: "Find source offsets, or a consumer group's, on the target", Args: groupOrOffset,
		RunE: action(func(ctx context.Context) error { return t.run(ctx, stdout) }),
	}
	t.client.flag(cmd)
	t.out.flag(cmd)
	cmd.Flags().StringVar(&t.topic, "topic", "", "source topic, with --partition and --offset")
	cmd.Flags().Int32Var(&t.part, "partition", 0, "its partition")
	cmd.Flags().Int64Var(&t.offset, "offset", 0, "the source `OFFSET` from which on a reader would read")
	cmd.Flags().StringVar(&t.group, "group", "", "consumer group of the source, whose committed offsets are translated")
	return cmd
}

// groupOrOffset wants a group, or a topic and an offset.
func groupOrOffset(cmd *cobra.Command, given []string) error {
	faults := []error{asUsed(cmd, given)}
	changed := cmd.Flags().Changed
	switch {
	case changed("group"):
		for _, name := range []string{"topic", "partition", "offset"} {
			if changed(name) {
				faults = append(faults, fmt.Errorf("--%s: does not go with --group", name))
			}
		}
	case !changed("topic") && !changed("offset"):
		faults = append(faults, errors.New("--group, or --topic and --offset: must be given"))
	case !changed("topic"):
		faults = append(faults, errors.New("--topic: must be given"))
	case !changed("offset"):
		faults = append(faults, errors.New("--offset: must be given"))
	}
	return errors.Join(faults...)
}

func (t *translation) run(ctx context.Context, stdout io.Writer) error {
	q := url.Values{"limit": {pageSize}}
	if t.group != "" {
		q.Set("group", t.group)
	} else {
		q.Set("topic", t.topic)
		q.Set("partition", strconv.Itoa(int(t.part)))
		q.Set("offset", strconv.FormatInt(t.offset, 10))
	}
	all := []api.Translation{}
	for {
		const path = "/api/v1/offsets/translate"
		body, err := t.client.do(ctx, call{method: http.MethodGet, path: path, query: q, wait: puttingBack})
		var page api.List[api.Translation]
		if err == nil {
			err = t.client.understand(body, path, &page)
		}
		if err != nil {
			return err
		}
		if all = append(all, page.Items...); page.Next == "" {
			break
		}
		q.Set("after", page.Next)
	}
	if err := t.out.print(stdout, all, func(table *table) {
		table.row("SOURCE", "OFFSET", "TARGET", "OFFSET", "IS")
		for i := range all {
			one := &all[i]
			table.row(fmt.Sprintf("%s-%d", one.Topic, one.Partition), count(one.Offset), fmt.Sprintf("%s-%d", one.TargetTopic, one.TargetPartition),
				count(one.TargetOffset), how(one))
		}
	}); err != nil {
		return err
	}
	if len(all) == 0 { // Kafka does not tell a group without offsets from one that there is not
		return fault("--group", t.group, "has committed no offset in a partition that is mirrored here")
	}
	for i := range all {
		if all[i].TargetOffset < 0 {
			return &exitError{exitFailure, nil} // the table says it
		}
	}
	return nil
}

// how says how good a translation is.
func how(t *api.Translation) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Exact:
		return "exact"
	default:
		return "there or later"
	}
}
