package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// startSecure starts a broker that takes all four mechanisms over TLS.
func startSecure(t *testing.T, version string) *kafkatest.Cluster {
	t.Helper()
	return kafkatest.Start(t, kafkatest.Options{Version: version, Secure: true, Heap: "384m", Config: map[string]string{
		"listener.name.secure.sasl.enabled.mechanisms":      "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"listener.name.secure.oauthbearer.sasl.jaas.config": oauthModule + `unsecuredLoginStringClaim_sub="broker";`,
	}})
}

// Real brokers of both kinds let us in with each mechanism, say no in a way that is understood, and do what is asked of them.
func TestRealBrokers(t *testing.T) {
	for _, version := range []string{kafkatest.Kafka3, kafkatest.Kafka4} {
		t.Run(version, func(t *testing.T) { // one broker at a time: each takes a core while it starts
			secure := startSecure(t, version).Secure()
			for mechanism, jaas := range map[string]string{
				"PLAIN":         plainModule + `username="` + secure.User + `" password="` + secure.Password + `";`,
				"SCRAM-SHA-256": scramModule + `username="` + secure.User + `" password="` + secure.Password + `";`,
				"SCRAM-SHA-512": scramModule + `username="` + secure.User + `" password="` + secure.Password + `";`,
				"OAUTHBEARER":   oauthModule + `unsecuredLoginStringClaim_sub="bob";`,
			} {
				cfg, err := FromProperties("real", map[string]string{
					"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas,
					"ssl.truststore.type": "PEM", "ssl.truststore.location": secure.CAFile,
				})
				require.NoError(t, err)
				cfg.Bootstrap = secure.Bootstrap
				administer(t, newAdmin(t, cfg), "made-with-"+mechanism)
			}
			for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
				_, err := newAdmin(t, Config{
					Name: "real", Bootstrap: secure.Bootstrap, TLS: TLS{CAFile: secure.CAFile, CertFile: secure.CertFile, KeyFile: secure.KeyFile},
					SASL: SASL{Mechanism: mechanism, Username: secure.User, Password: "wr0ng"},
				}).Topics(t.Context())
				require.Equal(t, Authentication, Classify(err), "%v", err)
				require.NotContains(t, err.Error(), "wr0ng")
			}
			_, err := newAdmin(t, Config{Name: "real", Bootstrap: secure.Bootstrap, TLS: TLS{CAFile: secure.CAFile}, SASL: SASL{Mechanism: "OAUTHBEARER", Token: "a.b.c"}}).Topics(t.Context())
			require.Equal(t, Authentication, Classify(err), "%v", err)
		})
	}
}

// administer does everything that an Admin can.
func administer(t *testing.T, admin *Admin, topic string) {
	t.Helper()
	ctx := t.Context()
	spec := TopicSpec{Name: topic, Partitions: 2, ReplicationFactor: -1, Configs: map[string]string{"compression.type": "producer", "max.message.bytes": "4242"}}
	require.NoError(t, admin.CreateTopic(ctx, spec))
	require.NoError(t, admin.CreateTopic(ctx, spec))
	require.NoError(t, admin.CreatePartitions(ctx, topic, 3))
	require.NoError(t, admin.CreatePartitions(ctx, topic, 3))
	require.NoError(t, admin.CreatePartitions(ctx, topic, 2))
	require.Eventually(t, func() bool {
		topics, err := admin.Topics(ctx)
		return err == nil && topics[topic] == Topic{Name: topic, Partitions: 3, ReplicationFactor: 1}
	}, 20*time.Second, 50*time.Millisecond)
	configs, err := admin.TopicConfigs(ctx, topic)
	require.NoError(t, err)
	require.Equal(t, "4242", configs[topic]["max.message.bytes"])
	require.Equal(t, "CreateTime", configs[topic]["message.timestamp.type"])
	broker, err := admin.BrokerConfig(ctx)
	require.NoError(t, err)
	for _, key := range []string{"min.insync.replicas", "message.max.bytes", "producer.id.expiration.ms", "compression.type", "log.message.timestamp.type"} {
		require.NotEmpty(t, broker[key], key)
	}

	keepNotes(t, admin, topic)

	require.Equal(t, NotFound, Classify(admin.CreatePartitions(ctx, "nosuch", 2)))
	_, err = admin.TopicConfigs(ctx, "nosuch")
	require.Equal(t, NotFound, Classify(err), "%v", err)
	require.Equal(t, Invalid, Classify(admin.CreateTopic(ctx, TopicSpec{Name: "in valid", Partitions: 1, ReplicationFactor: 1})))
	require.Equal(t, Invalid, Classify(admin.CreateTopic(ctx, TopicSpec{Name: "wide", Partitions: 1, ReplicationFactor: 9})))
	err = admin.CreateTopic(ctx, TopicSpec{Name: "odd", Partitions: 1, ReplicationFactor: 1, Configs: map[string]string{"no.such": "1"}})
	require.Equal(t, Invalid, Classify(err), "%v", err)
}
