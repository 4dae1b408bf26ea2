package kafkad

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a server may take to end after SIGTERM before it is killed.
const stopWithin = 60 * time.Second

// Process is one program, mostly a Java server, that may be ended and started again with the same arguments in the same folder.
type Process struct {
	Name string   // for messages: "broker-0", "zookeeper"
	Dir  string   // its working folder, which must exist; holds out.log (standard output), server.log and whatever the server stores
	Args []string // program and arguments, see [Command]

	mu     sync.Mutex
	cmd    *exec.Cmd     // guarded by mu; nil before the first start
	done   chan struct{} // guarded by mu; closed when cmd has ended
	paused bool          // guarded by mu
}

// Launch starts the process, again after its end. It does not wait until the server serves.
func (p *Process) Launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && !closed(p.done) {
		return fmt.Errorf("start %s: it is running", p.Name)
	}
	out, err := os.OpenFile(filepath.Join(p.Dir, "out.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.Name, err)
	}
	defer out.Close()                             // the child has its own descriptor, nothing is written through this one
	cmd := exec.Command(p.Args[0], p.Args[1:]...) //nolint:gosec,noctx // our own argument list; the process ends by Kill or Stop, not with a context
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = out, out, p.Dir, sysProcAttr()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.paused = cmd, done, false
	go func() { // owned by Process: ends when the server does, which Kill and Stop wait for
		defer close(done)
		_ = cmd.Wait() // killing is the usual end here
	}()
	return nil
}

// Running says whether the process has been started and has not ended; a paused one is running.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil && !closed(p.done)
}

// Pid is the process id of the last start, 0 before the first.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// ExitCode is how the last run ended: -1 by a signal. It must have ended.
func (p *Process) ExitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the process with SIGKILL and waits until it is gone. Killing one that has ended is no error.
func (p *Process) Kill() error {
	done, err := p.signal(syscall.SIGKILL)
	if done != nil {
		<-done
	}
	return err
}

// Stop ends the process with SIGTERM and waits; a server that does not heed it within a minute is killed and an error returned.
func (p *Process) Stop() error {
	if err := p.Resume(); err != nil {
		return err
	}
	done, err := p.signal(syscall.SIGTERM)
	if done == nil || err != nil {
		return err
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("stop %s: still there %v after SIGTERM", p.Name, stopWithin), p.Kill())
	}
}

// Pause freezes the process with SIGSTOP: its connections stay open, its port accepts, nothing answers.
func (p *Process) Pause() error {
	_, err := p.signal(syscall.SIGSTOP)
	return err
}

// Resume lets a paused process go on. It does nothing to one that is not paused.
func (p *Process) Resume() error {
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if !paused {
		return nil
	}
	_, err := p.signal(syscall.SIGCONT)
	return err
}

// signal sends sig to the process's group and returns the channel that closes at its end; nil if there is no process to signal.
func (p *Process) signal(sig syscall.Signal) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || closed(p.done) {
		return nil, nil
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return p.done, fmt.Errorf("send %v to %s: %w", sig, p.Name, err)
	}
	switch sig {
	case syscall.SIGSTOP:
		p.paused = true
	case syscall.SIGCONT:
		p.paused = false
	default:
	}
	return p.done, nil
}

// Log is what the process wrote so far: its standard output and its server log.
func (p *Process) Log() string {
	var b strings.Builder
	for _, name := range []string{"format.log", "out.log", "server.log"} {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err == nil {
			b.Write(text)
		}
	}
	return b.String()
}

// Tail is the last lines of Log, headed with the process's name.
func (p *Process) Tail() string {
	all := strings.Split(strings.TrimSpace(p.Log()), "\n")
	return fmt.Sprintf("--- %s, last lines of its log ---\n%s", p.Name, strings.Join(all[max(0, len(all)-tailLines):], "\n"))
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
