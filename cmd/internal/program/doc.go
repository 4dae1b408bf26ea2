// Package program owns what the programs do around their work: signals, version, usage, one line on stderr for each fault, exit codes.
//
// Its goroutines are the one that waits for signals, which the process owns, and the one that writes a failed program's last words, which it waits
// for. It must not know what the programs do.
package program
