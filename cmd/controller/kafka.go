package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

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

	mu     sync.Mutex
	client *wire.Client // guarded by mu
}

func newKafka(at endpoint, committed bool, log hclog.Logger) *kafka {
	return &kafka{at: at, committed: committed, log: log}
}

// close ends the connections.
func (k *kafka) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		k.client.Close()
		k.client = nil
	}
}

func (k *kafka) connect(ctx context.Context) (*wire.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		return k.client, nil
	}
	cfg := k.at.cluster
	if len(cfg.Bootstrap) == 0 {
		brokers, err := zkbrokers.Brokers(ctx, k.at.zookeeper)
		if err != nil {
			return nil, err
		}
		cfg.Bootstrap = brokers
	}
	client, err := wire.NewClient(cfg, k.log)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cfg.Name, err)
	}
	k.client = client
	return client, nil
}

// metadata asks, and forgets brokers that were found through ZooKeeper when none of them answers: there may be others by now.
func (k *kafka) metadata(ctx context.Context, topics ...string) (*wire.Client, *wire.Metadata, error) {
	client, err := k.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	m, err := client.Metadata(ctx, topics...)
	if err != nil {
		if len(k.at.cluster.Bootstrap) == 0 && ctx.Err() == nil {
			k.close()
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
