package faults_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// TestC27ThroughputOverADistance: two mirrors follow the same load of up to 50 MB/s at the same time, one of them with a round trip of 100 ms to one of
// its clusters. It must keep up with the other one: so what a slow machine makes of both does not matter.
func TestC27ThroughputOverADistance(t *testing.T) { //nolint:tparallel // its subtests would take from each other's load
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka3) // no other short test of this package goes through its proxy
	if testkit.Long() {
		k = kafkatest.Start(t, kafkatest.Options{Proxy: true})
	}
	const oneWay = 50 * time.Millisecond
	k.Broker(0).Proxy().SetDelay(oneWay)
	t.Cleanup(func() { k.Broker(0).Proxy().SetDelay(0) })
	least := map[int]float64{1: 0.8, 32: 0.9} // of what the near one copies, by partitions
	if !testkit.Long() {
		least = map[int]float64{1: 0.4, 32: 0.4} // other tests take from the load of either
	}
	for side, way := range sides(k) {
		for partitions, share := range least {
			if !testkit.Long() && (side == "source") != (partitions == 32) {
				continue // each side and each width once
			}
			t.Run(fmt.Sprintf("%s/%d", side, partitions), func(t *testing.T) { //nolint:paralleltest // each would take from the other's load
				topic := fmt.Sprintf("distant-%s-%d", side, partitions)
				k.CreateTopic(t, topic, partitions, nil)
				near := newMirrorer(t, "near", between(k.Bootstrap(), k.Bootstrap(), topic, "--rename", "{topic}.near")...)
				far := newMirrorer(t, "far", between(way.src, way.dst, topic, "--rename", "{topic}.far")...)
				for _, m := range []*mirrorer{near, far} {
					m.start(t)
					m.flowing(t, k, topic)
				}
				const rate, size = 50_000, 1000 // records a second, bytes
				const settling = 2              // seconds, in which both measure their ways
				enough := int64(rounds(150_000, 1_500_000))
				f := feedWithin(t, k.Bootstrap(), 0, func(turn int) kafkatest.LoadOptions { // a second each, or longer where that is too much
					return kafkatest.LoadOptions{Topic: topic, First: turn * rate, Records: rate, Rate: rate, ValueBytes: size, BatchBytes: 64 << 10}
				})
				pass(t, settling*time.Second)
				was := []int64{near.acked(t, topic), far.acked(t, topic)}
				began := time.Now()
				for near.acked(t, topic)-was[0] < enough {
					require.Less(t, time.Since(began), caughtWithin, "the near one has copied %d records", near.acked(t, topic)-was[0])
					pass(t, 100*time.Millisecond)
				}
				copied := []int64{near.acked(t, topic) - was[0], far.acked(t, topic) - was[1]}
				took := time.Since(began)
				written := f.end(t)
				mbps := func(records int64) float64 { return float64(records*size) / 1e6 / took.Seconds() }
				t.Logf("near %.1f MB/s, far %.1f MB/s; a request of 1 MiB a round trip would be %.1f", mbps(copied[0]), mbps(copied[1]), (1<<20)/1e6/(2*oneWay).Seconds())
				require.GreaterOrEqual(t, float64(copied[1]), share*float64(copied[0]), "records copied in the same %v, far and near", took)
				far.caughtUp(t, topic)
				far.stop(t)
				requireCopy(t, k.Bootstrap(), k.Bootstrap(), topic, topic+".far", written)
			})
		}
	}
}

// acked is how many records of a topic are acknowledged.
func (m *mirrorer) acked(t *testing.T, topic string) (sum int64) {
	t.Helper()
	for _, p := range m.places(t, topic) {
		sum += p.Acked
	}
	return sum
}
