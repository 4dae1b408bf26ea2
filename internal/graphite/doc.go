// Package graphite sends figures to Graphite in its plaintext protocol, under the names that uReplicator's dashboards know.
//
// It promises that a Graphite which is away costs nothing but the figures of that time: they are not kept, and nobody waits. The goroutine of
// Run is the caller's. It knows no figure: each program lists its own.
package graphite
