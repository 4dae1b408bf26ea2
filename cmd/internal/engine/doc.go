// Package engine owns what the programs that mirror have in common: the data path built from the native file, in the API's words, and the
// events, certificates and disk space beside it.
//
// Goroutines: those of the connector, which its Run owns. It must not import helix, statemodel or controller: who decides which partitions run
// differs from program to program.
package engine
