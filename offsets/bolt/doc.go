// Package bolt keeps checkpoints, the route's state and error events in one bbolt file in a folder: the store of a process that has no
// ZooKeeper.
//
// It promises that a save is one transaction, durable on return; that a kill at any moment leaves the last completed save; that a second
// process on the same folder is refused with a clear error; that a copy of the folder of a stopped or paused process is a valid store; and
// that whatever the disk does comes back as an *offsets.StorageError, never as a panic. It starts no goroutines. It must not import
// anything of this module but offsets and route.
//
// docs/formats.md draws the file.
package bolt
