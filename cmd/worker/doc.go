// Command worker copies the partitions that its cluster's controller gives it: Causeway's, or uReplicator's own.
//
// It takes the native file (--config FILE.yaml) or the options and properties files of uReplicator's worker, with one dash or two.
//
// Goroutines: run owns the participant, the data path, the server and the keeper of events, and waits for all of them.
package main
