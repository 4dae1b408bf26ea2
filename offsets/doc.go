// Package offsets holds what is remembered of a position: the checkpoint, the interface of the stores that keep it, the rules by which a
// stored checkpoint may change.
//
// It promises that the rules are the same in every store: [Advance] and [Replace] decide, a store only applies them atomically
// (offsets/storetest checks that it does). A position never goes backwards within one producer id and epoch; anything else is a new epoch, by
// compare-and-set.
//
// It is pure: no IO, no clock, no goroutines, no log. It imports the standard library and route alone; stores live in sub-packages.
package offsets
