// Package gateway tests `causeway gateway` before real brokers with the clients that people have: Kafka's own tools and Java clients, franz-go,
// sarama, and the mirror.
//
// That clients reach brokers through it and not beside it is told by its metrics: on one machine brokers would be in reach.
package gateway
