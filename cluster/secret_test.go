package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// However a configuration is shown, its secrets are not.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const hidden = "hunter2"
	cfg := Config{
		Name: "sjc1", Bootstrap: []string{"a:1"},
		TLS: TLS{
			KeyPassword: hidden, TrustStore: Store{Location: "/t", Password: hidden}, KeyStore: Store{Password: hidden, Key: hidden},
		},
		SASL: SASL{Mechanism: "PLAIN", Username: "alice", Password: hidden, Token: hidden, ClientSecret: hidden},
	}
	asJSON, err := json.Marshal(cfg)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(cfg)
	require.NoError(t, err)
	var text, inJSON bytes.Buffer
	hclog.New(&hclog.LoggerOptions{Output: &text}).Info("configuration", "cluster", cfg, "password", cfg.SASL.Password)
	hclog.New(&hclog.LoggerOptions{Output: &inJSON, JSONFormat: true}).Info("configuration", "cluster", cfg, "password", cfg.SASL.Password)
	shown := map[string]string{
		"json": string(asJSON), "yaml": string(asYAML), "log": text.String(), "json log": inJSON.String(), "error": fmt.Sprint(cfg.Validate()),
		"string": cfg.SASL.Password.String(), "pointer": fmt.Sprintf("%+v", &cfg),
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		shown[verb] = fmt.Sprintf(verb, cfg)
		shown["secret "+verb] = fmt.Sprintf(verb, cfg.SASL.Password)
	}
	for how, text := range shown {
		require.NotContains(t, text, hidden, how)
		require.NotContains(t, text, fmt.Sprintf("%x", hidden), how)
	}
	require.Contains(t, shown["yaml"], "alice")
	require.Contains(t, shown["yaml"], mask)
	require.Equal(t, hidden, cfg.SASL.Password.Reveal())
}

// The native form of the interface is read as it is written there, strictly.
func TestNativeForm(t *testing.T) {
	t.Parallel()
	const text = `{name: sjc1, bootstrap: [kafka-a:9092], tls: {ca_file: /ca, cert_file: /c, key_file: /k, server_name: n}, sasl: {mechanism: SCRAM-SHA-512, username: u, password: p, token_file: /t}}`
	decoder := yaml.NewDecoder(bytes.NewBufferString(text))
	decoder.KnownFields(true)
	var got Config
	require.NoError(t, decoder.Decode(&got))
	require.Equal(t, Config{
		Name: "sjc1", Bootstrap: []string{"kafka-a:9092"}, TLS: TLS{CAFile: "/ca", CertFile: "/c", KeyFile: "/k", ServerName: "n"},
		SASL: SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: "p", TokenFile: "/t"},
	}, got)
	require.False(t, Config{}.TLS.On())
	require.True(t, got.TLS.On())
}

// Every fault of the native form names the native key.
func TestValidate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	me, other := ca.issue(t, "me"), ca.issue(t, "other")
	certFile, keyFile := write(t, "c", me.chainPEM()), write(t, "k", me.keyPEM(t, ""))
	otherKey, lockedKey := write(t, "o", other.keyPEM(t, "")), write(t, "l", me.keyPEM(t, "pw"))
	secretFile, emptyFile := write(t, "s", "secret\n"), write(t, "e", "\n")
	with := func(change func(*Config)) Config {
		cfg := Config{Name: "x", Bootstrap: []string{"a:1"}}
		change(&cfg)
		return cfg
	}
	for _, row := range []struct {
		name string
		give Config
		want []string // empty: valid
	}{
		{"plaintext", with(func(*Config) {}), nil},
		{"files", with(func(c *Config) { c.TLS = TLS{CAFile: certFile, CertFile: certFile, KeyFile: keyFile} }), nil},
		{"locked key", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: lockedKey, KeyPassword: "pw"} }), nil},
		{"password file", with(func(c *Config) { c.SASL = SASL{Mechanism: "plain", Username: "u", PasswordFile: secretFile} }), nil},
		{"no brokers", Config{SASL: SASL{Mechanism: "X"}}, []string{"bootstrap: no broker is named", `sasl.mechanism "X"`}},
		{"kerberos", with(func(c *Config) { c.SASL.Mechanism = "GSSAPI" }), []string{`sasl.mechanism "GSSAPI": Kerberos is not supported`}},
		{"key without certificate", with(func(c *Config) { c.TLS.KeyFile = keyFile }), []string{"tls.cert_file: is missing"}},
		{"certificate without key", with(func(c *Config) { c.TLS.CertFile = certFile }), []string{"tls.key_file: is missing"}},
		{"no ca", with(func(c *Config) { c.TLS.CAFile = "/nowhere" }), []string{`tls.ca_file "/nowhere": cannot be read`}},
		{"no certificate file", with(func(c *Config) { c.TLS = TLS{CertFile: "/nowhere", KeyFile: keyFile} }), []string{`tls.cert_file "/nowhere"`}},
		{"no key file", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: "/nowhere"} }), []string{`tls.key_file "/nowhere"`}},
		{"key of another", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: otherKey} }), []string{"tls.cert_file", "does not belong to key_file"}},
		{"key is no key", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: certFile} }), []string{"tls.key_file", "holds no usable private key"}},
		{"certificate is none", with(func(c *Config) { c.TLS = TLS{CertFile: keyFile, KeyFile: keyFile} }), []string{"tls.cert_file", "holds no readable certificate"}},
		{"locked key without password", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: lockedKey} }), []string{"tls.key_password: does not open"}},
		{"two authorities", with(func(c *Config) { c.TLS = TLS{CAFile: certFile, TrustStore: Store{Location: certFile}} }), []string{"tls.ca_file: is given together with tls.truststore"}},
		{"two keys", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: keyFile, KeyStore: Store{Location: keyFile}} }), []string{"tls.cert_file: is given together with tls.keystore"}},
		{"two key passwords", with(func(c *Config) { c.TLS = TLS{KeyPassword: "a", KeyPasswordFile: "b"} }), []string{"tls.key_password: is given together"}},
		{"no key password file", with(func(c *Config) { c.TLS = TLS{CertFile: certFile, KeyFile: keyFile, KeyPasswordFile: "/nowhere"} }), []string{"tls.key_password_file"}},
		{"two store passwords", with(func(c *Config) { c.TLS.TrustStore = Store{Location: "x", Password: "a", PasswordFile: "b"} }), []string{"tls.truststore.password: is given together"}},
		{"no store password file", with(func(c *Config) { c.TLS.TrustStore = Store{Location: certFile, PasswordFile: "/nowhere"} }), []string{"tls.truststore.password_file"}},
		{"credentials without mechanism", with(func(c *Config) { c.SASL.Username = "u" }), []string{"sasl.mechanism: is missing"}},
		{"two passwords", with(func(c *Config) {
			c.SASL = SASL{Mechanism: "PLAIN", Username: "u", Password: "a", PasswordFile: secretFile}
		}), []string{"sasl.password: is given together"}},
		{"no password file", with(func(c *Config) { c.SASL = SASL{Mechanism: "PLAIN", Username: "u", PasswordFile: "/nowhere"} }), []string{`sasl.password_file "/nowhere": cannot be read`}},
		{"empty password file", with(func(c *Config) { c.SASL = SASL{Mechanism: "PLAIN", Username: "u", PasswordFile: emptyFile} }), []string{"sasl.password_file", "is empty"}},
		{"token with scram", with(func(c *Config) { c.SASL = SASL{Mechanism: "SCRAM-SHA-256", Username: "u", Password: "p", Token: "t"} }), []string{"sasl.token: is of OAUTHBEARER"}},
		{"two client secrets", with(func(c *Config) {
			c.SASL = SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: "https://h/t", ClientID: "i", ClientSecret: "s", ClientSecretFile: secretFile}
		}), []string{"sasl.client_secret: is given together"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			err := row.give.Validate()
			if len(row.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, want := range row.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
