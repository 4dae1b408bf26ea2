package peers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// readyWithin is how long a process may take to call back, with other Java programs starting on the same two cores.
const readyWithin = time.Minute

// Peer is one Java process. Kill, Stop, Pause, Resume and Log are those of its Program; after its end it can't be started again.
type Peer struct {
	*kafkatest.Program

	conn net.Conn
	done chan struct{} // closed when the connection has ended

	mu          sync.Mutex
	asked       int                    // guarded by mu; how many questions there were
	waiting     map[string]chan answer // guarded by mu; by the question's id, each with room for its answer
	transitions []Transition           // guarded by mu; in the order in which they were told
}

// answer is what a question was answered: fields, or what the peer could not do.
type answer struct {
	fields []string
	err    error
}

// Phases of a transition.
const (
	Begun  = "begin"
	Ended  = "end"
	Failed = "failed"
	Reset  = "reset" // the session is over: the replica is OFFLINE without a transition
)

// Transition is what a participant's state model was called for.
type Transition struct {
	Phase                                            string
	Cluster, Instance, Resource, Partition, From, To string
	At                                               time.Time // when it was told here
}

// Start starts a process of that release, which uses the ZooKeeper at addr with that session timeout, and ends it at the end of the test.
func Start(t testing.TB, version, addr string, session time.Duration) *Peer {
	t.Helper()
	Require(t)
	p, err := open(t.Context(), t.TempDir(), version, addr, session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.logIfFailed(t)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// open starts a process whose working folder is dir.
func open(ctx context.Context, dir, version, addr string, session time.Duration) (*Peer, error) {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for helix peer: %w", err)
	}
	defer listener.Close() // one connection is all that is wanted
	args, err := command(version, session)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, err
	}
	p := &Peer{
		Program: kafkatest.NewProgram("helix-"+version, dir, append(args, "Peer", port, addr)...),
		done:    make(chan struct{}), waiting: map[string]chan answer{},
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	if p.conn, err = accept(ctx, listener); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for helix peer: %w\n%s", err, p.Tail()), p.Kill())
	}
	go p.read() // owned by Peer: ends with the connection, which Close closes and waits for
	return p, nil
}

// command is the program and its options. A small heap and the quick compiler keep several of them on two cores bearable.
func command(version string, session time.Duration) ([]string, error) {
	java, err := kafkatest.JDK("java")
	if err != nil {
		return nil, fmt.Errorf("find java: %w", err)
	}
	libs, err := Libs(version)
	if err != nil {
		return nil, err
	}
	peer, err := classes(version)
	if err != nil {
		return nil, err
	}
	return []string{
		java, "-Xmx384m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData",
		"-Dzk.session.timeout=" + strconv.FormatInt(session.Milliseconds(), 10),
		"-cp", peer + string(os.PathListSeparator) + filepath.Join(libs, "*"),
	}, nil
}

func accept(ctx context.Context, listener net.Listener) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })() // Accept knows no context
	return listener.Accept()
}

// Close kills the process and waits until everything that it told has been read.
func (p *Peer) Close() error {
	err := p.Kill()
	_ = p.conn.Close() // the process is gone, its end is closed
	<-p.done
	return err
}

// Ask asks a question, see java/Peer.java, and waits for its answer.
func (p *Peer) Ask(ctx context.Context, verb string, args ...string) ([]string, error) {
	reply := make(chan answer, 1)
	p.mu.Lock()
	p.asked++
	id := strconv.Itoa(p.asked)
	p.waiting[id] = reply
	_, err := io.WriteString(p.conn, strings.Join(append([]string{id, verb}, args...), "\t")+"\n")
	p.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("ask helix peer: %w", err)
	}
	select {
	case a := <-reply:
		return a.fields, a.err
	case <-p.done:
		return nil, fmt.Errorf("helix peer ended before it answered %s", verb)
	case <-ctx.Done():
		return nil, fmt.Errorf("helix peer does not answer %s: %w", verb, context.Cause(ctx))
	}
}

// must asks a question that has to be answered well.
func (p *Peer) must(t testing.TB, verb string, args ...string) []string {
	t.Helper()
	fields, err := p.Ask(t.Context(), verb, args...)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// read takes lines until the connection ends.
func (p *Peer) read() {
	defer close(p.done)
	lines := bufio.NewReader(p.conn)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // the process has ended, or Close has closed
			return
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if fields[0] == "*" {
			p.happened(fields[1], fields[2:])
			continue
		}
		p.answered(fields[0], fields[1], fields[2:])
	}
}

func (p *Peer) happened(phase string, f []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transitions = append(p.transitions, Transition{
		Phase: phase, Cluster: f[0], Instance: f[1], Resource: f[2], Partition: f[3], From: f[4], To: f[5], At: time.Now(),
	})
}

func (p *Peer) answered(id, verdict string, fields []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := answer{fields: fields}
	if verdict != "ok" {
		a = answer{err: errors.New(strings.Join(fields, " "))}
	}
	p.waiting[id] <- a
	delete(p.waiting, id)
}

func (p *Peer) logIfFailed(t testing.TB) {
	t.Helper()
	if t.Failed() {
		t.Log(p.Tail())
	}
}
