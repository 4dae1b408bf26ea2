// Package walkthrough holds the tests that do what the documents tell their readers to: the files, command lines and calls of
// docs/migrate-from-ureplicator.md, docs/migrate-from-mirrormaker2.md, docs/cluster.md and docs/operations.md, in their order, and the changes of
// docs/cli.md, with real programs on a real ZooKeeper and real brokers, and with Helix 0.6.8 where uReplicator's processes stood. There is nothing in
// it but tests.
//
// Only names of hosts and ports are replaced. A line that begins with # below a call tells the answer: its status and how its body begins; below
// a command it tells how what is printed begins.
package walkthrough
