package wire

import (
	"github.com/causeway-mirror/causeway/route"
)

// Metadata is what one broker says of its cluster. It may be old: whoever acts on it must be ready to be refused.
type Metadata struct {
	ClusterID string
	Brokers   map[int32]Broker
	Topics    map[string]TopicMetadata
}

// Broker is where a broker can be reached.
type Broker struct {
	ID   int32
	Addr string // host:port
	Rack string
}

// TopicMetadata is one topic. ID is zero where the broker gives none (before Kafka 2.8).
type TopicMetadata struct {
	Name       string
	ID         route.TopicID
	Internal   bool
	Err        error
	Partitions []PartitionMetadata
}

// PartitionMetadata is one partition. Leader is -1 while there is none; LeaderEpoch is -1 where the broker gives none.
type PartitionMetadata struct {
	Partition   int32
	Leader      int32
	LeaderEpoch int32
	Replicas    []int32
	ISR         []int32
	Err         error
}

// ListedOffset is the answer to ListOffsets for one partition. Offset is -1 when no record is as young as the time that was asked for.
type ListedOffset struct {
	Offset      route.Offset
	LeaderEpoch int32
	Timestamp   int64
	Err         error
}

// EpochAsk asks where the given leader epoch ends. CurrentLeaderEpoch is what the asker takes for current, -1 if it does not know.
type EpochAsk struct {
	Partition          route.Partition
	CurrentLeaderEpoch int32
	LeaderEpoch        int32
}

// EpochEnd is the largest epoch up to the one asked for that the leader knows, and the offset after its last record.
type EpochEnd struct {
	LeaderEpoch int32
	End         route.Offset
	Err         error
}

// Producers is what a leader remembers of the idempotent producers of one partition.
type Producers struct {
	Active []ActiveProducer
	Err    error
}

// ActiveProducer is one producer's last batch. It counts what was appended, not what was replicated.
type ActiveProducer struct {
	ID            int64
	Epoch         int16 // 32 bits wide in the answer, 16 everywhere else
	LastSequence  int32
	LastTimestamp int64 // milliseconds since 1970
}
