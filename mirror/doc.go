// Package mirror owns the lanes and streams of the data path: what was fetched, made ready, sent and acknowledged of each partition, in
// order.
//
// It promises:
//   - order: a partition has one lane, the lane one queue, and only the queue's order is ever sent;
//   - a position is committed only when an acknowledgement with acks=all covers everything before it (outlet.go);
//   - after any failure nothing new is sent before the take-over procedure has found out what the target holds (takeover.go);
//   - nothing is skipped without an event.
//
// The lane is a state machine: it does no IO and starts no goroutine, and is driven by its stream (handle), by a source (Want, Append,
// Fail) and by a sink (Take, Answer, Inquiry, Hint). Each Stream has one goroutine that handles and one that commits; Run waits for both.
//
// It must not import wire, cluster, fetcher, producer or connector: it sees batches and offsets, no Kafka type.
package mirror
