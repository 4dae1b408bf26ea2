// Command causeway is the operator's program: it mirrors in one process (standalone), shows a mirror at work on this machine (demo), asks a
// running mirror (status, topics, partitions, workers, events, wait, backup), tells it what to do (the other verbs of topics, partitions and
// workers, restore), looks beforehand for what would stop a mirror (check), compares two clusters record by record (verify) and shows a cluster on
// one host (gateway).
//
// It owns flags, files, signals and the wiring of the other packages, and is imported by nobody. Exit codes: 0; 1 wrong configuration, failed
// start, a copy that differs, a wait that timed out; 2 wrong usage, and verify when it could not compare; 70 a fault of its own.
package main
