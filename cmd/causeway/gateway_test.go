package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestGatewayTellsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.pem")
	code, _, stderr := command(t.Context(), "gateway", "--upstream", "kafka", "--listen", ":9092", "--port-range", "9000-9200", "--max-connections", "0",
		"--max-connections-of", "nobody=3", "--tls-cert", missing, "--tls-key", missing, "--idle-timeout", "-1s", "--log-level", "loud")
	require.Equal(t, 1, code)
	for _, line := range []string{
		`--upstream "kafka": must be HOST:PORT`,
		`--advertise "": must be the host that clients can reach`,
		`--port-range "9000-9200": must not hold 9092, where clients find the cluster`,
		`--max-connections "0": must be more than 0`,
		`--max-connections-of "nobody=3": must be an IP address, = and a number of at least 0`,
		`--tls-cert "` + missing + `": `,
		`--idle-timeout "-1s": must be more than 0s`,
		`log.level (--log-level) "loud": `,
	} {
		require.Contains(t, stderr, line)
	}
	for line, args := range map[string][]string{
		`--upstream "": must name at least one broker`:              nil,
		`--port-range "9-8": must be FIRST-LAST`:                    {"--port-range", "9-8"},
		`--port-range "1-2": has no meaning with --broker-names`:    {"--port-range", "1-2", "--broker-names", "b{id}"},
		`--broker-names "b{id}": needs --tls-cert`:                  {"--broker-names", "b{id}"},
		`--broker-names "b": must have {id} in it once`:             {"--broker-names", "b"},
		`--tls-cert "": must be given with --tls-key`:               {"--tls-key", "k"},
		`--tls-client-ca "c": needs --tls-cert`:                     {"--tls-client-ca", "c"},
		`--upstream-config "none": `:                                {"--upstream-config", "none"},
		`--advertise "gate:1": must be a host without a port`:       {"--advertise", "gate:1"},
		`--listen "127.0.0.1:65535": has no ports behind it`:        {"--upstream", "a:1", "--advertise", "b", "--listen", "127.0.0.1:65535"},
		`--listen "256.0.0.1:1": `:                                  {"--upstream", "a:1", "--advertise", "b", "--listen", "256.0.0.1:1"},
		`--max-connections-of "1.2.3.4=-1": must be an IP address,`: {"--max-connections-of", "1.2.3.4=-1"},
	} {
		code, _, stderr = command(t.Context(), append([]string{"gateway"}, args...)...)
		require.Equal(t, 1, code, line)
		require.Contains(t, stderr, line)
	}
}

func TestGatewayTakesItsSettingsFromAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("upstream: [kafka, other:9092]\nlisten: :9092\nport_range: 9000-9200\nmax_connections: 0\nmax_connections_of: {nobody: 3}\n" +
		"idle_timeout: 5m\nlog_level: loud\n")
	code, _, stderr := command(t.Context(), "gateway", "--config", path, "--idle-timeout", "-1s")
	require.Equal(t, 1, code)
	for _, line := range []string{
		`--upstream "kafka": must be HOST:PORT`, `--port-range "9000-9200": must not hold 9092`, `--max-connections "0": must be more than 0`,
		`--max-connections-of "nobody=3": must be an IP address`, `--idle-timeout "-1s": must be more than 0s`, `"loud": `,
	} {
		require.Contains(t, stderr, line)
	}
	write("upstreams: [a]\n")
	code, _, stderr = command(t.Context(), "gateway", "--config", path)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `upstreams: unknown key, did you mean "upstream"?`)
	code, _, stderr = command(t.Context(), "gateway", "--config", path+".none")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--config")
}

// TestGatewayFileHasEachFlag: a setting that only one of the two knows would be a trap.
func TestGatewayFileHasEachFlag(t *testing.T) {
	t.Parallel()
	cmd := newGateway(io.Discard, io.Discard)
	inFile := map[string]bool{"config": true, "help": true}
	for field := range reflect.TypeFor[gatewayFile]().Fields() {
		name := strings.ReplaceAll(field.Tag.Get("yaml"), "_", "-")
		inFile[name] = true
		require.NotNil(t, cmd.Flags().Lookup(name), name)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { require.True(t, inFile[f.Name], f.Name) })
}

func TestGatewayServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	c := embedded(t, "orders")
	cert, key := testkit.NewAuthority(t).Files(t, "gateway")
	for name, more := range map[string][]string{"plain": nil, "secure": {"--tls-cert", cert, "--tls-key", key}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append([]string{
				"gateway", "--upstream", c.ListenAddrs()[0], "--listen", "127.0.0.1:0", "--advertise", "127.0.0.1", "--metrics", "127.0.0.1:0",
			}, more...)...)
			page := p.api(t)
			code, body := get(t, page+"/healthz")
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, "ok\n", body)
			front := regexp.MustCompile(`will show \S+ at (\S+) as `).FindStringSubmatch(p.out.String())
			require.NotNil(t, front)
			options := []kgo.Opt{kgo.SeedBrokers(front[1]), kgo.RetryTimeout(time.Second)}
			if more == nil {
				cl, err := kgo.NewClient(options...)
				require.NoError(t, err)
				defer cl.Close()
				require.NoError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("one")}).FirstErr())
				_, body = get(t, page+"/metrics")
				require.Contains(t, body, `causeway_gateway_requests_total{request="Produce",route="gateway"} 1`)
			}
			require.Equal(t, 0, p.end(t), p.errs.String())
		})
	}
}
