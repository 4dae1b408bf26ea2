// Package network owns who gets in where a process serves: which connections a listener keeps, how many requests are worked on at once, and how
// frames are read from people who may send anything, or nothing.
//
// It promises that no address has more connections than its quota, that all together have no more than the listener's, that of those which do nothing
// the one that has been idle for longest makes room for a new one, and that a place which was taken is given back exactly once. A frame costs no
// more memory than what has come of it, and a connection that is stopped still has its frame read to the end.
//
// It knows no protocol but that of frames: who serves one says which connections are idle (Listener.SetIdle) and what counts as a request (Pool,
// Window). Serve has one goroutine a connection and waits for all; nothing else starts any. It must not import wire, cluster or helix.
package network
