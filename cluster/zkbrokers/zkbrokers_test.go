package zkbrokers

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func TestMain(m *testing.M) { kafkatest.Main(m) }

func TestParse(t *testing.T) {
	for _, row := range []struct{ name, data, want string }{
		{"classic", `{"version":4,"host":"a","port":9092,"endpoints":["PLAINTEXT://a:9092"]}`, "a:9092"},
		{"no endpoints", `{"version":1,"host":"a","port":9092}`, "a:9092"},
		{"named listener", `{"endpoints":["TLS://a:9093","IN://b:9092"],"listener_security_protocol_map":{"TLS":"SSL","IN":"PLAINTEXT"},"host":null,"port":-1}`, "b:9092"},
		{"ipv6", `{"endpoints":["PLAINTEXT://[::1]:9092"]}`, "[::1]:9092"},
		{"encrypted only", `{"endpoints":["SSL://a:9093"],"host":null,"port":-1}`, ""},
		{"cut short", `{"host":"a","po`, ""},
		{"empty", ``, ""},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, parse([]byte(row.data))) })
	}
}

func TestBrokersOfAClusterBelowAChroot(t *testing.T) {
	z := kafkatest.SharedZooKeeper(t)
	conn, _, err := zk.Connect([]string{z.Addr()}, 10*time.Second, zk.WithLogger(silent{}))
	require.NoError(t, err)
	defer conn.Close()
	for _, path := range []string{"/kafka", "/kafka/brokers", "/kafka/brokers/ids"} {
		require.Eventually(t, func() bool { // a server that has just been started refuses the first ones
			_, err = conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			return err == nil
		}, 20*time.Second, 50*time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err = Brokers(ctx, z.Addr()+"/kafka")
	require.ErrorIs(t, err, ErrNone)
	for id, data := range map[string]string{"1": `{"host":"b","port":9092}`, "2": `{"host":"a","port":9092}`, "3": `{`} {
		_, err = conn.Create("/kafka/brokers/ids/"+id, []byte(data), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	brokers, err := Brokers(ctx, z.Addr()+"/kafka/")
	require.NoError(t, err)
	require.Equal(t, []string{"a:9092", "b:9092"}, brokers)
}

func TestZooKeeperThatIsNotThereEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Brokers(ctx, "127.0.0.1:1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
