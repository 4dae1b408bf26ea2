package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mirror/causeway/api"
)

// waitPoll is the longest single request of `wait`; retryPause lies between attempts at a mirror or topic that is not there yet.
const (
	waitPoll   = 5 * time.Minute
	retryPause = 250 * time.Millisecond
)

type waitCommand struct {
	client  client
	out     output
	topic   string
	lag     int64
	timeout time.Duration
	stdout  io.Writer
}

func newWait(stdout io.Writer) *cobra.Command {
	w := &waitCommand{stdout: stdout}
	cmd := &cobra.Command{
		Use: "wait", Short: "Wait until what is in the source now is on the target: exit 0 when it is, 1 when time ran out", Args: asUsed,
		RunE: action(w.run),
	}
	w.client.flag(cmd)
	w.out.flag(cmd)
	cmd.Flags().StringVar(&w.topic, "topic", "", "the topic; all topics if left out")
	cmd.Flags().Int64Var(&w.lag, "lag", 0, "how many records may be missing")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait")
	return cmd
}

func (w *waitCommand) run(ctx context.Context) error {
	var faults []error
	if w.lag < 0 {
		faults = append(faults, fault("--lag", strconv.FormatInt(w.lag, 10), "must be 0 or more"))
	}
	if w.timeout < 0 {
		faults = append(faults, fault("--timeout", w.timeout.String(), "must be 0s or more"))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	deadline := time.Now().Add(w.timeout)
	for {
		left := max(time.Until(deadline), 0)
		q := url.Values{"topic": {w.topic}, "lag": {strconv.FormatInt(w.lag, 10)}, "timeout": {min(left, waitPoll).String()}}
		var done api.Waited
		asked := time.Now() // the source's ends are read at the call
		err := w.client.get(ctx, "/api/v1/wait", q, &done)
		if err == nil {
			return w.out.print(w.stdout, done, func(t *table) { t.row(caughtUp(done.LagRecords, asked)) })
		}
		if !transient(err) || ctx.Err() != nil {
			return err
		}
		if time.Now().Add(retryPause).After(deadline) {
			return fmt.Errorf("timed out after %s: %w", w.timeout, err)
		}
		pause(ctx, retryPause)
	}
}

// caughtUp words a success. What came after the call may lack, as a list of partitions beside it would show.
func caughtUp(behind int64, asked time.Time) string {
	then := "what the source had at " + asked.Format(time.TimeOnly)
	if behind > 0 {
		return plural(behind, "record") + " behind " + then
	}
	return "caught up with " + then
}

// transient says whether asking again may help: the mirror is not up yet, the topic not found yet, or one long request has ended.
func transient(err error) bool {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.status == http.StatusNotFound || e.status == http.StatusServiceUnavailable || e.status == http.StatusRequestTimeout
	}
	_, refused := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return refused
}
