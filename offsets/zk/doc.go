// Package zk keeps checkpoints in ZooKeeper, where uReplicator keeps its offsets: the plain next offset of a partition at uReplicator's own
// path, readable and writable by its workers and by operators, and the rest of the checkpoint beside it.
//
// It promises that both nodes change in one transaction and only if they are what they were taken for; that a plain offset which somebody
// else wrote wins, as a checkpoint that is marked foreign; that an offset of uReplicator without a checkpoint is found in the same way; that
// a checkpoint which was begun and is gone is an error and never a new beginning; and that ZooKeeper's absence is offsets.ErrUnavailable,
// after a bounded time, and never an answer; so is the absence of the path that the address ends with, which nobody makes here. What the nodes hold that can't be read is a *NodeError with path, value and reason, for the
// partitions concerned alone.
//
// A write whose answer was lost is read back before it counts as a rival's. Reads are preceded by a sync, so that a server that lags behind
// its leader does not answer with the past.
//
// Goroutines: those of the library's connection and one per unanswered request; Close ends them and waits for them. No type of the library
// leaves the package. It must not import anything of this module but offsets, route and internal.
//
// docs/formats.md draws the nodes.
package zk
