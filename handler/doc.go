// Package handler decides where a partition's records go and which of them, in what form: topic mapping, partition alignment, filters and
// transforms.
//
// It promises that its answers depend on the configuration alone, never on what it saw before: every worker computes the same target for a
// partition, and for a record the same verdict, so that sequences counted by one worker hold for the next. A topic without filter and
// transform has no record function: its batches go raw.
//
// A Handler never changes after New and may be used by any number of goroutines; it starts none. The package must not import the ends of
// the data path, the loop, or any client; it sees batches and records only.
package handler
