// Package survey reads the logs of a partition and of its copy beside the data path, to tell which record of the one is which of the other: the first
// that a target has lost, and where a source offset stands on the target.
//
// Records of the source are counted as they are forwarded: without control records, aborted transactions, and those that the handler drops. Sequences
// are decided by the source (docs/adr/002), so a count that starts at a checkpoint gives the sequence of each of them on the target; whose a batch is,
// and which sequences it has, stands in its header. A count is right only while the source has what it had, so the record that it ends at is
// compared with the target's. What that does not prove is an error, not a guess.
//
// It starts no goroutines, and reads one fetch of at most 1 MiB at a time. It must not import the data path: connector and the programs ask it.
package survey
