package route

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strconv"
)

// Route is one direction of mirroring: a source cluster, a target cluster and an id.
type Route struct {
	Source string
	Target string
	ID     string
}

// String gives the route as it is written in Helix cluster names, logs and metrics: @source@target@id.
func (r Route) String() string { return "@" + r.Source + "@" + r.Target + "@" + r.ID }

// Partition is a topic-partition: the unit of assignment, order, progress and failure.
type Partition struct {
	Topic     string
	Partition int32
}

// String gives topic-partition as Kafka's own logs write it.
func (p Partition) String() string { return p.Topic + "-" + strconv.Itoa(int(p.Partition)) }

// Compare orders partitions by topic, then by number.
func (p Partition) Compare(q Partition) int {
	if c := cmp.Compare(p.Topic, q.Topic); c != 0 {
		return c
	}
	return cmp.Compare(p.Partition, q.Partition)
}

// Offset is a place in one partition's log. It says nothing about which cluster the log is on; names do.
type Offset int64

// NoOffset stands for an offset that is not known.
const NoOffset Offset = -1

// TopicID is the id that a cluster gives a topic when it is created (KIP-516). The zero value means that the cluster gave none.
type TopicID [16]byte

// IsZero says that the id is not known.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String gives the id as Kafka's tools print it: URL-safe base64 without padding.
func (id TopicID) String() string {
	if id.IsZero() {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// MarshalText makes the id readable in JSON.
func (id TopicID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *TopicID) UnmarshalText(text []byte) error {
	*id = TopicID{}
	if len(text) == 0 {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil {
		return err
	}
	if len(b) != len(id) {
		return fmt.Errorf("a topic's id has %d bytes, not %d", len(id), len(b))
	}
	copy(id[:], b)
	return nil
}
