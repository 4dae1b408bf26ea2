// Package testkit holds what tests of every package share: the search for leaked goroutines, the length of the run, certificates and the
// programs under test. Its own test walks the whole module and fails on what no linter sees: goroutines without an owner, packages without a
// purpose.
//
// It starts no goroutines, is imported by tests only, and imports nothing of Causeway.
package testkit
