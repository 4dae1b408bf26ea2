// Package chaos runs whole clusters of Causeway's programs under faults that a seed chooses: processes are killed, terminated and paused, links
// cut and delayed, brokers and ZooKeeper restarted, whole clusters out of reach, disks full, leaders moved, records deleted and topics made anew,
// several of these at once. There is nothing in it but tests; `make chaos` runs it for ten minutes.
//
// A schedule (schedule_test.go) is pure: the same seed gives the same actions. A stage (stage_test.go) is what they happen to. The verdict
// (verdict_test.go) is given by readers that use none of Causeway's own code: each record of the source is on the target once, in order, but for
// what events name.
package chaos
