package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// Options says what cluster to start. The zero value is one broker of Kafka4.
type Options struct {
	// Version is the Kafka release. 3.x runs with ZooKeeper, later ones with KRaft, every node being broker and controller.
	// Default: Kafka4.
	Version string
	// Brokers is their number, 1 or 3. Default: 1. With three, internal topics and those of CreateTopic have three replicas.
	Brokers int
	// Config goes into every broker's server.properties and wins over the harness's own lines.
	Config map[string]string
	// Proxy puts a Proxy before each broker: clients that start from ProxyBootstrap reach every broker through its proxy,
	// those that start from Bootstrap and the brokers themselves go directly.
	Proxy bool
	// Secure adds a listener with TLS and SASL to each broker; see Cluster.Secure.
	Secure bool
	// Heap is each broker's maximum heap as Java's -Xmx takes it. Default: 512m.
	Heap string
}

// Cluster is a running Kafka cluster.
type Cluster struct {
	opts    Options
	root    string
	known   classes
	zk      *ZooKeeper // nil with KRaft
	brokers []*Broker
}

// Start starts a cluster for one test and ends it with the test. If the test failed, the ends of the servers' logs are printed.
func Start(t testing.TB, opts Options) *Cluster {
	t.Helper()
	Require(t)
	c, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.Logs())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Open starts a cluster outside a test and returns when every broker serves. Close ends it.
func Open(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Version == "" {
		opts.Version = Kafka4
	}
	known, err := classesOf(ctx, opts.Version)
	if err != nil {
		return nil, err
	}
	return open(ctx, opts, known)
}

func open(ctx context.Context, opts Options, known classes) (*Cluster, error) {
	if opts.Brokers == 0 {
		opts.Brokers = 1
	}
	if opts.Heap == "" {
		opts.Heap = "512m"
	}
	var err error
	for range kafkad.StartTries {
		var root string
		if root, err = newFolder(); err != nil {
			return nil, err
		}
		c := &Cluster{opts: opts, root: root, known: known}
		if err = c.open(ctx); err == nil {
			return c, nil
		}
		again := c.unlucky()
		if errClose := c.Close(); errClose != nil {
			return nil, errors.Join(err, errClose)
		}
		if !again {
			return nil, err
		}
	}
	return nil, err
}

func (c *Cluster) open(ctx context.Context) error {
	if c.useZooKeeper() {
		zk, err := openZooKeeper(ctx, c.root, c.known)
		if err != nil {
			return err
		}
		c.zk = zk
	}
	if c.opts.Secure {
		if err := c.writeCertificates(); err != nil {
			return err
		}
	}
	if err := c.layout(); err != nil {
		return err
	}
	err := c.each(func(b *Broker) error {
		if err := b.format(ctx); err != nil {
			return err
		}
		return b.Start(ctx)
	})
	if err != nil || !c.opts.Secure {
		return err
	}
	return c.addUser(ctx)
}

// layout gives every broker its ports, folder and configuration. A controller's address stands in all configurations, so all
// ports are found first.
func (c *Cluster) layout() error {
	ports, err := kafkad.FreePorts(4 * c.opts.Brokers)
	if err != nil {
		return err
	}
	for i := range c.opts.Brokers {
		b := &Broker{cluster: c, id: i, port: ports[4*i], proxiedPort: ports[4*i+1], securePort: ports[4*i+2], controllerPort: ports[4*i+3]}
		b.process = &process{Name: fmt.Sprintf("broker-%d", i), Dir: filepath.Join(c.root, fmt.Sprintf("broker-%d", i))}
		c.brokers = append(c.brokers, b)
		if c.opts.Proxy {
			if b.proxy, err = NewProxy(kafkad.Loopback(b.proxiedPort)); err != nil {
				return err
			}
		}
	}
	for _, b := range c.brokers {
		if err := b.configure(); err != nil {
			return err
		}
	}
	return nil
}

// useZooKeeper says whether the release is one that this harness runs with ZooKeeper.
func (c *Cluster) useZooKeeper() bool { return strings.HasPrefix(c.opts.Version, "3.") }

// replicas is the replication factor of internal topics and of CreateTopic: enough to outlive one broker where there are three.
func (c *Cluster) replicas() int { return min(3, c.opts.Brokers) }

// each calls f for all brokers at once and joins the errors.
func (c *Cluster) each(f func(*Broker) error) error {
	errs := make([]error, len(c.brokers))
	var wg sync.WaitGroup
	for i, b := range c.brokers {
		wg.Go(func() { errs[i] = f(b) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close kills all servers and removes their data. Proxies are closed, too.
func (c *Cluster) Close() error {
	err := c.each(func(b *Broker) error {
		err := b.Kill()
		if b.proxy != nil {
			err = errors.Join(err, b.proxy.Close())
		}
		return err
	})
	if c.zk != nil {
		err = errors.Join(err, c.zk.close())
	}
	return errors.Join(err, os.RemoveAll(c.root))
}

// Bootstrap is the brokers' own addresses, host:port each.
func (c *Cluster) Bootstrap() []string {
	addrs := make([]string, 0, len(c.brokers))
	for _, b := range c.brokers {
		addrs = append(addrs, b.Addr())
	}
	return addrs
}

// ProxyBootstrap is the addresses of the proxies before the brokers; empty without Options.Proxy.
func (c *Cluster) ProxyBootstrap() []string {
	var addrs []string
	for _, b := range c.brokers {
		if b.proxy != nil {
			addrs = append(addrs, b.proxy.Addr())
		}
	}
	return addrs
}

// Broker returns the broker with that id; ids count from 0.
func (c *Cluster) Broker(id int) *Broker { return c.brokers[id] }

// Brokers returns all brokers in the order of their ids.
func (c *Cluster) Brokers() []*Broker { return c.brokers }

// ZooKeeper is the cluster's ZooKeeper server; nil with KRaft.
func (c *Cluster) ZooKeeper() *ZooKeeper { return c.zk }

// Version is the cluster's Kafka release.
func (c *Cluster) Version() string { return c.opts.Version }

// Logs is the last lines of every server's log.
func (c *Cluster) Logs() string {
	var b strings.Builder
	if c.zk != nil {
		fmt.Fprintln(&b, c.zk.Tail())
	}
	for _, broker := range c.brokers {
		fmt.Fprintln(&b, broker.Tail())
	}
	return b.String()
}

func (c *Cluster) unlucky() bool {
	for _, b := range c.brokers {
		if b.Unlucky() {
			return true
		}
	}
	return false
}

// Client returns a franz-go client of the cluster's own listeners, closed at the end of the test.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Bootstrap()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}
