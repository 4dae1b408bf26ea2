package cluster

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newCluster starts a fake cluster and an Admin of it.
func newCluster(t *testing.T, change func(*Config), options ...kfake.Opt) (*kfake.Cluster, *Admin) {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2), kfake.SeedTopics(3, "orders")}, options...)...)
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	cfg := Config{Name: "sjc1", Bootstrap: fake.ListenAddrs()}
	if change != nil {
		change(&cfg)
	}
	return fake, newAdmin(t, cfg)
}

// newAdmin makes an Admin that the test closes.
func newAdmin(t *testing.T, cfg Config) *Admin {
	t.Helper()
	admin := NewAdmin(cfg, hclog.NewNullLogger())
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	return admin
}

func TestAdminTopics(t *testing.T) {
	t.Parallel()
	_, admin := newCluster(t, nil)
	ctx := t.Context()
	topics, err := admin.Topics(ctx)
	require.NoError(t, err)
	require.Equal(t, "orders", topics["orders"].Name)
	require.EqualValues(t, 3, topics["orders"].Partitions)
	require.Positive(t, topics["orders"].ReplicationFactor)
	require.False(t, topics["orders"].Internal)

	spec := TopicSpec{Name: "payments", Partitions: 2, ReplicationFactor: -1, Configs: map[string]string{"max.message.bytes": "4242", "retention.ms": "99"}}
	require.NoError(t, admin.CreateTopic(ctx, spec))
	require.NoError(t, admin.CreateTopic(ctx, spec), "a topic that is there is no error")
	configs, err := admin.TopicConfigs(ctx, "payments", "orders")
	require.NoError(t, err)
	require.Len(t, configs, 2)
	require.Equal(t, "4242", configs["payments"]["max.message.bytes"])
	require.Equal(t, "99", configs["payments"]["retention.ms"])
	require.NotEmpty(t, configs["orders"])

	require.NoError(t, admin.CreatePartitions(ctx, "payments", 5))
	require.NoError(t, admin.CreatePartitions(ctx, "payments", 5), "as many is no error")
	require.NoError(t, admin.CreatePartitions(ctx, "payments", 1), "more is no error")
	topics, err = admin.Topics(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, topics["payments"].Partitions)
}

func TestAdminGroupNotes(t *testing.T) {
	t.Parallel()
	_, admin := newCluster(t, nil)
	keepNotes(t, admin, "orders")
}

// keepNotes writes, reads, changes and takes away notes of a topic.
func keepNotes(t *testing.T, admin *Admin, topic string) {
	t.Helper()
	ctx := t.Context()
	group := "notes." + topic
	groups, err := admin.Groups(ctx, group)
	require.NoError(t, err)
	require.Empty(t, groups)
	longest := strings.Repeat("x", 4096) // what brokers take unless they are told otherwise
	for _, note := range []string{longest, "another", ""} {
		require.Eventually(t, func() bool { // a broker that has no offsets yet makes their topic first
			err := admin.SaveGroupNotes(ctx, group, map[string]string{topic: note})
			return err == nil || Classify(err) != Unreachable
		}, 30*time.Second, 100*time.Millisecond)
		notes, err := admin.GroupNotes(ctx, group)
		require.NoError(t, err)
		require.Equal(t, note, notes[topic])
		groups, err = admin.Groups(ctx, group)
		require.NoError(t, err)
		require.Equal(t, []string{group}, groups)
	}
	err = admin.SaveGroupNotes(ctx, group, map[string]string{topic: "kept", "nosuch": "no"})
	require.Equal(t, NotFound, Classify(err), "%v", err)
	notes, err := admin.GroupNotes(ctx, group)
	require.NoError(t, err)
	require.Equal(t, map[string]string{topic: "kept"}, notes, "one topic that fails hides no other")
}

// TestGroupsThatMayNotBeSeenAreNoEmptyList: brokers leave out what they may not show, which must not be taken for nothing.
func TestGroupsThatMayNotBeSeenAreNoEmptyList(t *testing.T) {
	t.Parallel()
	fake, admin := newCluster(t, nil)
	fake.ControlKey(int16(kmsg.DescribeGroups), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req, ok := r.(*kmsg.DescribeGroupsRequest)
		if !ok {
			return nil, nil, false
		}
		resp := &kmsg.DescribeGroupsResponse{Version: req.Version}
		one := kmsg.NewDescribeGroupsResponseGroup()
		one.Group, one.ErrorCode = req.Groups[0], kerr.GroupAuthorizationFailed.Code
		resp.Groups = append(resp.Groups, one)
		return resp, nil, true
	})
	_, err := admin.Groups(t.Context(), "notes.")
	require.Equal(t, Authorization, Classify(err), "%v", err)
}

func TestNotesAreCommittedInPortions(t *testing.T) {
	t.Parallel()
	notes := map[string]string{}
	for i := range 300 {
		notes[strconv.Itoa(1000+i)] = strings.Repeat("x", 4096)
	}
	var all []string
	for _, topics := range portions(notes) {
		size := 0
		for _, topic := range topics {
			size += len(notes[topic])
		}
		require.LessOrEqual(t, size, portionBytes)
		all = append(all, topics...)
	}
	require.Len(t, all, 300)
	require.True(t, slices.IsSorted(all))
	require.Less(t, len(portions(notes)), 10)
}

func TestAdminTriesWithoutDoing(t *testing.T) {
	t.Parallel()
	_, admin := newCluster(t, nil)
	ctx := t.Context()
	require.NoError(t, admin.TryTopic(ctx, TopicSpec{Name: "payments", Partitions: 2, ReplicationFactor: -1}))
	require.NoError(t, admin.TryPartitions(ctx, "orders", 9))
	require.NoError(t, admin.TryPartitions(ctx, "orders", 1), "more is no error")
	require.Equal(t, Invalid, Classify(admin.TryTopic(ctx, TopicSpec{Name: "wide", Partitions: 1, ReplicationFactor: 9})))
	require.Equal(t, NotFound, Classify(admin.TryPartitions(ctx, "nosuch", 2)))
	topics, err := admin.Topics(ctx)
	require.NoError(t, err)
	require.NotContains(t, topics, "payments")
	require.EqualValues(t, 3, topics["orders"].Partitions)
}

func TestAdminBrokerConfig(t *testing.T) {
	t.Parallel()
	_, admin := newCluster(t, nil, kfake.BrokerConfigs(map[string]string{"message.max.bytes": "123456"}))
	got, err := admin.BrokerConfig(t.Context())
	require.NoError(t, err)
	require.Equal(t, "123456", got["message.max.bytes"])
}

func TestAdminFailures(t *testing.T) {
	t.Parallel()
	fake, admin := newCluster(t, nil)
	ctx := t.Context()
	configs, err := admin.TopicConfigs(ctx, "orders", "nosuch")
	require.Equal(t, NotFound, Classify(err), "%v", err)
	require.ErrorContains(t, err, "describe topic configs on sjc1: describe nosuch")
	require.Contains(t, configs, "orders", "the others are returned")
	configs, err = admin.TopicConfigs(ctx)
	require.NoError(t, err)
	require.Empty(t, configs)
	require.Equal(t, NotFound, Classify(admin.CreatePartitions(ctx, "nosuch", 2)))

	for code, want := range map[*kerr.Error]Class{
		kerr.TopicAuthorizationFailed: Authorization, kerr.ClusterAuthorizationFailed: Authorization, kerr.PolicyViolation: Invalid, kerr.InvalidReplicationFactor: Invalid,
	} {
		fake.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error, bool) {
			response, _ := request.ResponseKind().(*kmsg.CreateTopicsResponse)
			topic := kmsg.NewCreateTopicsResponseTopic()
			topic.Topic, topic.ErrorCode, topic.ErrorMessage = "x", code.Code, new("told by the broker")
			response.Topics = append(response.Topics, topic)
			return response, nil, true
		})
		err := admin.CreateTopic(ctx, TopicSpec{Name: "x", Partitions: 1, ReplicationFactor: 1})
		require.Equal(t, want, Classify(err), "%v", err)
		require.ErrorContains(t, err, "told by the broker")
	}
}

// A mirror of a thousand topics asked a thousand times, one after the other, at its first start.
func TestManyTopicsAreCreatedWithFewRequests(t *testing.T) {
	t.Parallel()
	fake, admin := newCluster(t, nil)
	var requests, widest atomic.Int32
	fake.ControlKey(int16(kmsg.CreateTopics), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		requests.Add(1)
		if create, ok := request.(*kmsg.CreateTopicsRequest); ok {
			widest.Store(max(widest.Load(), int32(len(create.Topics))))
		}
		return nil, nil, false
	})
	specs := []TopicSpec{{Name: "orders", Partitions: 1, ReplicationFactor: 1}, {Name: "wide", Partitions: 1, ReplicationFactor: 9}, {Name: "large", Partitions: mostPartitions + 1, ReplicationFactor: 1}}
	for i := range 2*mostTopics - 1 {
		specs = append(specs, TopicSpec{Name: "topic-" + strconv.Itoa(i), Partitions: 2, ReplicationFactor: 1})
	}
	failed := admin.CreateTopics(t.Context(), specs...)
	require.Len(t, failed, 1, "that one is there is no error, and one that is refused hides no other: %v", failed)
	require.Equal(t, Invalid, Classify(failed["wide"]), "%v", failed["wide"])
	require.ErrorContains(t, failed["wide"], "create topic wide on sjc1")
	require.LessOrEqual(t, requests.Load(), int32(5))
	require.LessOrEqual(t, widest.Load(), int32(mostTopics))
	topics, err := admin.Topics(t.Context())
	require.NoError(t, err)
	require.Len(t, topics, len(specs)-1)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Len(t, admin.CreateTopics(ctx, specs...), len(specs), "of none is it known")
}

// Brokers say the same of a topic that has the partitions already and of a number that they do not like: only the former is no error.
func TestAdminRefusedPartitions(t *testing.T) {
	t.Parallel()
	fake, admin := newCluster(t, nil)
	fake.ControlKey(int16(kmsg.CreatePartitions), func(request kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		response, _ := request.ResponseKind().(*kmsg.CreatePartitionsResponse)
		topic := kmsg.NewCreatePartitionsResponseTopic()
		topic.Topic, topic.ErrorCode = "orders", kerr.InvalidPartitions.Code
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
	require.NoError(t, admin.CreatePartitions(t.Context(), "orders", 3))
	err := admin.CreatePartitions(t.Context(), "orders", 9)
	require.Equal(t, Invalid, Classify(err), "%v", err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, admin.CreatePartitions(ctx, "orders", 9), context.DeadlineExceeded)
}

// Each way of authenticating works with the right secret, and is told apart from other failures with a wrong one.
func TestAdminAuthentication(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			path := write(t, "password", "wr0ng")
			fake, admin := newCluster(t, func(c *Config) {
				c.SASL = SASL{Mechanism: mechanism, Username: "alice", PasswordFile: path}
			}, kfake.EnableSASL(), kfake.Superuser(mechanism, "alice", "r1ght"))
			_, err := admin.Topics(t.Context())
			require.Error(t, err, "the fake hangs up on a wrong password")
			require.NotContains(t, err.Error(), "wr0ng")

			var refuse atomic.Bool // as brokers do: with an answer that says why
			refuse.Store(true)
			fake.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
				fake.KeepControl()
				response, _ := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				response.ErrorCode, response.ErrorMessage = kerr.SaslAuthenticationFailed.Code, new("who are you")
				return response, nil, refuse.Load()
			})
			_, err = admin.Topics(t.Context())
			require.Equal(t, Authentication, Classify(err), "%v", err)
			refuse.Store(false)

			require.NoError(t, os.WriteFile(path, []byte("r1ght\n"), 0o600))
			topics, err := admin.Topics(t.Context())
			require.NoError(t, err, "the password is read again")
			require.Contains(t, topics, "orders")
		})
	}
}

func TestAdminOverTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	server := &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "broker").tls()}}
	caFile := write(t, "ca", pemOf(ca.cert))
	fake, admin := newCluster(t, func(c *Config) {
		c.TLS = TLS{CAFile: caFile, ServerName: "broker"}
		c.SASL = SASL{Mechanism: "PLAIN", Username: "alice", Password: "r1ght"}
	}, kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser("PLAIN", "alice", "r1ght"))
	_, err := admin.Topics(t.Context())
	require.NoError(t, err)

	other := newAdmin(t, Config{Name: "x", Bootstrap: fake.ListenAddrs(), TLS: TLS{Enabled: true}})
	_, err = other.Topics(t.Context())
	require.Equal(t, Authentication, Classify(err), "%v", err)
}

// An Admin whose cluster was down connects when the cluster is back, without being told.
func TestAdminReconnects(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	require.NoError(t, err)
	addresses := fake.ListenAddrs()
	_, text, err := net.SplitHostPort(addresses[0])
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	admin := newAdmin(t, Config{Name: "sjc1", Bootstrap: addresses})
	_, err = admin.Topics(t.Context())
	require.NoError(t, err)

	fake.Close()
	_, err = admin.Topics(t.Context())
	require.Equal(t, Unreachable, Classify(err), "%v", err)

	fake, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(1, "back"))
	require.NoError(t, err)
	defer fake.Close()
	topics, err := admin.Topics(t.Context())
	require.NoError(t, err)
	require.Contains(t, topics, "back")
}

// A session that broke between two calls is replaced within the second, which does not fail.
func TestAdminReplacesStaleSession(t *testing.T) {
	t.Parallel()
	_, admin := newCluster(t, nil)
	_, err := admin.Topics(t.Context())
	require.NoError(t, err)
	links := admin.current.links
	links.mu.Lock()
	require.NotEmpty(t, links.open)
	for one := range links.open {
		require.NoError(t, one.Conn.Close())
	}
	links.mu.Unlock()
	_, err = admin.Topics(t.Context())
	require.NoError(t, err)
	require.NotSame(t, links, admin.current.links)
}

// silent is a listener that accepts and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var open sync.WaitGroup
	open.Go(func() { // owned by the cleanup below
		var conns []net.Conn
		defer func() {
			for _, conn := range conns {
				_ = conn.Close()
			}
		}()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return listener.Addr().String()
}

// The end of the context ends the wait, and the call of sarama behind it, though its broker never answers.
func TestAdminHonoursContext(t *testing.T) {
	t.Parallel()
	admin := newAdmin(t, Config{Name: "sjc1", Bootstrap: []string{silent(t)}})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := admin.Topics(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 3*time.Second)
	require.Eventually(t, func() bool { return len(admin.turn) == 0 }, 5*time.Second, 10*time.Millisecond, "the call behind it ends as well")
}

// While one call hangs, others wait for their turn only as long as their contexts allow.
func TestAdminTurnsHonourContext(t *testing.T) {
	t.Parallel()
	admin := newAdmin(t, Config{Name: "sjc1", Bootstrap: []string{silent(t)}})
	hanging, stop := context.WithCancel(t.Context())
	var call sync.WaitGroup
	call.Go(func() { _, _ = admin.Topics(hanging) })
	require.Eventually(t, func() bool { return len(admin.turn) == 1 }, 5*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := admin.BrokerConfig(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	stop()
	call.Wait()
}

// Close ends a call that hangs, at once.
func TestAdminCloseEndsCalls(t *testing.T) {
	t.Parallel()
	admin := NewAdmin(Config{Name: "sjc1", Bootstrap: []string{silent(t)}}, hclog.NewNullLogger())
	failed := make(chan error, 1)
	var call sync.WaitGroup
	call.Go(func() {
		_, err := admin.Topics(t.Context())
		failed <- err
	})
	require.Eventually(t, func() bool {
		admin.mu.Lock()
		defer admin.mu.Unlock()
		return admin.current != nil
	}, 5*time.Second, time.Millisecond)
	began := time.Now()
	require.NoError(t, admin.Close())
	require.Less(t, time.Since(began), 5*time.Second)
	call.Wait()
	require.Error(t, <-failed)
	require.NoError(t, admin.Close())
	_, err := admin.Topics(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

// A configuration that is wrong shows at the first call, as such.
func TestAdminWrongConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"mechanism":  {Bootstrap: []string{"127.0.0.1:1"}, SASL: SASL{Mechanism: "GSSAPI"}},
		"no brokers": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newAdmin(t, cfg).Topics(t.Context())
			require.Equal(t, Invalid, Classify(err), "%v", err)
		})
	}
}

// Tokens reach sarama through the same source as the data path.
func TestSaramaTokens(t *testing.T) {
	t.Parallel()
	links := newLinks(t.Context(), Config{})
	defer links.abort()
	out, err := saramaConfig(Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenFile: write(t, "t", "t0ken\n"), Extensions: map[string]string{"a": "b"}}}, links)
	require.NoError(t, err)
	token, err := out.Net.SASL.TokenProvider.Token()
	require.NoError(t, err)
	require.Equal(t, "t0ken", token.Token)
	require.Equal(t, map[string]string{"a": "b"}, token.Extensions)
	require.NoError(t, out.Validate())
}
