// Package route holds the nouns that every other package shares: a route, a partition, an offset, a topic id.
//
// It promises nothing but names: no IO, no goroutines, no state. It imports the standard library alone.
package route
