// Package helix holds the tests that our Helix and Java's understand each other, in both roles and in both directions: package helix of
// this module beside real controllers, participants and administrators of Helix 0.6.8 and 1.4.3 (package peers), in one cluster on a real
// ZooKeeper. There is nothing in it but tests.
//
// They look at znodes with a plain ZooKeeper client and records of their own, so that what is judged is what is on the wire.
package helix
