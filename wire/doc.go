// Package wire is the data path's Kafka client: pipelined connections and a small client that knows the brokers of one cluster.
//
// A Conn carries requests in the order in which they were given to it, and answers come back in that order; batches go out and come in
// without being copied. The first failure of a connection ends it and everything that waits on it: nothing is retried here, because only
// the caller knows whether a request may be sent twice. A Client finds brokers, keeps one control connection to each, and asks the few
// questions that the data path has (metadata, offsets, leader epochs, producer ids).
//
// Each Conn owns one goroutine, which reads answers; Close waits for it. A Client starts none beyond those of its connections.
//
// It must not import any package above the adapters, and no other adapter but cluster, which owns the configuration.
package wire
