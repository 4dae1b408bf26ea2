// Package connector owns one route on one worker: which partitions run, and the parts that run them. It builds the two ends (fetcher,
// producer), the mirror loops between them, and joins them lane by lane.
//
// It promises that a partition is started from its checkpoint alone once it has one, that its target exists before anything is sent, and that
// Run returns after everything was drained and committed. Trouble with a cluster or a topic never ends Run: it is retried, and shown. So is a
// store that is out of reach; one that failed ends Run.
//
// Whoever says which partitions are this worker's (standalone: all; a cluster: its state model) uses Online and Offline, which wait for the
// store and for what is in flight, never for a cluster of Kafka that is away.
//
// What operators ask it does too: Configure (pauses, limits), Retry, and Reset, which sets a position back or ahead, with events of what is copied
// again or not at all. Else that is done by policy alone (Config.On): lanes say why they can't go on, and where (anew.go, docs/adr/013).
//
// Run owns all goroutines: the parts, the control loop, one per partition that is being drained, and that of who waits for positions. It must not
// import helix, statemodel, controller or api.
package connector
