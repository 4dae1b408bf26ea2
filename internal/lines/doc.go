// Package lines is the way out for what a process says of itself: its log and its progress.
//
// It promises that nobody who writes a line ever waits for whoever reads it: a disk that is full of work, a pipe whose reader stands still or a
// terminal that was told to stop would otherwise hold up whatever logs, and so the data path. Lines keep their order. Beyond the room that there
// is they are left out, and a line in their place says how many.
//
// The goroutine of Serve is owned by its caller, who ends it; one that is stuck in a write is left to the end of the process.
package lines
