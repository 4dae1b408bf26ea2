// Package fetcher is the source end of the data path: it finds the leaders of the partitions that it is given, fetches them, and hands
// whole record batches, still compressed, to one Lane each.
//
// It promises that a lane gets its batches in order, without those that must not be forwarded (control batches, aborted transactions, empty
// ones), that none of them is corrupt, that no lane is called after Remove has returned, and that an idle or full partition does not slow
// down another: idle ones (cold) wait together in one long poll, those with data (hot) are fetched over a connection of their own. What is
// fetched never exceeds the budget by more than one oversized batch a connection.
//
// Partitions belong to a fetcher by their leader and by Index; a fetcher keeps two connections with an incremental fetch session (KIP-227)
// each. Every goroutine is owned by Fetchers.Run, which returns when all of them have.
//
// Lock order: a member's call lock, then the lane's own locks. The locks of Fetchers, router and loop are leaves: nothing is called while
// they are held.
//
// It must not import the target side (producer), nor mirror, handler and connector.
package fetcher
