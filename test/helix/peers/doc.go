// Package peers runs real Helix for tests: Java processes that play any number of controllers, participants and administrators of
// Helix 0.6.8, which uReplicator runs, or 1.4.3, as tests ask.
//
// It owns: the jars of both releases (fetched once from Maven Central, see Libs), the Java program in the folder java, which it
// compiles once against each release into the same cache, and the processes it starts. It promises that nothing outlives the test
// binary: processes are kafkatest.Programs, killed by their id. A test may kill, stop and pause them.
//
// Tester and process talk over one loopback connection in lines of tab-separated fields; java/Peer.java describes them. What
// participants do is told as it happens and kept, so that a test can ask afterwards in which order things went.
//
// Goroutines: one per process reads the connection and ends with it; Close waits for it.
//
// It is imported by tests and programs below test/ only, and imports none of Causeway's packages but internal/testkit and
// test/kafkatest, so that a fault of our own Helix can't hide itself.
package peers
