package kafkad

import "syscall"

// sysProcAttr puts a server into a process group of its own, so that a Ctrl-C at the terminal reaches this process alone and
// cleaning up stays orderly, and has the kernel kill the server should this process die first.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
