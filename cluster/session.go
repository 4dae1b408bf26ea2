package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/sasl"
)

// adminTimeout is how long the controller may take to carry out a change; its answer may take a little longer to arrive.
const adminTimeout = 20 * time.Second

// session is one sarama client with the connections it opened.
type session struct {
	admin  sarama.ClusterAdmin // nil until connect succeeded
	client sarama.Client       // admin's own
	links  *links
}

// connect opens sarama's client. On failure nothing of it is left.
func (s *session) connect(cfg Config) error {
	settings, err := saramaConfig(cfg, s.links)
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(cfg.Bootstrap, settings)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if s.admin, err = sarama.NewClusterAdminFromClient(client); err != nil {
		s.admin = nil
		return errors.Join(fmt.Errorf("find controller: %w", err), client.Close())
	}
	s.client = client
	return nil
}

// close ends the client. The links go first: sarama waits for open requests otherwise.
func (s *session) close() {
	s.links.abort()
	if s.admin != nil {
		_ = s.admin.Close() // it closes connections that are closed already
	}
}

// createTopics sends one request, which sarama's ClusterAdmin can't for more than one topic, and gives the errors of those that failed.
func (s *session) createTopics(details map[string]*sarama.TopicDetail, try bool) (map[string]error, error) {
	controller, err := s.client.Controller()
	if err != nil {
		return nil, err
	}
	response, err := controller.CreateTopics(sarama.NewCreateTopicsRequest(s.client.Config().Version, details, adminTimeout, try))
	if err != nil {
		return nil, err
	}
	failed := map[string]error{}
	for name := range details {
		switch answer := response.TopicErrors[name]; {
		case answer == nil:
			failed[name] = sarama.ErrIncompleteResponse
		case errors.Is(answer.Err, sarama.ErrNotController):
			return nil, answer // of all of them: a new session finds the new one
		case answer.Err != sarama.ErrNoError && !errors.Is(answer.Err, sarama.ErrTopicAlreadyExists):
			failed[name] = answer
		}
	}
	return failed, nil
}

// hasPartitions reports whether a topic has at least so many partitions. A broker learns of new ones a moment after the controller made them,
// so it is asked again for a while.
func (s *session) hasPartitions(ctx context.Context, topic string, count int32) bool {
	const every, within = 100 * time.Millisecond, 5 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for range within / every {
		described, err := s.admin.DescribeTopics([]string{topic})
		if err != nil {
			return false
		}
		if len(described) == 1 && len(described[0].Partitions) >= int(count) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return false
}

// brokerSettings reads one broker's settings.
func (s *session) brokerSettings(id string) (map[string]string, error) {
	resource := &sarama.ConfigResource{Type: sarama.BrokerResource, Name: id}
	results, err := s.admin.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, sarama.ErrIncompleteResponse
	}
	return settingsOf(results[0])
}

// settingsOf turns sarama's answer into a map; values that brokers hide are left out.
func settingsOf(result *sarama.ConfigResourceResult) (map[string]string, error) {
	if result.ErrorCode != sarama.ErrNoError {
		return nil, fmt.Errorf("describe %s: %w", result.Name, result.ErrorCode)
	}
	settings := make(map[string]string, len(result.Configs))
	for _, entry := range result.Configs {
		if !entry.Sensitive {
			settings[entry.Name] = entry.Value
		}
	}
	return settings, nil
}

// saramaConfig translates a configuration. TLS is done by the dialer, so that sarama and the data path share it.
func saramaConfig(cfg Config, dialer *links) (*sarama.Config, error) {
	out := sarama.NewConfig()
	out.ClientID = cfg.clientID()
	out.RackID = cfg.ClientRack
	out.Net.Proxy.Enable = true
	out.Net.Proxy.Dialer = dialer
	out.Admin.Timeout = adminTimeout
	out.Admin.Retry.Max = 3
	out.Metadata.RefreshFrequency = 0 // each call asks anew; nothing runs between calls
	out.Metadata.Retry.Max = 1
	out.Metadata.AllowAutoTopicCreation = false
	mechanism, err := cfg.Mechanism()
	if err != nil || mechanism == nil {
		return out, err
	}
	auth := &out.Net.SASL
	auth.Enable = true
	auth.Version = sarama.SASLHandshakeV1
	auth.Mechanism = sarama.SASLMechanism(mechanism.Name())
	auth.User = cfg.SASL.Username
	switch mechanism.Name() {
	case mechanismPlain:
		if auth.Password, err = cfg.SASL.Password.orFile(cfg.SASL.PasswordFile); err != nil {
			return nil, err
		}
	case mechanismOAuth:
		auth.TokenProvider = &tokens{source: cfg.tokenSource(), extensions: cfg.SASL.Extensions, links: dialer}
	default:
		auth.Password = mask // sarama wants one; the mechanism has its own
		auth.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{mechanism: mechanism, links: dialer} }
	}
	return out, nil
}

// links is the dialer of one session. It remembers the connections so that all of them can be broken at once.
type links struct {
	cfg    Config
	during func(func(context.Context) error) error // runs something within the session's life

	mu      sync.Mutex // guards the two below
	open    map[*link]struct{}
	aborted bool

	cancel context.CancelFunc
}

// newLinks makes the dialer. It outlives ctx, whose values it keeps.
func newLinks(ctx context.Context, cfg Config) *links {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &links{
		cfg: cfg, open: map[*link]struct{}{}, cancel: cancel,
		during: func(run func(context.Context) error) error { return run(life) },
	}
}

// Dial opens a connection for sarama.
func (l *links) Dial(_, address string) (net.Conn, error) {
	var conn net.Conn
	err := l.during(func(ctx context.Context) (err error) {
		conn, err = l.cfg.Dial(ctx, address)
		return err
	})
	if err != nil {
		return nil, err
	}
	one := &link{Conn: conn, of: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.open[one] = struct{}{}
	return one, nil
}

// abort breaks all connections, present and future. It may be called again.
func (l *links) abort() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aborted = true
	for one := range l.open {
		_ = one.Conn.Close()
	}
	clear(l.open)
}

// broken reports whether abort was called.
func (l *links) broken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.aborted
}

// link is one connection.
type link struct {
	net.Conn
	of *links
}

// Close closes the connection and forgets it.
func (c *link) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// tokens gives sarama OAUTHBEARER tokens.
type tokens struct {
	source     func(context.Context) (string, error)
	extensions map[string]string
	links      *links
}

// Token returns the token for one connection.
func (t *tokens) Token() (*sarama.AccessToken, error) {
	var text string
	err := t.links.during(func(ctx context.Context) (err error) {
		text, err = t.source(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &sarama.AccessToken{Token: text, Extensions: t.extensions}, nil
}

// scramClient lets sarama speak SCRAM through the mechanism that the data path uses.
type scramClient struct {
	mechanism sasl.Mechanism
	links     *links

	conversation sasl.Session
	first        []byte
	done         bool
}

// Begin starts a conversation; user and password are the mechanism's own.
func (c *scramClient) Begin(_, _, _ string) error {
	return c.links.during(func(ctx context.Context) (err error) {
		c.conversation, c.first, err = c.mechanism.Authenticate(ctx, "")
		return err
	})
}

// Step answers the broker.
func (c *scramClient) Step(challenge string) (string, error) {
	if first := c.first; first != nil {
		c.first = nil
		return string(first), nil
	}
	done, answer, err := c.conversation.Challenge([]byte(challenge))
	c.done = done
	if err != nil {
		return "", &AuthenticationError{Mechanism: c.mechanism.Name(), Err: err}
	}
	return string(answer), nil
}

// Done reports whether the conversation is over.
func (c *scramClient) Done() bool { return c.done }

// AuthenticationError tells that the broker and we did not agree on who is who.
type AuthenticationError struct {
	Mechanism string
	Err       error
}

// Error names the mechanism.
func (e *AuthenticationError) Error() string {
	return "authenticate with " + strings.ToUpper(e.Mechanism) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *AuthenticationError) Unwrap() error { return e.Err }
