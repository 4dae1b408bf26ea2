// Package cluster owns everything that says how a Kafka cluster is reached, and administers it.
//
// Config is the one place for addresses, TLS and SASL: the native YAML form, the Java client's property files, and whoever opens a
// connection (package wire, and the administration here, which speaks through sarama) share it. Admin creates topics and partitions and
// reads topic and broker settings, and keeps notes in the offsets of consumer groups. It never tells the data path who leads a partition: two
// clients with two ideas of the leader hurt.
//
// Promises: Validate and FromProperties report all faults at once, each naming the key, the value, the reason and the cure; a security key
// that is not understood is refused rather than ignored; secrets never appear in errors, logs, or in the YAML and JSON forms; certificates,
// passwords and tokens that come from files are read again for every new connection, so that rotation needs no restart.
//
// Goroutines: Admin runs each call of sarama in a goroutine of its own, because sarama knows no contexts. Close waits for all of them.
//
// It must not import the data path, the coordination adapters or anything above them.
package cluster
