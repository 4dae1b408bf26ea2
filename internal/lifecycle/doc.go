// Package lifecycle starts the components of a process in order and stops them in reverse.
//
// It promises that a component is stopped only after everything that was started after it, that the first failure wins and ends all, and
// that the goroutines of all components have ended when Run returns, unless it reports one that did not in time. It owns one goroutine a
// running component. It imports the standard library alone.
package lifecycle
