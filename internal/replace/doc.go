// Package replace writes files whole: a reader sees the old one or the new one, also after a crash of the machine.
//
// It has no goroutines and imports the standard library alone.
package replace
