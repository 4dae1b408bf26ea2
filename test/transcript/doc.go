// Package transcript replays calls of the REST of uReplicator, as its own programs answered them, against ours.
//
// testdata/calls.jsonl holds the calls in their order, one a line, by section: the state of the cluster in which they were made. An answer is
// equal when status, content type, the Allow header and the body are, JSON compared parsed. testdata/differences.tsv holds every difference
// that is allowed, with what justifies it; a line that no call needs is a fault.
package transcript
