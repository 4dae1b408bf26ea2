package kafkatest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// OpenZooKeeper is StartZooKeeper outside a test: it starts a server in a new folder below root. Close ends it.
func OpenZooKeeper(ctx context.Context, root string) (*ZooKeeper, error) {
	known, err := classesOf(ctx, Kafka3)
	if err != nil {
		return nil, err
	}
	return openZooKeeper(ctx, root, known)
}

// Close kills the server and ends its proxy. Its data stays.
func (z *ZooKeeper) Close() error { return z.close() }

// Counters are the numbers that the server tells of itself, by the names that its command `mntr` gives them.
func (z *ZooKeeper) Counters(ctx context.Context) (map[string]float64, error) {
	answer, err := z.ask(ctx, "mntr")
	if err != nil {
		return nil, fmt.Errorf("ask zookeeper for its counters: %w", err)
	}
	counters := map[string]float64{}
	for line := range strings.Lines(answer) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.ParseFloat(value, 64); err == nil { // others are words
			counters[name] = n
		}
	}
	return counters, nil
}
