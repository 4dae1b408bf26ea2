// Package zkbrokers finds a Kafka cluster's brokers in its ZooKeeper, for whoever was only told of that: uReplicator's options name the
// ZooKeeper of a cluster and not its brokers. Everything else about a cluster is asked of its brokers.
//
// It promises an answer or an error within the caller's context, and leaves no connection behind. It has no goroutines but the library's, which
// are gone when Brokers returns. It imports nothing of this module.
package zkbrokers
