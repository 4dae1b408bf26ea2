// Package spool stands between a fetcher and a lane, and leads what is fetched over the disk while the lane's target takes nothing.
//
//	fetcher ──► Line ───────────── direct ─────────────► lane
//	              └──► spill.Queue ── drained, in order ──┘
//
// It promises:
//   - order and content: a lane is served by the disk up to the disk's end and by the source behind it, never by both at once;
//   - from the moment that a line spills, everything from the lane's acknowledged position on goes to disk, and a partition goes back to the
//     direct way only when its lane has been given all of it. What is on disk stays there until a checkpoint behind it is stored;
//   - a lane that is read again from its checkpoint, or a process that is started again, gets from the disk what the disk has;
//   - what is damaged on disk is fetched again for the lane; what the source has no more is a gap with the exact range, which the lane's policy
//     decides about;
//   - a full disk is back-pressure: nothing is fetched until there is room.
//
// A lane is the queue's memory: the queue itself holds nothing in memory. The Spool owns its goroutines, all in Run: what syncs, a clock, and
// some workers that do the IO of all lines.
//
// It must not import wire, cluster, fetcher or producer: it sees batches and offsets.
package spool
