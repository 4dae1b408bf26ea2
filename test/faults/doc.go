// Package faults holds the tests of what the mirror promises when things fail: whole processes of `causeway standalone` on real brokers,
// killed, paused and cut off while records flow, and brokers treated likewise. There is nothing in it but tests.
//
// Each test ends with the same verdict, given by kafkatest.CompareTopics, which uses none of Causeway's own code: the target holds each
// record of the source once, in order, bytes equal.
package faults
