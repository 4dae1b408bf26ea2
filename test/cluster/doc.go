// Package cluster holds the tests of what a cluster of workers promises: whole processes on a real ZooKeeper and real brokers, killed, paused,
// terminated and cut off while records flow. There is nothing in it but tests.
//
// Each test ends with the same verdict, given by kafkatest, which uses none of Causeway's own code: the target holds each record of the source
// once, in order, bytes equal.
package cluster
