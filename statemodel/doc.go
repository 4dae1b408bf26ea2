// Package statemodel owns the states of partitions on a worker: OFFLINE↔ONLINE→DROPPED, one after the other for one partition, side by side for
// many. It drives what runs partitions through [Partitions] and is driven by whoever takes part in the cluster.
//
// It promises:
//   - a step may be given again, also when its first end was not heard: a partition that is there already stays there;
//   - ONLINE waits for a checkpoint's store, never for a cluster of Kafka, so no outage turns an assignment into ERROR;
//   - OFFLINE returns when the partition was drained and committed, or was given up after its bound;
//   - DROPPED forgets a partition here; its checkpoint stays, so that it can go on one day;
//   - ERROR, which only a broken invariant leads to, is left by the step to OFFLINE, whatever the partition was in: who drives the model gives it
//     after a growing pause, without a human;
//   - one partition that can't be drained holds no other up for long when all go, see [Model.Reset];
//   - a worker whose coordinator is silent is suspended, and goes on only when somebody who has checked says so.
//
// Goroutines: those of Reset end before it returns. It must not import helix, connector or anything of Kafka: cmd joins them.
package statemodel
