package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/IBM/sarama"
	"github.com/hashicorp/go-hclog"
)

// ErrClosed is what calls of a closed Admin return.
var ErrClosed = errors.New("the administration client is closed")

// Topic is what a cluster says of one topic.
type Topic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	// Internal topics (such as the consumer offsets) belong to the brokers.
	Internal bool
}

// TopicSpec is a topic to be created.
type TopicSpec struct {
	Name string
	// Partitions -1 leaves the number to the broker (KIP-464, Kafka 2.4).
	Partitions int32
	// ReplicationFactor -1 leaves it to the broker as well.
	ReplicationFactor int16
	// Configs are the topic's own settings; those left out are the broker's.
	Configs map[string]string
}

// Admin administers one cluster. It connects at the first call, again after a failure, and reads certificates and passwords anew each time.
// Its calls take turns: administration is rare, and a wedged broker then holds up one request and not a crowd. All methods may be called
// concurrently. Errors of any method can be given to Classify.
type Admin struct {
	cfg  Config
	log  hclog.Logger
	turn chan struct{} // holds a token while a call is under way

	calls sync.WaitGroup

	mu      sync.Mutex // guards the two below
	current *session
	closed  bool
}

// NewAdmin does no IO; a wrong configuration shows at the first call.
func NewAdmin(cfg Config, log hclog.Logger) *Admin {
	return &Admin{cfg: cfg, log: log, turn: make(chan struct{}, 1)}
}

// Topics lists all topics that we may see.
func (a *Admin) Topics(ctx context.Context) (map[string]Topic, error) {
	return do(ctx, a, "list topics", func(s *session) (map[string]Topic, error) {
		described, err := s.admin.DescribeTopics(nil)
		if err != nil {
			return nil, err
		}
		topics := make(map[string]Topic, len(described))
		for _, t := range described {
			topic := Topic{Name: t.Name, Internal: t.IsInternal, Partitions: int32(len(t.Partitions))}
			if len(t.Partitions) > 0 {
				topic.ReplicationFactor = int16(len(t.Partitions[0].Replicas))
			}
			topics[t.Name] = topic
		}
		return topics, nil
	})
}

// CreateTopic creates a topic. One that is there already is no error, whatever its settings: two workers may create the same at once.
func (a *Admin) CreateTopic(ctx context.Context, spec TopicSpec) error {
	return a.CreateTopics(ctx, spec)[spec.Name]
}

// CreateTopics creates topics as CreateTopic does, many with one request, and gives the errors of those that failed, by name. No name may stand
// twice.
func (a *Admin) CreateTopics(ctx context.Context, specs ...TopicSpec) map[string]error {
	return a.createTopics(ctx, "create topic", specs, false)
}

// TryTopic asks whether CreateTopic would succeed; nothing is created (KIP-4, validate only).
func (a *Admin) TryTopic(ctx context.Context, spec TopicSpec) error {
	return a.createTopics(ctx, "try to create topic", []TopicSpec{spec}, true)[spec.Name]
}

// Bounds of one request to create topics: a controller has adminTimeout for it, and refuses more than 10,000 records of its log at once.
const (
	mostTopics     = 200
	mostPartitions = 2000
)

func (a *Admin) createTopics(ctx context.Context, what string, specs []TopicSpec, try bool) map[string]error {
	failed := map[string]error{}
	for len(specs) > 0 {
		details, partitions := map[string]*sarama.TopicDetail{}, int32(0)
		for len(specs) > 0 && len(details) < mostTopics {
			if partitions += max(specs[0].Partitions, 1); len(details) > 0 && partitions > mostPartitions {
				break
			}
			details[specs[0].Name] = specs[0].detail()
			specs = specs[1:]
		}
		faults, err := do(ctx, a, what, func(s *session) (map[string]error, error) { return s.createTopics(details, try) })
		for name := range details {
			switch {
			case err != nil:
				failed[name] = fmt.Errorf("topic %s: %w", name, err)
			case faults[name] != nil:
				failed[name] = fmt.Errorf("%s %s on %s: %w", what, name, a.cfg.Name, faults[name])
			}
		}
	}
	return failed
}

func (s TopicSpec) detail() *sarama.TopicDetail {
	d := &sarama.TopicDetail{NumPartitions: s.Partitions, ReplicationFactor: s.ReplicationFactor, ConfigEntries: make(map[string]*string, len(s.Configs))}
	for key, value := range s.Configs {
		d.ConfigEntries[key] = &value
	}
	return d
}

// CreatePartitions grows a topic to count partitions. A topic that has as many or more is left as it is, which is no error.
func (a *Admin) CreatePartitions(ctx context.Context, topic string, count int32) error {
	return a.createPartitions(ctx, "create partitions of", topic, count, false)
}

// TryPartitions asks whether CreatePartitions would succeed; nothing is created (KIP-195, validate only).
func (a *Admin) TryPartitions(ctx context.Context, topic string, count int32) error {
	return a.createPartitions(ctx, "try to create partitions of", topic, count, true)
}

func (a *Admin) createPartitions(ctx context.Context, what, topic string, count int32, try bool) error {
	_, err := do(ctx, a, what+" "+topic, func(s *session) (struct{}, error) {
		err := s.admin.CreatePartitions(topic, count, nil, try)
		if errors.Is(err, sarama.ErrInvalidPartitions) && s.hasPartitions(ctx, topic, count) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// TopicConfigs returns the settings in force for topics, the brokers' defaults included, sensitive ones left out. When some topics fail, the
// others are returned along with the error.
func (a *Admin) TopicConfigs(ctx context.Context, topics ...string) (map[string]map[string]string, error) {
	if len(topics) == 0 {
		return map[string]map[string]string{}, nil
	}
	resources := make([]*sarama.ConfigResource, 0, len(topics))
	for _, topic := range topics {
		resources = append(resources, &sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	}
	return do(ctx, a, "describe topic configs", func(s *session) (map[string]map[string]string, error) {
		results, err := s.admin.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
		if err != nil {
			return nil, err
		}
		out := make(map[string]map[string]string, len(results))
		var errs []error
		for _, result := range results {
			settings, err := settingsOf(result)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			out[result.Name] = settings
		}
		return out, errors.Join(errs...)
	})
}

// SetTopicConfig sets one setting of a topic and leaves the others as they are (KIP-339: brokers from 2.3 on).
func (a *Admin) SetTopicConfig(ctx context.Context, topic, key, value string) error {
	entries := map[string]sarama.IncrementalAlterConfigsEntry{key: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
	_, err := do(ctx, a, "set "+key+" of topic "+topic, func(s *session) (struct{}, error) {
		return struct{}{}, s.admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	})
	return err
}

// BrokerConfig returns the settings of whichever broker answers first, such as min.insync.replicas, message.max.bytes,
// producer.id.expiration.ms or log.message.timestamp.type, sensitive ones left out.
func (a *Admin) BrokerConfig(ctx context.Context) (map[string]string, error) {
	return do(ctx, a, "describe broker configs", func(s *session) (map[string]string, error) {
		brokers, _, err := s.admin.DescribeCluster()
		if err != nil {
			return nil, err
		}
		errs := []error{sarama.ErrBrokerNotAvailable}
		for _, broker := range brokers {
			settings, err := s.brokerSettings(strconv.Itoa(int(broker.ID())))
			if err == nil {
				return settings, nil
			}
			errs = append([]error{err}, errs...)
		}
		return nil, errors.Join(errs...)
	})
}

// Close ends calls that are under way and closes the connections. It may be called again.
func (a *Admin) Close() error {
	a.mu.Lock()
	a.closed = true
	current := a.current
	a.current = nil
	a.mu.Unlock()
	if current != nil {
		current.links.abort()
	}
	a.calls.Wait()
	if current != nil {
		current.close()
	}
	return nil
}

// result is what a call yields.
type result[T any] struct {
	value T
	err   error
}

// do runs a call of sarama so that ctx ends the wait for it. sarama knows no contexts, so the call has a goroutine; the end of ctx breaks its
// connections, and the call ends by itself right after.
func do[T any](ctx context.Context, a *Admin, what string, call func(*session) (T, error)) (T, error) {
	var got result[T]
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return got.value, fmt.Errorf("%s on %s: %w", what, a.cfg.Name, ctx.Err())
	}
	done := make(chan result[T], 1)
	if !a.begin(func() {
		defer func() { <-a.turn }()
		var r result[T]
		r.err = a.attempt(ctx, func(s *session) (err error) {
			r.value, err = call(s)
			return err
		})
		done <- r
	}) {
		<-a.turn
		return got.value, fmt.Errorf("%s on %s: %w", what, a.cfg.Name, ErrClosed)
	}
	select {
	case got = <-done:
	case <-ctx.Done():
		got.err = ctx.Err()
	}
	if got.err != nil {
		return got.value, fmt.Errorf("%s on %s: %w", what, a.cfg.Name, got.err)
	}
	return got.value, nil
}

// begin starts a call unless the Admin is closed.
func (a *Admin) begin(call func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.calls.Go(call) // owned by Close, which waits for it
	return true
}

// attempt runs a call in the present session, and once more in a new one when that session had gone stale: brokers restart, and passwords
// rotate.
func (a *Admin) attempt(ctx context.Context, call func(*session) error) error {
	s, fresh, err := a.session(ctx)
	if err != nil {
		return err
	}
	if err = a.in(ctx, s, call); err == nil || fresh || ctx.Err() != nil || !stale(err) {
		return err
	}
	a.log.Debug("administration connection went stale", "cluster", a.cfg.Name, "err", err)
	if s, _, err = a.session(ctx); err != nil {
		return err
	}
	return a.in(ctx, s, call)
}

// in runs a call in a session, and throws the session away when the failure lies with it.
func (a *Admin) in(ctx context.Context, s *session, call func(*session) error) error {
	stop := context.AfterFunc(ctx, s.links.abort)
	defer stop()
	err := call(s)
	if err != nil && (stale(err) || s.links.broken()) {
		a.drop(s)
	}
	return err
}

// stale reports whether a new session may succeed where this one failed.
func stale(err error) bool {
	class := Classify(err)
	return class == Unreachable || class == Authentication
}

// session returns the present session or opens one; fresh tells which.
func (a *Admin) session(ctx context.Context) (s *session, fresh bool, err error) {
	a.mu.Lock()
	s = a.current
	a.mu.Unlock()
	if s != nil && !s.links.broken() {
		return s, false, nil
	}
	if s != nil {
		a.drop(s)
	}
	s, err = a.open(ctx)
	return s, true, err
}

// open makes a session. Close and the end of ctx can break it while it still connects.
func (a *Admin) open(ctx context.Context) (*session, error) {
	s := &session{links: newLinks(ctx, a.cfg)}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		s.links.abort()
		return nil, ErrClosed
	}
	a.current = s
	a.mu.Unlock()
	stop := context.AfterFunc(ctx, s.links.abort)
	defer stop()
	if err := s.connect(a.cfg); err != nil {
		a.drop(s)
		return nil, err
	}
	return s, nil
}

// drop closes a session and forgets it.
func (a *Admin) drop(s *session) {
	a.mu.Lock()
	owned := a.current == s
	if owned {
		a.current = nil
	}
	a.mu.Unlock()
	if owned { // else Close has it
		s.close()
	}
}
