// Package zkhosts gives the ZooKeeper library its servers by name, in turn. The library's own provider looks addresses up once, so that a
// server which has moved to another one would never be found again.
//
// It satisfies the library's HostProvider without importing it, has no goroutines and does no IO: who dials looks the name up.
package zkhosts
