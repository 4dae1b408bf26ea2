// Package program owns what a cluster's programs do around their work: version, usage, one line on stderr for each fault, exit codes.
//
// It has no goroutines but the one that writes a failed program's last words, which it waits for. It must not know what the programs do.
package program
