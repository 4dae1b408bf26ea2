// Package spill keeps what can't be sent yet: a queue for each partition, first in memory and then on disk, so that an outage of the target may
// last longer than the source keeps its records.
//
// It promises:
//   - takes come in the order of the puts, whichever of memory and disk holds an item; a transaction is there as a whole or not at all;
//   - from the moment that a queue writes to disk, everything from its committed position on is there, and until all of that has been taken and
//     committed everything new is written too: memory is a read cache of the head. So a process that is killed has lost nothing that it held;
//   - what was written is synced at most Config.SyncInterval later (Queue.Stats, Safe);
//   - what is damaged on disk is never handed out: it is a Corruption with its exact range of positions, and what lies behind it is still read;
//   - nothing is dropped: a full disk is ErrFull, and what doesn't fit a checkpoint or can't be read is set aside;
//   - the files of all queues together stay within Config.MaxBytes.
//
// The store has one goroutine, Store.Run, which syncs by group; queues have none. Commit, Next and Queue.Trim do IO in their callers, and none
// of it with Queue.mu held.
//
// It knows nothing of Kafka and nothing of what lies in the bytes. It imports the standard library, the nouns of route and the metrics library.
package spill
