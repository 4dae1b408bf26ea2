package zkbrokers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// sessionTimeout is asked of ZooKeeper; the session lives for one answer.
const sessionTimeout = 10 * time.Second

// defaultPort is ZooKeeper's.
const defaultPort = "2181"

// ErrNone says that the cluster has no live broker that can be reached without encryption.
var ErrNone = errors.New("no live broker with a plaintext listener")

// Brokers lists the live brokers' plaintext addresses, HOST:PORT, in order. The address is HOST:PORT,…/chroot. Errors: ErrNone, the context's,
// ZooKeeper's.
func Brokers(ctx context.Context, address string) ([]string, error) {
	hosts, chroot, _ := strings.Cut(address, "/")
	servers := strings.Split(hosts, ",")
	for i, server := range servers {
		server = strings.TrimSpace(server)
		if _, _, err := net.SplitHostPort(server); err != nil {
			server = net.JoinHostPort(server, defaultPort)
		}
		servers[i] = server
	}
	var open sockets
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		return open.dial(ctx, network, address, timeout)
	}
	conn, events, err := zk.Connect(servers, sessionTimeout, zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(dial))
	if err != nil {
		return nil, fmt.Errorf("zookeeper %s: %w", address, err)
	}
	type answer struct {
		brokers []string
		err     error
	}
	done := make(chan answer, 1)
	go func() { // owned by Brokers: closing the connection ends it, and its answer is waited for
		folder := strings.TrimSuffix("/"+strings.Trim(chroot, "/"), "/") + "/brokers/ids"
		brokers, err := read(conn, folder)
		for lost(err) && ctx.Err() == nil {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			brokers, err = read(conn, folder)
		}
		done <- answer{brokers, err}
	}()
	var a answer
	select {
	case a = <-done:
		conn.Close()
	case <-ctx.Done():
		open.close() // or the library waits for a server that takes connections and says nothing: ten times as long as for one that answered
		conn.Close()
		<-done
		a.err = ctx.Err()
	}
	for more := true; more; { // until the library's goroutines have ended
		_, more = <-events
	}
	if a.err != nil {
		return nil, fmt.Errorf("brokers in zookeeper %s: %w", address, a.err)
	}
	return a.brokers, nil
}

// sockets are the connections of one client, which can be ended from outside.
type sockets struct {
	mu    sync.Mutex
	all   []net.Conn
	ended bool
}

func (s *sockets) dial(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all = append(s.all, conn); s.ended {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	return conn, nil
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, conn := range s.all {
		_ = conn.Close()
	}
}

// pause is the wait before ZooKeeper is asked again.
const pause = 100 * time.Millisecond

// lost says that ZooKeeper was not reached, which the library gives up at once.
func lost(err error) bool {
	return errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrConnectionClosed)
}

// read lists the brokers below a folder. One that goes meanwhile, or that can't be read, is left out.
func read(conn *zk.Conn, folder string) ([]string, error) {
	ids, _, err := conn.Children(folder)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range ids {
		data, _, err := conn.Get(folder + "/" + id)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if broker := parse(data); broker != "" {
			out = append(out, broker)
		}
	}
	if len(out) == 0 {
		return nil, ErrNone
	}
	slices.Sort(out)
	return out, nil
}

// parse gives a broker's plaintext address from its registration; empty when it has none. Fields: host and port of the plaintext listener
// (port -1 if there is none), endpoints as PROTOCOL://host:port, listener_security_protocol_map from listener names to protocols.
func parse(data []byte) string {
	var r struct {
		Host      string            `json:"host"`
		Port      int               `json:"port"`
		Endpoints []string          `json:"endpoints"`
		Protocols map[string]string `json:"listener_security_protocol_map"`
	}
	if json.Unmarshal(data, &r) != nil {
		return ""
	}
	for _, endpoint := range r.Endpoints {
		name, rest, ok := strings.Cut(endpoint, "://")
		if protocol, mapped := r.Protocols[name]; mapped {
			name = protocol
		}
		if u, err := url.Parse("tcp://" + rest); ok && err == nil && name == "PLAINTEXT" && u.Hostname() != "" {
			return u.Host
		}
	}
	if r.Host != "" && r.Port > 0 {
		return net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	}
	return ""
}

// silent drops what the library says: its errors come back from Brokers.
type silent struct{}

// Printf drops a line.
func (silent) Printf(string, ...any) {}
