package main

import (
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/internal/graphite"
)

// figures are what uReplicator's worker reported, as far as there is such a thing here.
type figures struct {
	service *service
	meters  []*graphite.Meter
}

func newFigures(v *service, now time.Time) *figures {
	count := func(name string, read func() int64) *graphite.Meter {
		return graphite.NewMeter(name, now, func() float64 { return float64(read()) })
	}
	return &figures{service: v, meters: []*graphite.Meter{
		count("commitFailure", func() int64 { return v.engine.Load().Unstored }),
		count("addTopicPartitionFailure", func() int64 { return v.model.Failures().Online }),
		count("deleteTopicPartitionFailure", func() int64 { return v.model.Failures().Offline }),
	}}
}

// read gives them as they are now.
func (f *figures) read() []graphite.Sample {
	now := time.Now()
	all := []graphite.Sample{{Name: "OwnedPartitionsCount", Value: float64(len(f.service.engine.Status().Partitions))}}
	for i, n := range f.service.engine.Load().Queued {
		all = append(all, graphite.Sample{Name: "TotalBlockingQueueSize." + strconv.Itoa(i), Value: float64(n)})
	}
	for _, m := range f.meters {
		all = append(all, m.Samples(now)...)
	}
	return all
}
