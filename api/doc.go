// Package api is the only room that speaks HTTP: the native API below /api/v1, health, metrics and the pages below /ui/, and uReplicator's REST,
// which a program may have for all other paths: that of a controller (Compat) and that of a worker (NewRateLimiter).
//
// It promises JSON in snake_case, errors as {"code","message"}, lists as {"items","next"}, and that no request outlives the server: long
// polls and event streams end when Run's context ends. Compat promises what uReplicator's clients parse instead: its statuses, types and texts.
// What only a cluster's leader can do, the leader does: others pass reads and uReplicator's calls on to it, once, and redirect native writes.
// Where a token is set nothing is changed without it, on any path; it is neither logged nor served. However much comes at once, connections, requests
// and waits are bounded, and probes are answered.
//
// It sees the rest of the program through the interfaces Mirror, Events, Leadership and Fleet, which it declares, and must not import
// connector, mirror, controller, helix, wire or cluster.
//
// Goroutines: Run owns the one that serves and the one that samples the history, and net/http those of the connections; all are gone when Run
// returns.
package api
