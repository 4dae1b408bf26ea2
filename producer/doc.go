// Package producer owns the sending end of the data path: for each broker of the target cluster a link that builds Produce requests from
// the next ready batch of every lane that the broker leads, keeps many of them in flight, and hands each answer to its lane.
//
// It promises that a lane's batches go over one connection at a time, in the lane's order; that every batch taken from a lane is answered
// exactly once, in order; that it asks the target's leaders on behalf of lanes that don't know where they stand; and that one partition's
// late answer holds up its neighbours once at most. It decides nothing about positions: lanes do.
//
// Producer.Run owns all goroutines: one control loop, one sender a link, one for each round of inquiries. It must not import fetcher,
// mirror, handler or connector; it sees lanes through the interface that it declares.
package producer
