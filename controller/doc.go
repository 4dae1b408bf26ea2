// Package controller leads one route's cluster: which topics are mirrored, by which worker each of their partitions, and how far behind each
// is. It writes ideal states; the Helix controller in room helix turns them into transitions of the workers.
//
// It promises:
//   - only the leader acts, and all it knows it keeps in memory: adding a topic reads one topic's metadata and nothing else;
//   - one change at a time, each by compare-and-set, and only what differs is written;
//   - partition counts only grow, what is placed stays placed, a partition that is taken off (blacklisted) stays off through moves and
//     expansions;
//   - nothing moves unless its owner is gone, drained or stuck, or the balance gains by it (package assign decides that);
//   - what operators ask is written where workers follow it (settings, commands), by the leader alone;
//   - no job ends by an error: it is logged, counted, and the job's next run goes ahead;
//   - reading changes nothing.
//
// Goroutines: Run owns the jobs of a term of leadership (watching workers, repair, discovery, lag, validation, backups); they are gone before the
// term's function returns, and the term before Run does. Calls from outside run on their caller's goroutine.
//
// It sees Kafka and the workers through interfaces that it declares and must not import wire, the data path or api.
package controller
