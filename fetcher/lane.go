package fetcher

import (
	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
)

// Lane takes what is fetched of one partition. Its methods are called one at a time, never while a lock of this package is held that Wake
// needs, and must not block: a lane that waits holds up every partition of its fetcher. They must not call Remove.
type Lane interface {
	// Want says what the lane would take now: the position, the generation (it changes when the lane is rewound
	// or reset; the lane drops what comes with an older one) and the most bytes. 0 bytes withholds the partition until Wake. It is called
	// right before each fetch that the partition is to be in, and for cold partitions only if they are new, woken or were answered.
	Want() (at route.Position, generation uint32, maxBytes int32)
	// Append hands over what was fetched, in order. next is the position after everything that was read, left-out ranges included, so it
	// may advance without batches; s is nil then. The lane retains s once per batch that it keeps; the slice batches itself is only
	// borrowed for the call. A batch may begin before the position, be thinned, or be of an older format.
	Append(generation uint32, s *slab.Slab, batches []batch.Batch, next route.Position, x route.Extent)
	// Extent reports new ends of the log without data.
	Extent(x route.Extent)
	// Fail reports what only the lane's owner can decide. The partition is not fetched until Wake, which may be called from within.
	Fail(generation uint32, f *route.Fault)
}
