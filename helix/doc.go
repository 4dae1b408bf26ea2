// Package helix speaks the Helix protocol over ZooKeeper: records, sessions, and the three roles that Causeway plays in a cluster of the
// state model OnlineOffline in CUSTOMIZED mode (participant, controller, administrator) beside Java peers of any Helix version.
//
// It owns the paths and records below a cluster's root, and the ZooKeeper sessions. It promises:
//   - what it writes, every Java peer can read: no null map, no record without id, session ids in lower-case hex, znode name = record id;
//   - what it reads may be anything: a record that is malformed, unknown or half gone is logged once and skipped;
//   - a write belongs to one session. A [Session] never turns into another one: when ZooKeeper has forgotten it, everything that it still
//     holds fails with [ErrExpired];
//   - a participant never takes the name of a live one, runs the transitions of one partition one after the other, and reports a state only
//     when the handler has reached it;
//   - a controller writes nothing once another one has been elected, looks again only at what has changed, and brings a partition ONLINE at
//     its new owner only when the old one is OFFLINE and the message that made it so is gone.
//
// Goroutines: those of a Session end in Close, which waits for them; those of a Participant, a Controller or a
// Spectator end before its Run returns.
//
// No type of the ZooKeeper library leaves the package. It must not import anything of this module but internal packages and route.
package helix
