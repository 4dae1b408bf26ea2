package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/cluster/zkbrokers"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// askTimeout bounds one question to a Kafka cluster.
const askTimeout = 30 * time.Second

// kafka asks one Kafka cluster. It connects at the first question; where only a ZooKeeper is known, that is asked for the brokers first.
type kafka struct {
	at        endpoint
	committed bool // ends are the last stable offsets
	log       hclog.Logger
	turn      chan struct{} // held by the one who connects
	client    atomic.Pointer[wire.Client]
}

func newKafka(at endpoint, committed bool, log hclog.Logger) *kafka {
	return &kafka{at: at, committed: committed, log: log, turn: make(chan struct{}, 1)}
}

// close ends the connections.
func (k *kafka) close() {
	if client := k.client.Swap(nil); client != nil {
		client.Close()
	}
}

// connect gives the client. One caller asks ZooKeeper for the brokers, and the others wait for him or for their ctx's end.
func (k *kafka) connect(ctx context.Context) (*wire.Client, error) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("cluster %s: %w", k.at.cluster.Name, ctx.Err())
	}
	if client := k.client.Load(); client != nil {
		return client, nil
	}
	cfg, err := k.at.config(ctx)
	if err != nil {
		return nil, err
	}
	client, err := wire.NewClient(cfg, k.log)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cfg.Name, err)
	}
	k.client.Store(client)
	return client, nil
}

// config has the brokers, which a ZooKeeper is asked for where it alone is known.
func (e endpoint) config(ctx context.Context) (cluster.Config, error) {
	cfg := e.cluster
	if len(cfg.Bootstrap) > 0 {
		return cfg, nil
	}
	var err error
	cfg.Bootstrap, err = zkbrokers.Brokers(ctx, e.zookeeper)
	return cfg, err
}

// metadata asks, and forgets brokers that were found through ZooKeeper when none of them answers: there may be others by now.
func (k *kafka) metadata(ctx context.Context, topics ...string) (*wire.Client, *wire.Metadata, error) {
	client, err := k.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	m, err := client.Metadata(ctx, topics...)
	if err != nil {
		if len(k.at.cluster.Bootstrap) == 0 && ctx.Err() == nil && k.client.CompareAndSwap(client, nil) {
			client.Close()
		}
		return nil, nil, fmt.Errorf("cluster %s: %w", k.at.cluster.Name, err)
	}
	return client, m, nil
}

// Counts implements controller.Kafka.
func (k *kafka) Counts(ctx context.Context, topics ...string) (map[string]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, m, err := k.metadata(ctx, topics...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]int32, len(m.Topics))
	for name, topic := range m.Topics {
		if topic.Err == nil && !topic.Internal && len(topic.Partitions) > 0 {
			out[name] = int32(len(topic.Partitions))
		}
	}
	return out, nil
}

// Ends implements controller.Kafka.
func (k *kafka) Ends(ctx context.Context, parts []route.Partition) (map[route.Partition]route.Offset, error) {
	out := make(map[route.Partition]route.Offset, len(parts))
	if len(parts) == 0 {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	wanted := map[string]bool{}
	var topics []string
	for _, p := range parts {
		if !wanted[p.Topic] {
			wanted[p.Topic] = true
			topics = append(topics, p.Topic)
		}
	}
	client, m, err := k.metadata(ctx, topics...)
	if err != nil {
		return nil, err
	}
	leaders := make(map[route.Partition]int32, len(parts))
	for _, p := range parts {
		for _, known := range m.Topics[p.Topic].Partitions {
			if known.Partition == p.Partition && known.Leader >= 0 {
				leaders[p] = known.Leader
			}
		}
	}
	listed, err := client.ListOffsets(ctx, leaders, wire.AtEnd, k.committed)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", k.at.cluster.Name, err)
	}
	for p, end := range listed {
		if end.Err == nil {
			out[p] = end.Offset
		}
	}
	return out, nil
}
