package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// zooKeeperTick is the granularity of sessions: a client may ask for a timeout of two ticks or more, and what expires, expires within
// one tick. Short ticks make tests of expiry fast.
const zooKeeperTick = 100 * time.Millisecond

// ZooKeeper is a real stand-alone ZooKeeper server. Its data is flushed to disk, so it may be killed and started again on the same port.
// Kill, Stop, Pause and Resume are those of its process. Sessions of 200 ms to 2 minutes may be asked for.
type ZooKeeper struct {
	*process
	port  int
	proxy *Proxy
}

// StartZooKeeper starts a ZooKeeper server for one test and closes it at the end of the test.
func StartZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	Require(t)
	z, err := OpenZooKeeper(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(z.Tail())
		}
		if err := z.close(); err != nil {
			t.Error(err)
		}
	})
	return z
}

// openZooKeeper starts a server and its proxy in a new folder below root. A port that was taken meanwhile is replaced.
func openZooKeeper(ctx context.Context, root string, known classes) (*ZooKeeper, error) {
	var err error
	for try := range kafkad.StartTries {
		var ports []int
		if ports, err = kafkad.FreePorts(1); err != nil {
			return nil, err
		}
		z := &ZooKeeper{port: ports[0], process: &process{Name: "zookeeper", Dir: filepath.Join(root, fmt.Sprintf("zookeeper-%d", try))}}
		if err := z.configure(known); err != nil {
			return nil, err
		}
		if z.proxy, err = NewProxy(z.Addr()); err != nil {
			return nil, err
		}
		if err = z.Start(ctx); err == nil {
			return z, nil
		}
		_ = z.close() // the error that matters is the start's
		if !z.Unlucky() {
			return nil, err
		}
	}
	return nil, err
}

func (z *ZooKeeper) configure(known classes) error {
	data := filepath.Join(z.Dir, "data")
	if err := os.MkdirAll(data, 0o750); err != nil {
		return fmt.Errorf("create zookeeper folder: %w", err)
	}
	// A short tick lets short sessions be asked for; the ceiling lets long ones be, too.
	conf := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\ntickTime=%d\nmaxSessionTimeout=120000\nmaxClientCnxns=0\n"+
		"admin.enableServer=false\n4lw.commands.whitelist=*\n", data, z.port, zooKeeperTick.Milliseconds())
	file := filepath.Join(z.Dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return fmt.Errorf("write zookeeper configuration: %w", err)
	}
	in, err := install(Kafka3, zooKeeperRole, known)
	if err != nil {
		return err
	}
	z.Args, err = in.Command(z.Dir, "256m", "org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	return err
}

// close kills the server and ends its proxy.
func (z *ZooKeeper) close() error { return errors.Join(z.Kill(), z.proxy.Close()) }

// Addr is the server's own host:port.
func (z *ZooKeeper) Addr() string { return kafkad.Loopback(z.port) }

// Proxy is the proxy before the server: a client that is given its address can be cut off, held up or refused while others go directly.
// It stays when the server is killed. A test that needs one of its own makes it with NewProxy(z.Addr()).
func (z *ZooKeeper) Proxy() *Proxy { return z.proxy }

// Start starts the server, again after Kill or Stop, and returns when it serves.
func (z *ZooKeeper) Start(ctx context.Context) error {
	if err := z.Launch(); err != nil {
		return err
	}
	return z.Until(ctx, func(ctx context.Context) error {
		answer, err := z.ask(ctx, "ruok")
		if err == nil && answer != "imok" {
			err = fmt.Errorf("zookeeper answers %q", answer)
		}
		return err
	})
}

// sessionOver returns when no session holds the ephemeral node at path any more.
func (z *ZooKeeper) sessionOver(ctx context.Context, path string) error {
	return kafkad.Poll(ctx, kafkad.ReadyWithin, func(ctx context.Context) error {
		dump, err := z.ask(ctx, "dump")
		if err != nil {
			return err
		}
		for line := range strings.Lines(dump) {
			if strings.TrimSpace(line) == path {
				return fmt.Errorf("an old session still holds %s", path)
			}
		}
		return nil
	})
}

// ask sends one of ZooKeeper's four-letter commands and returns the answer.
func (z *ZooKeeper) ask(ctx context.Context, command string) (string, error) {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", z.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close() // read to its end
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
