// Package kafkad runs Kafka's servers, and other programs, as child processes of this one: for the demo on real brokers and for tests.
//
// It owns the processes that it starts. It promises that each is in a group of its own and is ended by its process id, that on Linux the
// kernel ends it when this process dies first, however that dies, and that Kill and Stop return when it is gone.
//
// Goroutines: one per process, which ends with it. It imports nothing of Causeway: what is on the machine, and where, it is told.
package kafkad
