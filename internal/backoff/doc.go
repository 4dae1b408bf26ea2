// Package backoff spaces retries: exponential, with full jitter and a cap.
//
// It promises that a wait ends at once when its context does, and that a broken peer is never asked by many callers in step. It starts no
// goroutines and imports the standard library alone.
package backoff
