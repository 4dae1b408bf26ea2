package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

// errOneEpoch is why positions can't be set in embedded clusters: a reset raises the epoch of one partition, and from then on such a cluster
// refuses the sequences of all others. Kafka's brokers keep an epoch for each partition.
var errOneEpoch = errors.New("the embedded clusters keep one epoch for all partitions of a producer, so that a reset of one would stop the others; " +
	"try it with demo --kafka")

// embeddedClusters are two clusters in this process.
type embeddedClusters struct{ source, target *kfake.Cluster }

func (c embeddedClusters) addresses() (source, target []string) {
	return c.source.ListenAddrs(), c.target.ListenAddrs()
}

func (c embeddedClusters) close() error {
	for _, k := range []*kfake.Cluster{c.source, c.target} {
		if k != nil {
			k.Close()
		}
	}
	return nil
}

// startEmbedded starts both clusters. Without a folder they live in memory; with one they are kept, as the mirror's positions are.
func startEmbedded(ctx context.Context, dir string, endless bool) (embeddedClusters, error) {
	var c embeddedClusters
	var err error
	start := func(name string) (*kfake.Cluster, error) {
		opts := []kfake.Opt{kfake.NumBrokers(demoBrokers), kfake.ClusterID("demo-" + name)}
		if dir != "" {
			opts = append(opts, kfake.DataDir(filepath.Join(dir, name)))
		}
		cluster, startErr := newEmbedded(ctx, opts...)
		if startErr != nil {
			return nil, fmt.Errorf("start %s cluster: %w", name, startErr)
		}
		return cluster, nil
	}
	if c.source, err = start("source"); err != nil {
		return c, err
	}
	if c.target, err = start("target"); err != nil {
		return c, err
	}
	return c, c.createTopics(endless)
}

func (c embeddedClusters) createTopics(endless bool) error {
	configs := map[string]string{}
	if endless {
		configs["retention.ms"] = strconv.FormatInt(demoKeep.Milliseconds(), 10)
	}
	clusters := []*kfake.Cluster{c.source}
	if endless {
		clusters = append(clusters, c.target) // so that the target forgets too; else the mirror creates its topics
	}
	for _, t := range demoTopics() {
		for _, cluster := range clusters {
			if cluster.TopicInfo(t.name) != nil {
				continue // kept from an earlier demo in the same folder
			}
			if err := cluster.CreateTopic(t.name, t.partitions, configs); err != nil {
				return fmt.Errorf("create topic %s: %w", t.name, err)
			}
		}
	}
	return nil
}

// forget applies retention until ctx ends.
func (c embeddedClusters) forget(ctx context.Context) {
	for pause(ctx, demoKeep/10) {
		c.source.ApplyRetention()
		c.target.ApplyRetention()
	}
}
