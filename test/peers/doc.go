// Package peers puts Causeway and MirrorMaker 2 through the same cases on the same brokers, and writes down what each did with the records: the table
// "The same cases with MirrorMaker 2" of docs/guarantees.md. There is nothing in it but tests.
//
//	CAUSEWAY_LONG=1 go test ./test/peers -timeout 2h -run TestPeers [-write]
//	CAUSEWAY_LONG=1 go test ./test/peers -run 'TestPeers/C6$' -write       # one case
//	CAUSEWAY_LONG=1 go test ./test/peers -run 'TestPeers/C11$' -rounds 2    # shorter, not written down
//
// It is no part of `make test`: MirrorMaker 2 takes 10 to 20 s for each start, and minutes for a case. `make test-long` runs it. Causeway must hold
// every case; what MirrorMaker 2 does is written down and is no failure. With -write, the cases that ran replace their lines in
// testdata/results.json and in the document; a test of every run holds the document against that file, so that nothing in it is typed.
//
// Both mirrors run as processes, with their defaults but for what the table tells; both are judged by a reader that knows neither, by what they say in
// their logs, and by what they show: Causeway in its API, MirrorMaker 2 through JMX.
package peers
