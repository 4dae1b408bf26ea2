// Package storetest checks that a store keeps the promises of offsets.Store. It is imported by the tests of stores only.
package storetest
