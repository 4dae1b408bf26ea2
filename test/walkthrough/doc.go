// Package walkthrough holds the tests that do what the documents tell their readers to: the files, command lines and calls of
// docs/migrate-from-ureplicator.md, docs/migrate-from-mirrormaker2.md, docs/cluster.md and docs/operations.md, in their order, and the changes of
// docs/cli.md, with real programs on a real ZooKeeper and real brokers, and with Helix 0.6.8 where uReplicator's processes stood; and those of the
// README, docs/troubleshooting.md and docs/events.md beside clusters in memory. There is nothing in it but tests.
//
// Others run the commands of other documents: test/deploy those of docs/runbook.md, the command lines of docs/deploy.md's files and of the chart,
// test/gateway people's clients through the gateway. All commands of causeway in all documents are parsed by cmd/causeway. No test runs what needs
// Docker, systemd or a Kubernetes cluster (docs/deploy.md), or other people's tools (Kafka's, in docs/operations.md and the migrations).
//
// Only names of hosts and ports are replaced. A line that begins with # below a call tells the answer: its status and how its body begins; below
// a command it tells how what is printed begins.
package walkthrough
