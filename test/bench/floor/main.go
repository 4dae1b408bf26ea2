// Command floor copies one topic between two clusters in the cheapest way there is, or in the usual one, as a yardstick for Causeway.
//
//	floor -mode raw|kgo -src HOST:PORT -dst HOST:PORT -topic T -to T2 [-linger] [-follow]
//
// Mode raw forwards batches as they come: it only numbers them for the idempotent producer, renews their checksum and hands them to the
// kernel where they lie (writev). It has no state, no retries, no metrics and survives no fault, so no mirror that has these can be cheaper.
// Mode kgo reads records with franz-go's consumer and writes them with its producer: decompressed, decoded, encoded, compressed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

type options struct {
	mode      string
	src, dst  []string
	topic, to string
	codec     string // of mode kgo
	laneBytes int64  // mode raw: bytes held ahead of each partition
	inFlight  int    // mode raw: unanswered produce requests per target broker
	linger    bool
	follow    bool
}

// counters are what was copied.
type counters struct{ records, bytes, batches, requests atomic.Int64 }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var c counters
	switch o.mode {
	case "raw":
		err = copyRaw(ctx, o, &c)
	case "kgo":
		err = copyRecords(ctx, o, &c)
	default:
		err = fmt.Errorf("-mode %q is neither raw nor kgo", o.mode)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stdout, "records=%d bytes=%d batches=%d requests=%d\n", c.records.Load(), c.bytes.Load(), c.batches.Load(), c.requests.Load())
	if o.linger {
		<-ctx.Done()
	}
	return nil
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("floor", flag.ContinueOnError)
	flags.StringVar(&o.mode, "mode", "raw", "raw or kgo")
	src := flags.String("src", "127.0.0.1:9092", "source brokers, separated by commas")
	dst := flags.String("dst", "127.0.0.1:9093", "target brokers, separated by commas")
	flags.StringVar(&o.topic, "topic", "bench", "source topic")
	flags.StringVar(&o.to, "to", "bench", "target topic, which must exist and have as many partitions")
	flags.StringVar(&o.codec, "codec", "lz4", "mode kgo: none, lz4, snappy, zstd or gzip")
	flags.Int64Var(&o.laneBytes, "lane", 1<<20, "mode raw: bytes held ahead of each partition")
	flags.IntVar(&o.inFlight, "inflight", 5, "mode raw: unanswered produce requests per target broker")
	flags.BoolVar(&o.linger, "linger", false, "stay after the copy until interrupted, so that the process can be measured from outside")
	flags.BoolVar(&o.follow, "follow", false, "mode raw: begin at the end of the topic and copy what comes until interrupted")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.src, o.dst = strings.Split(*src, ","), strings.Split(*dst, ",")
	return o, nil
}
