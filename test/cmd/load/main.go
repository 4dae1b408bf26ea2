// Command load is the harness's generator as a program: it writes numbered records to a topic that exists.
//
//	go run ./test/cmd/load -bootstrap HOST:PORT -topic T -records 1000000 -codec lz4
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
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	var o kafkatest.LoadOptions
	bootstrap := flags.String("bootstrap", "127.0.0.1:9092", "bootstrap addresses, separated by commas")
	flags.StringVar(&o.Topic, "topic", "bench", "topic")
	flags.IntVar(&o.Records, "records", 1_000_000, "records to write")
	flags.IntVar(&o.First, "first", 0, "number of the first record")
	flags.IntVar(&o.ValueBytes, "size", 1000, "bytes of a value")
	flags.StringVar(&o.Codec, "codec", "lz4", "none, gzip, snappy, lz4 or zstd")
	flags.IntVar(&o.BatchBytes, "batch", 64<<10, "bytes of a batch before compression")
	flags.IntVar(&o.Keys, "keys", 0, "different keys; 0 gives each record its own, -1 none")
	flags.IntVar(&o.Headers, "headers", 0, "headers of a record")
	flags.IntVar(&o.TxnRecords, "transaction", 0, "records of a transaction; 0 uses none")
	flags.IntVar(&o.AbortEvery, "abort-every", 0, "abort each so manieth transaction; 0 aborts none")
	flags.IntVar(&o.Rate, "rate", 0, "records a second; 0 is as fast as it goes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	began := time.Now()
	res, err := kafkatest.Generate(ctx, strings.Split(*bootstrap, ","), o)
	_, _ = fmt.Fprintf(stdout, "committed=%d aborted=%d seconds=%.1f\n", res.Committed, res.Aborted, time.Since(began).Seconds())
	return err
}
