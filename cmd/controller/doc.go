// Command controller leads the cluster of workers of one route: it decides what is mirrored by whom, and answers the REST of uReplicator's
// controller beside its own. Several may run; one leads and the others stand by and pass calls on.
//
// It takes the native file (--config FILE.yaml) or the options of uReplicator's controller, with one dash or two.
//
// Goroutines: run owns the controller and the server and waits for both.
package main
