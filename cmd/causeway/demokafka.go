package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/kafkad"
)

const (
	// brokerHeap is enough for a broker that keeps a demo's records.
	brokerHeap = "256m"
	// brokerPatience bounds one question to a broker that starts.
	brokerPatience = 10 * time.Second
)

// realClusters are two clusters of Kafka itself, each of one broker that is its own controller (KRaft).
type realClusters struct {
	source, target *realBroker
	keep           bool // the folder is used again: brokers end in good order
}

// realBroker is a broker in a process of its own.
type realBroker struct {
	*kafkad.Process

	address string
}

// kafkaInstall finds Java and the jars of Kafka: of the installation that KAFKA_HOME names, else those that were fetched. All that is missing is
// named, with what to do about it.
func kafkaInstall() (in kafkad.Install, release string, err error) {
	var faults []error
	home := os.Getenv("JAVA_HOME")
	if in.Java, err = kafkad.JDK(home, "java"); err == nil && home != "" && filepath.Dir(in.Java) != filepath.Join(home, "bin") {
		faults = append(faults, fault("--kafka: JAVA_HOME", home, "has no bin/java: name the folder of a Java runtime, or unset it to use "+in.Java))
	}
	if err != nil {
		faults = append(faults, errors.New("--kafka: java is neither in JAVA_HOME nor on the PATH: install a Java runtime (17 or later for Kafka 4)"))
	}
	if home = os.Getenv("KAFKA_HOME"); home != "" {
		if in.Libs, release, err = kafkad.Installed(home); err != nil {
			faults = append(faults, fault("--kafka: KAFKA_HOME", home, err.Error()+": name the folder of a Kafka installation, or unset it and run `make kafka`"))
		}
		return in, release, errors.Join(faults...)
	}
	cache, err := kafkad.Cache(os.Getenv("CAUSEWAY_KAFKA_HOME"))
	if err == nil {
		in.Libs, release, err = kafkad.Fetched(cache)
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("--kafka: %w: run `make kafka`, which fetches them, or set KAFKA_HOME to the folder of a Kafka installation", err))
	}
	return in, release, errors.Join(faults...)
}

// startReal starts both clusters below dir and returns when they serve and have their topics. keep says that the folder will be used again. The
// caller closes what it gets also when there is an error.
func startReal(ctx context.Context, in kafkad.Install, dir string, endless, keep bool) (*realClusters, error) {
	c := &realClusters{keep: keep}
	configs := map[string]string{}
	if endless {
		configs = retention()
	}
	both, starting := errgroup.WithContext(ctx)
	start := func(name string, id int, place **realBroker, topics []demoTopic) {
		both.Go(func() (err error) {
			if *place, err = startBroker(starting, in, filepath.Join(dir, name), id); err == nil {
				err = (*place).createTopics(starting, topics, configs)
			}
			if err != nil {
				return fmt.Errorf("start %s cluster: %w", name, err)
			}
			return nil
		})
	}
	start("source", 1, &c.source, demoTopics())
	var targetTopics []demoTopic
	if endless { // so that the target forgets too; else the mirror creates its topics
		targetTopics = demoTopics()
	}
	start("target", 2, &c.target, targetTopics)
	err := both.Wait()
	if ctx.Err() != nil {
		err = errors.New("interrupted while the brokers were starting")
	}
	return c, err
}

// retention makes a broker forget records as an embedded cluster does, a segment at a time.
func retention() map[string]string {
	return map[string]string{
		"retention.ms": strconv.FormatInt(demoKeep.Milliseconds(), 10),
		"segment.ms":   strconv.FormatInt(demoKeep.Milliseconds()/5, 10),
	}
}

// startBroker starts a broker in a folder, which an earlier demo may have used. A port that was taken meanwhile is replaced. The broker is
// returned also with an error, if there is a process to end.
func startBroker(ctx context.Context, in kafkad.Install, dir string, id int) (*realBroker, error) {
	for try := 1; ; try++ {
		b, err := prepareBroker(ctx, in, dir, id)
		if err != nil {
			return nil, err
		}
		if err = b.Launch(); err != nil {
			return nil, err
		}
		if err = b.Until(ctx, b.answers); err == nil || ctx.Err() != nil || try == kafkad.StartTries || !b.Unlucky() {
			return b, err
		}
		if err = b.Kill(); err != nil {
			return nil, err
		}
	}
}

// prepareBroker writes the broker's configuration and formats its folder the first time.
func prepareBroker(ctx context.Context, in kafkad.Install, dir string, id int) (*realBroker, error) {
	data, properties := filepath.Join(dir, "data"), filepath.Join(dir, "server.properties")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("create broker folder: %w", err)
	}
	ports, err := kafkad.FreePorts(2)
	if err != nil {
		return nil, err
	}
	address, controller := kafkad.Loopback(ports[0]), kafkad.Loopback(ports[1])
	conf := kafkad.Small(data, 1)
	maps.Copy(conf, kafkad.KRaft(id, fmt.Sprintf("%d@%s", id, controller), 1))
	maps.Copy(conf, map[string]string{
		"listeners":                       "PLAINTEXT://" + address + ",CONTROLLER://" + controller,
		"advertised.listeners":            "PLAINTEXT://" + address,
		"listener.security.protocol.map":  "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.retention.check.interval.ms": strconv.FormatInt((demoKeep / 10).Milliseconds(), 10),
	})
	if err = os.WriteFile(properties, kafkad.Render(conf), 0o600); err != nil {
		return nil, fmt.Errorf("write broker configuration: %w", err)
	}
	if _, err = os.Stat(filepath.Join(data, "meta.properties")); err != nil {
		clusterID := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "causeway-demo--%d", id))
		if err = in.Format(ctx, dir, properties, clusterID); err != nil {
			return nil, err
		}
	}
	args, err := in.Broker(dir, brokerHeap, properties)
	return &realBroker{Process: &kafkad.Process{Name: filepath.Base(dir) + " broker", Dir: dir, Args: args}, address: address}, err
}

// answers asks the broker which brokers there are: it has started when it names itself. One that its controller has not let in yet (it is fenced)
// tells of none, and refuses topics and producer ids.
func (b *realBroker) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address))
	if err != nil {
		return fmt.Errorf("ask broker: %w", err)
	}
	defer client.Close()
	answer, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
	switch {
	case err != nil:
		return fmt.Errorf("ask broker: %w", err)
	case len(answer.Brokers) == 0:
		return errors.New("the broker is fenced")
	}
	return nil
}

// createTopics creates topics that are not there from an earlier demo, and returns when they are listed. A broker that has only just started may
// not be known to its controller yet, and learns of a new topic a little later than that.
func (b *realBroker) createTopics(ctx context.Context, topics []demoTopic, configs map[string]string) error {
	return b.Until(ctx, func(ctx context.Context) error {
		return b.administer(ctx, func(ctx context.Context, admin *cluster.Admin) error {
			var faults []error
			for _, t := range topics {
				err := admin.CreateTopic(ctx, cluster.TopicSpec{Name: t.name, Partitions: t.partitions, ReplicationFactor: 1, Configs: configs})
				if err != nil && cluster.Classify(err) != cluster.Exists {
					faults = append(faults, fmt.Errorf("create topic %s: %w", t.name, err))
				}
			}
			if err := errors.Join(faults...); err != nil {
				return err
			}
			there, err := admin.Topics(ctx)
			for _, t := range topics {
				if err == nil && there[t.name].Partitions != t.partitions {
					err = fmt.Errorf("topic %s is not listed yet", t.name)
				}
			}
			return err
		})
	})
}

func (b *realBroker) administer(ctx context.Context, do func(context.Context, *cluster.Admin) error) error {
	ctx, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	admin := cluster.NewAdmin(cluster.Config{Name: b.Name, Bootstrap: []string{b.address}}, hclog.NewNullLogger())
	return errors.Join(do(ctx, admin), admin.Close())
}

func (c *realClusters) addresses() (source, target []string) {
	return []string{c.source.address}, []string{c.target.address}
}

// forget does nothing: brokers apply retention themselves.
func (*realClusters) forget(context.Context) {}

// close ends both brokers. Those whose data nobody will read again are not asked to write it to its end.
func (c *realClusters) close() error {
	var both errgroup.Group
	for _, b := range []*realBroker{c.source, c.target} {
		switch {
		case b == nil:
		case c.keep:
			both.Go(b.Stop)
		default:
			both.Go(b.Kill)
		}
	}
	return both.Wait()
}
