// Package classic reads the command lines and properties files that uReplicator's start scripts give its programs.
//
// It promises that one dash and two mean the same, that words which are no option are passed over as they always were, with a warning, that an
// option wins over the file and the file over the default, and that a value which the old programs replaced by its default without a word is
// replaced here too, with a warning. It knows no option: each program lists its own. It has no goroutines and does no IO.
package classic
