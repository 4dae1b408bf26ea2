// Package chart holds the tests of the Helm chart below deploy/charts: it is linted and rendered by Helm's own packages, and what it gives is
// decoded strictly into the types of Kubernetes and of the Prometheus operator. There is nothing in it but tests.
//
// It is a module of its own, so that none of that gets into the program's, and compiling it (minutes, the first time) is not part of `make test`:
// `make chart-lint` runs it. The rendered manifests are kept in test/deploy/testdata/chart, where test/deploy runs what they say.
package chart
