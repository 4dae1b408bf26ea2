// Package loops keeps routes from copying topics in a circle.
//
// Each route leaves a marker for every topic that it writes, on the target cluster alone: the metadata of an offset of the consumer group
// [Group]. A marker says where the topic comes from, and carries on what the markers of the source said of that. So who reads a cluster's markers
// sees all the ways on which its topics came there, and a ring of any length shows from each of its clusters.
//
// It promises that of the routes of a ring exactly one is refused: the one that began last, of those that can see it (Judge). The others, and the
// other topics of the refused route, are not disturbed. What was decided, and what was not chosen, stands in docs/adr/012-markers-of-loops.md.
//
// Marker, Hop and Judge are pure. Watch reads and writes through the interface Notes and starts no goroutine. The package must not import the data
// path, wire, or anything above them.
package loops
