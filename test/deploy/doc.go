// Package deploy holds the tests of what watches and starts the programs elsewhere: alert rules, dashboard and runbook are held against what
// the programs serve and against a real Prometheus, and what Dockerfile, docker-compose.yaml, the systemd units and the Helm chart start is started, as processes,
// on real brokers. There is nothing in it but tests.
//
// Prometheus and promtool come from the system's packages. Where they are missing, tests that need them are skipped with one loud line, unless
// CAUSEWAY_REQUIRE_PROMETHEUS=1.
package deploy
