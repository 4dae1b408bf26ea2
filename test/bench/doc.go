// Command bench measures Causeway side by side with other mirrors on real Kafka brokers, and writes what it found to
// docs/performance.md. `make bench-kafka` runs it; see that document for how it measures and how to read it.
//
//	go run ./test/bench [-parts volume,wan,replicas,hot,filter,latency,gateway,gateway-latency,spill,purgatory,handover,cluster] [-pairs 5] [-records N] [-quick] [-out FILE]
//
// It owns the brokers, the mirrors and the temporary folder that it makes, and leaves nothing behind. It measures every mirror as a process
// from outside and imports none of Causeway's own packages; of the spill and the purgatory it runs the benchmarks.
package main
