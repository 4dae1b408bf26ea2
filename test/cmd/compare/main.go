// Command compare is the harness's judge as a program: it reads a topic on two clusters, read_committed, and says whether the target
// holds what the source holds. Exit 0 equal, 1 different, 2 could not compare.
//
//	go run ./test/cmd/compare -source HOST:PORT -target HOST:PORT -topic T [-to T2] [-timestamps=false]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	source := flags.String("source", "127.0.0.1:9092", "bootstrap addresses of the source, separated by commas")
	target := flags.String("target", "127.0.0.1:9093", "bootstrap addresses of the target, separated by commas")
	topic := flags.String("topic", "bench", "topic on the source")
	to := flags.String("to", "", "topic on the target, if it has another name there")
	timestamps := flags.Bool("timestamps", true, "compare timestamps, too")
	if flags.Parse(args) != nil {
		return 2
	}
	diff, err := kafkatest.CompareTopics(ctx, kafkatest.Comparison{
		Source: strings.Split(*source, ","), Target: strings.Split(*target, ","), Topic: *topic, ToTopic: *to, IgnoreTimestamps: !*timestamps,
	})
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	_, _ = fmt.Fprintln(stdout, diff)
	if !diff.Equal() {
		return 1
	}
	return 0
}
