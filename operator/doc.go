// Package operator holds what an operator asks of a route's topics and partitions: settings, which last, and commands, which are carried out
// once; and the forms in which they stand in ZooKeeper and in a state folder.
//
// It promises that what it writes it reads again, and that whatever it can't read is an error that names key, value and reason.
//
// It is pure: no IO, no clock, no goroutines. It imports the standard library and route alone, because controller, worker and API meet here.
package operator
