//go:build !linux

package kafkad

import "syscall"

// sysProcAttr puts a server into a process group of its own, so that a Ctrl-C at the terminal reaches this process alone.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
