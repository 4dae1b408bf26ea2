package fetcher

import (
	"github.com/causeway-mirror/causeway/route"
)

// Index gives which of a source broker's fetchers a partition belongs to. It is (31·hash(topic)+partition) & 0x7fffffff mod fetchers, the
// rule of Kafka's own replica fetchers, so that partitions stay together as they do in the mirrors that Causeway replaces.
func Index(p route.Partition, fetchers int) int {
	h := 31*javaHash(p.Topic) + p.Partition
	return int(h&0x7fffffff) % fetchers
}

// javaHash is Java's String.hashCode: over UTF-16 units, wrapping at 32 bits.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xffff { // a surrogate pair
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}
