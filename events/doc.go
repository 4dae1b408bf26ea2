// Package events holds what an operator must know: typed, counted, logged and listed happenings of a route.
//
// It promises that ids only grow, also across restarts (they begin at the clock's microseconds), and that an event is logged and counted
// exactly once. Errors are also stored, by Flush, which returns when they are durable: nothing is committed before.
//
// Who waits for an event waits in a purgatory, which has the only goroutine, while anybody does; Close waits for it. It imports only route, purgatory
// and the standard library, the logger and the metrics library.
package events
