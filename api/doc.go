// Package api is the only room that speaks HTTP: the native API below /api/v1, health, metrics and the pages below /ui/.
//
// It promises JSON in snake_case, errors as {"code","message"}, lists as {"items","next"}, and that no request outlives the server: long
// polls and event streams end when Run's context ends. It sees the rest of the program through the interfaces Mirror and Events, which it
// declares, and must not import connector, mirror, wire or cluster.
//
// Goroutines: Run owns the one that serves, and net/http those of the connections; all are gone when Run returns.
package api
