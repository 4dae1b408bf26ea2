// Package native owns the native configuration file: its sections, their defaults, and what is wrong with them. The programs share one file;
// each reads all of it and judges the sections that it uses, so that a worker's file serves its controller too.
//
// It promises that nothing in a file is passed over silently, and that all faults come at once, each with key, value and reason. It has no
// goroutines. It is the programs' own, so alone of internal it knows the configurations of cluster and handler; it must import nothing else
// above layer 0, and only the programs may import it.
package native
