// Package kafkatest runs real Kafka for tests: brokers of Kafka 3.9 with ZooKeeper and of Kafka 4.x with KRaft, which a
// test may kill, stop, pause and start again, alone or behind a proxy that delays, cuts and swallows.
//
// It owns: the folder of broker jars (fetched once from Maven Central, see Libs), the classes of these jars as servers map
// them (recorded once, by the first that needs them), the processes it starts and their temporary folders. It promises that nothing outlives the test: each process is in a group of its own, is killed by its
// process id in t.Cleanup, and on Linux dies with the test binary whatever happens to that.
//
// ZooKeeper runs alone, too (StartZooKeeper, SharedZooKeeper), with sessions as short as a test of their end wants them.
//
// MirrorMaker 2 runs as its releases start it (MirrorMaker), to be measured and judged beside Causeway, with jars of its own.
//
// Beyond the brokers it has an independent judge (Compare), a generator of numbered records (Load) and a TCP proxy
// (Proxy). They use franz-go alone and none of Causeway's own packages, so that a fault there can't hide itself.
//
// Goroutines: one per process, which ends with it, and four per proxied connection, which end with the Proxy.
// Close of the owner waits for all.
//
// It is imported by tests, benchmarks and programs below test/ only, and imports no package of Causeway but
// internal/testkit.
package kafkatest
