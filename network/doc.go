// Package network owns who gets in where a process serves: which connections a listener keeps, and how many requests are worked on at once.
//
// It promises that no address has more connections than its quota, that all together have no more than the listener's, that of those which do nothing
// the one that has been idle for longest makes room for a new one, and that a place which was taken is given back exactly once.
//
// It starts no goroutines and knows no protocol: who serves one says which connections are idle (Listener.SetIdle) and what counts as a request
// (Pool). It must not import wire, cluster or helix.
package network
