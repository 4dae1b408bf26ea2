// Package slab owns the memory that batches travel in: pooled buffers with reference counts, counted against one budget.
//
// It promises that a buffer is not handed out again before its last reference is released, and that what is reserved never exceeds the
// budget by more than one oversized answer. It starts no goroutines. It knows nothing about Kafka.
package slab
