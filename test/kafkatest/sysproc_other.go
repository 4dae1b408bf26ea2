//go:build !linux

package kafkatest

import "syscall"

// sysProcAttr puts a server into a process group of its own, so that a Ctrl-C at the terminal reaches the test binary alone.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
