package api

import (
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"testing"
)

// What a controller asks each worker for every few seconds.
func BenchmarkListOf10000Partitions(b *testing.B) {
	parts := make([]Partition, 0, 10_000)
	for i := range cap(parts) {
		parts = append(parts, Partition{
			Topic: "topic-" + strconv.Itoa(i/10), Partition: int32(i % 10), TargetTopic: "topic-" + strconv.Itoa(i/10), TargetPartition: int32(i % 10),
			Worker: "worker_1", State: StateMirroring, Extent: Extent{SourceEnd: 1234, SourceLastStable: 1234}, Position: 1234, Acked: 1234, Committed: 1234, TargetEnd: 1234,
		})
	}
	page, err := parsePage(url.Values{"limit": {strconv.Itoa(maxLimit)}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		list, err := partitionLister().list(parts, page)
		if err != nil {
			b.Fatal(err)
		}
		if err := json.NewEncoder(io.Discard).Encode(list); err != nil {
			b.Fatal(err)
		}
	}
}
