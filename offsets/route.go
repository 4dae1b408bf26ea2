package offsets

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/causeway-mirror/causeway/route"
)

// RouteVersion is the version of the stored form of a Route that this code writes. It reads version 1 too.
const RouteVersion = 2

// Route is what is remembered of a whole route.
type Route struct {
	// SourceCluster and TargetCluster are the cluster ids as Kafka reports them, so that a changed address that leads to another cluster is
	// noticed. Empty when not yet known.
	SourceCluster, TargetCluster string
	// ProducerID is the route's producer id on the target cluster; -1 while none was taken.
	ProducerID int64
	// Discovered says that the first discovery of topics was done; FirstTopics are those that it found, with the number of partitions that
	// each had then. The setting `start` applies to these partitions alone, those found later are copied from their beginning.
	Discovered  bool
	FirstTopics map[string]int32
	// Version is the store's count of writes: 0 when nothing was stored yet. SaveRoute refuses a Route whose Version is not the stored one,
	// and stores it with the next.
	Version int64
}

// NoRoute is what a store answers before anything was saved.
func NoRoute() Route { return Route{ProducerID: -1} }

// Found says that the first discovery found a partition, or that there was none yet, which may still find it.
func (r Route) Found(p route.Partition) bool {
	return !r.Discovered || p.Partition < r.FirstTopics[p.Topic]
}

// storedRoute is the JSON form, with pointers as in stored.
type storedRoute struct {
	V             *int         `json:"v"`
	SourceCluster *string      `json:"source_cluster"`
	TargetCluster *string      `json:"target_cluster"`
	ProducerID    *int64       `json:"producer_id"`
	Discovered    *bool        `json:"discovered"`
	FirstTopics   *firstTopics `json:"first_topics"`
	Version       *int64       `json:"version"`
}

// firstTopics are the partitions of each topic.
type firstTopics map[string]int32

// UnmarshalJSON also reads the list of names of version 1. It had no numbers, so none of the partitions counts as found: too much is copied
// rather than too little.
func (f *firstTopics) UnmarshalJSON(text []byte) error {
	var names []string
	if json.Unmarshal(text, &names) != nil {
		return json.Unmarshal(text, (*map[string]int32)(f))
	}
	*f = firstTopics{}
	for _, name := range names {
		(*f)[name] = 0
	}
	return nil
}

// MarshalJSON writes the versioned form.
func (r Route) MarshalJSON() ([]byte, error) {
	version := RouteVersion
	first := firstTopics(r.FirstTopics)
	if first == nil {
		first = firstTopics{}
	}
	return json.Marshal(storedRoute{
		V: &version, SourceCluster: &r.SourceCluster, TargetCluster: &r.TargetCluster, ProducerID: &r.ProducerID,
		Discovered: &r.Discovered, FirstTopics: &first, Version: &r.Version,
	})
}

// UnmarshalJSON reads the versioned form as strictly as a checkpoint's.
func (r *Route) UnmarshalJSON(text []byte) error {
	var s storedRoute
	if err := decodeStrict(text, &s, 1, RouteVersion); err != nil {
		return fmt.Errorf("decode route: %w", err)
	}
	if *s.ProducerID < -1 || *s.Version < 0 {
		return fmt.Errorf("decode route: producer_id is %d, version is %d", *s.ProducerID, *s.Version)
	}
	*r = Route{
		SourceCluster: *s.SourceCluster, TargetCluster: *s.TargetCluster, ProducerID: *s.ProducerID,
		Discovered: *s.Discovered, FirstTopics: *s.FirstTopics, Version: *s.Version,
	}
	if len(r.FirstTopics) == 0 {
		r.FirstTopics = nil
	}
	return nil
}

// sameContent says that both hold the same but for the version.
func (r Route) sameContent(o Route) bool {
	return r.SourceCluster == o.SourceCluster && r.TargetCluster == o.TargetCluster && r.ProducerID == o.ProducerID &&
		r.Discovered == o.Discovered && maps.Equal(r.FirstTopics, o.FirstTopics)
}
