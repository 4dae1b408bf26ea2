package cluster

import (
	"crypto/tls"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	plainModule = "org.apache.kafka.common.security.plain.PlainLoginModule required "
	scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule required "
	oauthModule = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
)

// saslWith returns properties of SASL_PLAINTEXT.
func saslWith(mechanism, jaas string, more ...string) map[string]string {
	p := map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// sslWith returns properties of SSL.
func sslWith(more ...string) map[string]string {
	p := map[string]string{"security.protocol": "SSL"}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// Every key that is understood has a row.
func TestFromPropertiesUnderstands(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	me := ca.issue(t, "me")
	caFile := write(t, "ca.pem", pemOf(ca.cert))
	trustFile := write(t, "trust.p12", ca.trustPKCS12(t))
	keyFile := write(t, "me.jks", me.jks(t, "k3y-secret"))
	encrypted := me.keyPEM(t, "k3y-secret")
	tokenFile := write(t, "token", "t0ken\n")

	for _, row := range []struct {
		name string
		give map[string]string
		want Config
	}{
		{"nothing", nil, Config{}},
		{"addresses", map[string]string{"bootstrap.servers": "a:1, b:2,", "client.id": "me", "client.rack": "r1"}, Config{Bootstrap: []string{"a:1", "b:2"}, ClientID: "me", ClientRack: "r1"}},
		{"plaintext", map[string]string{"security.protocol": "PLAINTEXT"}, Config{}},
		{"ssl with the system's authorities", sslWith(), Config{TLS: TLS{Enabled: true}}},
		{"pem trust store file", sslWith("ssl.truststore.location", caFile, "ssl.truststore.type", "PEM"), Config{TLS: TLS{Enabled: true, TrustStore: Store{Location: caFile, Type: "PEM"}}}},
		{"pkcs12 trust store", sslWith("ssl.truststore.location", trustFile, "ssl.truststore.type", "PKCS12", "ssl.truststore.password", storePassword), Config{TLS: TLS{Enabled: true, TrustStore: Store{Location: trustFile, Type: "PKCS12", Password: storePassword}}}},
		{"inline trust store", sslWith("ssl.truststore.certificates", pemOf(ca.cert), "ssl.truststore.type", "PEM"), Config{TLS: TLS{Enabled: true, TrustStore: Store{Type: "PEM", Certificates: trimmed(pemOf(ca.cert))}}}},
		{"jks key store with a key password", sslWith("ssl.keystore.location", keyFile, "ssl.keystore.type", "JKS", "ssl.keystore.password", storePassword, "ssl.key.password", "k3y-secret"), Config{TLS: TLS{Enabled: true, KeyPassword: "k3y-secret", KeyStore: Store{Location: keyFile, Type: "JKS", Password: storePassword}}}},
		{"inline encrypted key", sslWith("ssl.keystore.type", "PEM", "ssl.keystore.key", encrypted, "ssl.keystore.certificate.chain", me.chainPEM(), "ssl.key.password", "k3y-secret"), Config{TLS: TLS{Enabled: true, KeyPassword: "k3y-secret", KeyStore: Store{Type: "PEM", Key: Secret(trimmed(encrypted)), Certificates: trimmed(me.chainPEM())}}}},
		{"host names checked", sslWith("ssl.endpoint.identification.algorithm", "HTTPS"), Config{TLS: TLS{Enabled: true}}},
		{"host names not checked", sslWith("ssl.endpoint.identification.algorithm", ""), Config{TLS: TLS{Enabled: true, SkipHostname: true}}},
		{"both versions", sslWith("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", "ssl.protocol", "TLSv1.3"), Config{TLS: TLS{Enabled: true, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}},
		{"only 1.3", sslWith("ssl.enabled.protocols", "TLSv1.3"), Config{TLS: TLS{Enabled: true, MinVersion: tls.VersionTLS13, MaxVersion: tls.VersionTLS13}}},
		{"up to 1.2", sslWith("ssl.protocol", "TLSv1.2"), Config{TLS: TLS{Enabled: true, MaxVersion: tls.VersionTLS12}}},
		{"plain", saslWith("PLAIN", plainModule+`username="u" password="p\"w";`), Config{SASL: SASL{Mechanism: "PLAIN", Username: "u", Password: `p"w`}}},
		{"plain over ssl", map[string]string{"security.protocol": "sasl_ssl", "sasl.mechanism": "plain", "sasl.jaas.config": plainModule + `username='u' password=pw;`}, Config{TLS: TLS{Enabled: true}, SASL: SASL{Mechanism: "PLAIN", Username: "u", Password: "pw"}}},
		{"scram 256", saslWith("SCRAM-SHA-256", scramModule+`username="u" password="p";`), Config{SASL: SASL{Mechanism: "SCRAM-SHA-256", Username: "u", Password: "p"}}},
		{"delegation token", saslWith("SCRAM-SHA-512", scramModule+`username="u" password="p" tokenauth="true";`), Config{SASL: SASL{Mechanism: "SCRAM-SHA-512", Username: "u", Password: "p", DelegationToken: true}}},
		{"fixed token", saslWith("OAUTHBEARER", oauthModule+`token="t0ken" extension_logicalCluster="lkc";`), Config{SASL: SASL{Mechanism: "OAUTHBEARER", Token: "t0ken", Extensions: map[string]string{"logicalCluster": "lkc"}}}},
		{"unsecured token", saslWith("OAUTHBEARER", oauthModule+`unsecuredLoginStringClaim_sub="bob" unsecuredLoginListClaim_scope="|a|b" unsecuredLoginNumberClaim_level="3" unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_x="y";`), Config{SASL: SASL{
			Mechanism: "OAUTHBEARER", Extensions: map[string]string{"x": "y"},
			Unsecured: &Unsecured{Claims: map[string]any{"sub": "bob", "scope": []string{"a", "b"}, "level": 3.0}, Life: time.Minute},
		}}},
		{"token endpoint", saslWith("OAUTHBEARER", oauthModule+`clientId="id" clientSecret="s3cret" scope="all";`, "sasl.oauthbearer.token.endpoint.url", "https://login.example/token", "sasl.login.callback.handler.class", "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"), Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: "https://login.example/token", ClientID: "id", ClientSecret: "s3cret", Scope: "all"}}},
		{"token endpoint by keys", saslWith("OAUTHBEARER", oauthModule+`;`, "sasl.oauthbearer.token.endpoint.url", "https://login.example/token", "sasl.oauthbearer.client.credentials.client.id", "id", "sasl.oauthbearer.client.credentials.client.secret", "s3cret", "sasl.oauthbearer.scope", "all"), Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenEndpoint: "https://login.example/token", ClientID: "id", ClientSecret: "s3cret", Scope: "all"}}},
		{"token file", saslWith("OAUTHBEARER", oauthModule+`;`, "sasl.oauthbearer.token.endpoint.url", "file://"+tokenFile), Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenFile: tokenFile}}},
		{"other keys", map[string]string{"acks": "all", "max.poll.records": "5", "group.id": "g"}, Config{Ignored: []string{"acks", "group.id", "max.poll.records"}}},
		{"keys that the protocol leaves unused", map[string]string{"sasl.mechanism": "PLAIN", "ssl.truststore.location": "/nowhere", "acks": "1"}, Config{Ignored: []string{"acks", "sasl.mechanism", "ssl.truststore.location"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := FromProperties("sjc1", row.give)
			require.NoError(t, err)
			row.want.Name, row.want.java = "sjc1", true
			require.Equal(t, row.want, got)
		})
	}
}

// trimmed returns PEM as it is read from a property.
func trimmed(text string) string { return text[:len(text)-1] }

// Every fault has a row: what is said must name the key, and never a secret.
func TestFromPropertiesRefuses(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	me, other := ca.issue(t, "me"), ca.issue(t, "other")
	caFile := write(t, "ca.pem", pemOf(ca.cert))
	trustP12 := write(t, "trust.p12", ca.trustPKCS12(t))
	trustJKS := write(t, "trust.jks", ca.trustJKS(t))
	keyP12 := write(t, "me.p12", me.pkcs12(t))
	keyJKS := write(t, "me.jks", me.jks(t, "k3y-secret"))
	junk := write(t, "junk", "junk")
	jceks := write(t, "x.jceks", "\xce\xce\xce\xce0000")
	const hidden = "hunter2-secret"

	type row struct {
		name string
		give map[string]string
		want []string
	}
	rows := []row{
		{"protocol", map[string]string{"security.protocol": "TLS"}, []string{`security.protocol "TLS": is not a known protocol; use PLAINTEXT`}},
		{"address", map[string]string{"bootstrap.servers": "a:1,b,c:0,d:70000"}, []string{`bootstrap.servers "b"`, `bootstrap.servers "c:0"`, `bootstrap.servers "d:70000"`}},
		{"algorithm", sslWith("ssl.endpoint.identification.algorithm", "ldap"), []string{`ssl.endpoint.identification.algorithm "ldap"`}},
		{"old versions", sslWith("ssl.enabled.protocols", "TLSv1.2,TLSv1.1,SSLv3"), []string{`ssl.enabled.protocols "TLSv1.1"`, `"SSLv3"`}},
		{"old version", sslWith("ssl.protocol", "TLSv1"), []string{`ssl.protocol "TLSv1"`}},
		{"no version left", sslWith("ssl.enabled.protocols", "TLSv1.3", "ssl.protocol", "TLSv1.2"), []string{"ssl.enabled.protocols: excludes"}},
		{"store type", sslWith("ssl.truststore.location", caFile, "ssl.truststore.type", "BKS", "ssl.keystore.location", keyP12, "ssl.keystore.type", "DER"), []string{`ssl.truststore.type "BKS"`, `ssl.keystore.type "DER"`}},
		{"inline needs pem", sslWith("ssl.truststore.certificates", "x", "ssl.truststore.type", "JKS"), []string{`ssl.truststore.type "JKS": must be PEM`}},
		{"inline and file", sslWith("ssl.truststore.certificates", "x", "ssl.truststore.location", caFile), []string{"ssl.truststore.location: is given together with"}},
		{"pem with a password", sslWith("ssl.truststore.location", caFile, "ssl.truststore.type", "PEM", "ssl.truststore.password", hidden), []string{"ssl.truststore.password: a PEM store has no password"}},
		{"password alone", sslWith("ssl.truststore.password", hidden), []string{"ssl.truststore.location: is missing"}},
		{"key alone", sslWith("ssl.keystore.key", hidden), []string{"ssl.keystore.certificate.chain: is missing"}},
		{"chain alone", sslWith("ssl.keystore.certificate.chain", pemOf(me.cert)), []string{"ssl.keystore.key: is missing"}},
		{"no file", sslWith("ssl.truststore.location", "/nowhere/x", "ssl.keystore.location", "/nowhere/y"), []string{`ssl.truststore.location "/nowhere/x": cannot be read`, `ssl.keystore.location "/nowhere/y"`}},
		{"wrong content", sslWith("ssl.truststore.location", junk), []string{"ssl.truststore.location", "neither JKS nor PKCS12 nor PEM"}},
		{"jceks", sslWith("ssl.keystore.location", jceks), []string{"ssl.keystore.location", "keytool -importkeystore"}},
		{"pem called jks", sslWith("ssl.truststore.location", caFile, "ssl.truststore.type", "JKS"), []string{"ssl.truststore.location", "holds PEM"}},
		{"wrong pkcs12 password", sslWith("ssl.truststore.location", trustP12, "ssl.truststore.password", hidden), []string{"ssl.truststore.password: does not open the store"}},
		{"wrong jks password", sslWith("ssl.truststore.location", trustJKS, "ssl.truststore.password", hidden), []string{"ssl.truststore.password: does not open the store"}},
		{"wrong key store password", sslWith("ssl.keystore.location", keyP12, "ssl.keystore.password", hidden), []string{"ssl.keystore.password: does not open the store"}},
		{"wrong jks key password", sslWith("ssl.keystore.location", keyJKS, "ssl.keystore.password", storePassword, "ssl.key.password", hidden), []string{"ssl.key.password: does not open"}},
		{"missing jks key password", sslWith("ssl.keystore.location", keyJKS, "ssl.keystore.password", storePassword), []string{"ssl.key.password: does not open"}},
		{"wrong pem key password", sslWith("ssl.keystore.key", me.keyPEM(t, "k3y-secret"), "ssl.keystore.certificate.chain", me.chainPEM(), "ssl.key.password", hidden), []string{"ssl.key.password: does not open"}},
		{"key of another", sslWith("ssl.keystore.key", other.keyPEM(t, ""), "ssl.keystore.certificate.chain", me.chainPEM()), []string{"ssl.keystore.certificate.chain: no certificate in it belongs to the private key"}},
		{"unreadable key", sslWith("ssl.keystore.key", hidden, "ssl.keystore.certificate.chain", me.chainPEM()), []string{"ssl.keystore.key: holds no usable private key"}},
		{"unreadable certificate", sslWith("ssl.truststore.certificates", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"), []string{"ssl.truststore.certificates: holds a certificate that cannot be read"}},
		{"no certificate", sslWith("ssl.truststore.certificates", "none"), []string{"ssl.truststore.certificates: holds no trusted certificate"}},
		{"trust store without trust", sslWith("ssl.truststore.location", keyJKS, "ssl.truststore.password", storePassword), []string{"ssl.truststore.location", "holds no trusted certificate"}},
		{"key store without key", sslWith("ssl.keystore.location", trustJKS, "ssl.keystore.password", storePassword), []string{"ssl.keystore.location", "holds no private key"}},

		{"no mechanism", map[string]string{"security.protocol": "SASL_SSL"}, []string{"sasl.mechanism: is missing, and Java's default GSSAPI"}},
		{"kerberos without jaas", map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, []string{"sasl.mechanism", "Kerberos is not supported"}},
		{"kerberos", saslWith("GSSAPI", `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true;`), []string{"Krb5LoginModule is not supported"}},
		{"unknown mechanism", map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER2", "sasl.jaas.config": plainModule + ";"}, []string{"PlainLoginModule does not go with the mechanism OAUTHBEARER2"}},
		{"no jaas", map[string]string{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, []string{"sasl.jaas.config: is missing; JAAS files are not read"}},
		{"module of another mechanism", saslWith("PLAIN", scramModule+`username="u" password="`+hidden+`";`), []string{"sasl.jaas.config: the login module ScramLoginModule does not go with the mechanism PLAIN"}},
		{"no user", saslWith("PLAIN", plainModule+`password="`+hidden+`";`), []string{"sasl.jaas.config: username: is missing"}},
		{"no password", saslWith("SCRAM-SHA-256", scramModule+`username="u";`), []string{"sasl.jaas.config: password: is missing"}},
		{"unknown option", saslWith("PLAIN", plainModule+`username="u" password="`+hidden+`" serviceName="kafka";`), []string{"sasl.jaas.config: option 3"}},
		{"unquoted password", saslWith("PLAIN", plainModule+`username="u" password=`+hidden+` `+hidden+`;`), []string{"sasl.jaas.config: option 3 is not of the form"}},
		{"no semicolon", saslWith("PLAIN", plainModule+`username="u" password="`+hidden+`"`), []string{"sasl.jaas.config: does not end with a semicolon"}},
		{"open quote", saslWith("PLAIN", plainModule+`username="u" password="`+hidden+`;`), []string{"quotation mark"}},
		{"no flag", saslWith("PLAIN", `PlainLoginModule username="u" password="`+hidden+`";`), []string{"control flag"}},
		{"two modules", saslWith("PLAIN", plainModule+`username="u" password="`+hidden+`"; X required;`), []string{"more than one login module"}},
		{"no module", saslWith("PLAIN", hidden), []string{"is not a login module"}},
		{"no token", saslWith("OAUTHBEARER", oauthModule+`;`), []string{"sasl.jaas.config: token: 0 origins"}},
		{"two tokens", saslWith("OAUTHBEARER", oauthModule+`token="`+hidden+`" unsecuredLoginStringClaim_sub="x";`), []string{"sasl.jaas.config: token: 2 origins"}},
		{"nobody's token", saslWith("OAUTHBEARER", oauthModule+`unsecuredLoginStringClaim_x="y";`), []string{"names the principal"}},
		{"claim that is no number", saslWith("OAUTHBEARER", oauthModule+`unsecuredLoginNumberClaim_x="y";`), []string{"option 1"}},
		{"life that is none", saslWith("OAUTHBEARER", oauthModule+`unsecuredLoginLifetimeSeconds="0";`), []string{"option 1"}},
		{"reserved extension", saslWith("OAUTHBEARER", oauthModule+`token="`+hidden+`" extension_auth="x";`), []string{`sasl.jaas.config: extension "auth"`}},
		{"endpoint that is no url", saslWith("OAUTHBEARER", oauthModule+`clientId="x" clientSecret="`+hidden+`";`, "sasl.oauthbearer.token.endpoint.url", "ftp://u:"+hidden+"@h/t"), []string{`sasl.oauthbearer.token.endpoint.url "ftp://h/t"`}},
		{"endpoint with a password", saslWith("OAUTHBEARER", oauthModule+`clientId="x" clientSecret="`+hidden+`";`, "sasl.oauthbearer.token.endpoint.url", "https://u:"+hidden+"@h/t?x="+hidden), []string{`sasl.oauthbearer.token.endpoint.url "https://h/t": holds a user or password`}},
		{"endpoint without credentials", saslWith("OAUTHBEARER", oauthModule+`;`, "sasl.oauthbearer.token.endpoint.url", "https://h/t"), []string{"clientId: is missing", "clientSecret: is missing"}},
		{"no token file", saslWith("OAUTHBEARER", oauthModule+`;`, "sasl.oauthbearer.token.endpoint.url", "file:///nowhere/t"), []string{`sasl.oauthbearer.token.endpoint.url "/nowhere/t": cannot be read`}},
		{"own login handler", saslWith("OAUTHBEARER", oauthModule+`token="`+hidden+`";`, "sasl.login.callback.handler.class", "com.example.Handler"), []string{`sasl.login.callback.handler.class "com.example.Handler"`}},
		{"handler without endpoint", saslWith("OAUTHBEARER", oauthModule+`token="`+hidden+`";`, "sasl.login.callback.handler.class", "x.OAuthBearerLoginCallbackHandler"), []string{"sasl.oauthbearer.token.endpoint.url: is missing"}},
		{"all at once", map[string]string{"security.protocol": "SASL_SSL", "ssl.provider": hidden, "ssl.protocol": "SSLv3", "sasl.mechanism": "PLAIN", "bootstrap.servers": "x"}, []string{"ssl.provider", "ssl.protocol", "sasl.jaas.config", "bootstrap.servers"}},
	}
	for _, key := range []string{
		"ssl.cipher.suites", "ssl.client.auth", "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "ssl.provider",
		"ssl.secure.random.implementation", "ssl.made.up", "sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd", "sasl.client.callback.handler.class",
		"sasl.login.class", "sasl.login.refresh.window.factor", "sasl.login.retry.backoff.ms", "sasl.login.connect.timeout.ms", "sasl.server.max.receive.size",
		"sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.sub.claim.name", "sasl.made.up", "security.providers", "security.made.up",
	} {
		rows = append(rows, row{"key " + key, map[string]string{key: hidden}, []string{key + ": "}})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := FromProperties("sjc1", row.give)
			require.Error(t, err)
			require.Equal(t, Invalid, Classify(err))
			for _, want := range row.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), hidden)
			require.NotContains(t, err.Error(), "k3y-secret")
			require.NotContains(t, err.Error(), storePassword)
		})
	}
}

func TestFromPropertiesLeavesItsArgumentAlone(t *testing.T) {
	t.Parallel()
	give := saslWith("PLAIN", plainModule+`username="u" password="p";`)
	before := maps.Clone(give)
	_, err := FromProperties("x", give)
	require.NoError(t, err)
	require.Equal(t, before, give)
}

func TestLoadProperties(t *testing.T) {
	t.Parallel()
	path := write(t, "client.properties", "# a comment\nbootstrap.servers = a:1\\\n  ,b:2\nsasl.jaas.config=x ${HOME} \\u00e9\xe9\nssl.keystore.key=a\\nb\n")
	got, err := LoadProperties(path)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"bootstrap.servers": "a:1,b:2", "sasl.jaas.config": "x ${HOME} éé", "ssl.keystore.key": "a\nb"}, got)

	_, err = LoadProperties("/nowhere/x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParseJAAS(f *testing.F) {
	f.Add(plainModule + `username="u" password="p\"w";`)
	f.Add(`X required a='b';`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseJAAS(text)
		if err == nil && parsed.module == "" && text[0] != '"' && text[0] != '\'' {
			t.Fatalf("module without a name from %q", text)
		}
	})
}

// TestKerberosIsToldBesideOtherFaults: whoever mends the file must not find it out in a second round.
func TestKerberosIsToldBesideOtherFaults(t *testing.T) {
	t.Parallel()
	const krb5 = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
	for _, p := range []map[string]string{
		{"security.protocol": "SASL_SLS", "sasl.mechanism": "GSSAPI", "ssl.protcol": "TLS"},
		{"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "ssl.protcol": "TLS", "sasl.jaas.config": krb5},
		{"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "ssl.protcol": "TLS", "sasl.jaas.config": "nonsense"},
	} {
		_, err := FromProperties("source", p)
		require.ErrorContains(t, err, `sasl.mechanism "GSSAPI": Kerberos is not supported`, p)
		require.ErrorContains(t, err, "ssl.protcol: this security setting is not supported; remove it; docs/security.md lists the settings that are", p)
	}
	_, err := FromProperties("source", map[string]string{"security.protocol": "PLAINTEXT", "sasl.mechanism": "GSSAPI"})
	require.NoError(t, err, "as in Java the protocol alone decides what is used")
}
