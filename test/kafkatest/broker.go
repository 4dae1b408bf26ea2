package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/internal/kafkad"
)

// Broker is one member of a Cluster. Kill, Stop, Pause and Resume are those of its process; its data stays until the cluster is closed.
type Broker struct {
	*process
	cluster *Cluster
	proxy   *Proxy // nil without Options.Proxy
	id      int

	port           int // of the listener that Bootstrap names
	proxiedPort    int // of the listener behind the proxy
	securePort     int // of the listener with TLS and SASL, if there is one
	controllerPort int // KRaft only
}

// ID is the broker's id in the cluster.
func (b *Broker) ID() int { return b.id }

// Addr is the address of the broker's own listener.
func (b *Broker) Addr() string { return kafkad.Loopback(b.port) }

// Proxy is the proxy before the broker's second listener; nil without Options.Proxy.
func (b *Broker) Proxy() *Proxy { return b.proxy }

// Start starts the broker, again after Kill or Stop, and returns when it serves and is part of the cluster's metadata.
// A broker registered in ZooKeeper can come back only when its old session is over; Start waits for that first. On a machine so busy that
// the new session is over too soon, it tries again.
func (b *Broker) Start(ctx context.Context) error {
	for try := 1; ; try++ {
		err := b.startOnce(ctx)
		if err == nil || try == kafkad.StartTries || b.Running() || !b.LostSession() {
			return err
		}
	}
}

func (b *Broker) startOnce(ctx context.Context) error {
	if zk := b.cluster.zk; zk != nil {
		if err := zk.sessionOver(ctx, fmt.Sprintf("/brokers/ids/%d", b.id)); err != nil {
			return fmt.Errorf("start %s: %w", b.Name, err)
		}
	}
	if err := b.Launch(); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RetryTimeout(time.Second), kgo.DialTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	defer cl.Close()
	return b.Until(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return b.registered(ctx, cl)
	})
}

// registered asks the broker itself whether it knows itself as a member with the address it was given. The client's own view of the cluster would
// not do: it is renewed every few minutes.
func (b *Broker) registered(ctx context.Context, cl *kgo.Client) error {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none
	md, err := req.RequestWith(ctx, cl.SeedBrokers()[0])
	if err != nil {
		return fmt.Errorf("ask for its cluster: %w", err)
	}
	if md.ControllerID < 0 {
		return errors.New("no controller yet")
	}
	if !slices.ContainsFunc(md.Brokers, func(d kmsg.MetadataResponseBroker) bool { return int(d.NodeID) == b.id && int(d.Port) == b.port }) {
		return errors.New("not registered yet")
	}
	return nil
}

// format prepares the folder of a KRaft node. ZooKeeper's brokers need none of it.
func (b *Broker) format(ctx context.Context) error {
	if b.cluster.useZooKeeper() {
		return nil
	}
	const clusterID = "Q2F1c2V3YXlUZXN0cy4uLg" // any 16 bytes in base64
	in, err := install(b.cluster.opts.Version, formatRole, b.cluster.known)
	if err != nil {
		return err
	}
	return in.Format(ctx, b.Dir, b.properties(), clusterID)
}

// properties is the path of the broker's configuration.
func (b *Broker) properties() string { return filepath.Join(b.Dir, "server.properties") }

// configure writes the configuration and fixes the command line.
func (b *Broker) configure() error {
	if err := os.MkdirAll(filepath.Join(b.Dir, "data"), 0o750); err != nil {
		return fmt.Errorf("create folder of %s: %w", b.Name, err)
	}
	if err := os.WriteFile(b.properties(), kafkad.Render(b.config()), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", b.Name, err)
	}
	in, err := install(b.cluster.opts.Version, brokerRole, b.cluster.known)
	if err != nil {
		return err
	}
	b.Args, err = in.Broker(b.Dir, b.cluster.opts.Heap, b.properties())
	return err
}
