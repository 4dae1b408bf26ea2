// Package gateway shows a Kafka cluster to its clients as if it lived on one host: every broker has a port of that host, or, under TLS, a name of
// its own on one port. Whoever can reach the host can use the cluster, though its brokers can be reached by nobody but the gateway.
//
// A client's connection has one connection to its broker, and frames go from the one to the other as they come: a gateway holds no more of a
// connection than what it reads at once, however long frames are. It looks at the heads of requests, and changes the answers that carry addresses
// (answers.go); what might carry one that it does not know, it does not let clients use (versions.go). What is where, it learns from those answers
// (directory.go): it has no account on the cluster and asks it nothing. Clients authenticate at the brokers, by SASL that passes through.
//
// Promises: no answer tells a client to connect to a broker itself; answers come in the order of the requests; the memory of a connection is
// bounded, and that of all changed answers together; when it stops, what is in flight has time to be answered.
//
// Goroutines: Run waits for all. There are one a port, one a connection, and one more a connection that has a broker.
//
// It must not import the data path, the control plane or the API.
package gateway
