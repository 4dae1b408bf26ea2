package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// LoadProperties reads a Java properties file as Java's own clients do: ISO 8859-1 with \u escapes, and no expansion of ${...}.
func LoadProperties(path string) (map[string]string, error) {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	loaded, err := loader.LoadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load properties %s: %w", path, err)
	}
	return loaded.Map(), nil
}

// FromProperties understands the configuration of a Java client, by the keys that docs/security.md lists. A security key that is not among
// them is an error, because the connection would be less secure than its author meant; any other key is listed in Config.Ignored. All faults
// are reported at once, under the Java names. Brokers may be missing, since they are often given elsewhere: Validate asks for them.
func FromProperties(name string, p map[string]string) (Config, error) {
	r := &javaReader{cfg: Config{Name: name, java: true}, given: p}
	keys := javaKeys()
	for _, key := range slices.Sorted(maps.Keys(p)) {
		value := strings.TrimSpace(p[key])
		switch read, known := keys[key]; {
		case known:
			read(r, key, value)
		case isSecurityKey(key):
			r.refuse(key)
		default:
			r.cfg.Ignored = append(r.cfg.Ignored, key)
		}
	}
	r.finish()
	if err := r.cfg.check(); err != nil {
		r.faults = append(r.faults, err)
	}
	return r.cfg, errors.Join(r.faults...)
}

// isSecurityKey reports whether a key bears on who can read or pretend what.
func isSecurityKey(key string) bool {
	return strings.HasPrefix(key, "ssl.") || strings.HasPrefix(key, "sasl.") || strings.HasPrefix(key, "security.")
}

// javaReader collects a configuration from properties.
type javaReader struct {
	cfg    Config
	given  map[string]string
	faults []error

	encrypted, authenticated bool // what security.protocol says
	unclear                  bool // security.protocol says nothing that is known
	login                    *login
	handler                  string // sasl.login.callback.handler.class
}

// fault notes something wrong.
func (r *javaReader) fault(key, value, reason, cure string) {
	r.faults = append(r.faults, &ConfigError{Key: key, Value: value, Reason: reason, Cure: cure})
}

// refuse notes a security key that is not understood, with what is known of it. Its value may be a secret and is not shown.
func (r *javaReader) refuse(key string) {
	reason, cure := "this security setting is not supported", "remove it; docs/security.md lists the settings that are"
	for prefix, why := range map[string]string{
		"sasl.kerberos.":                     "Kerberos is not supported",
		"sasl.client.callback.handler.class": "Java classes cannot be loaded",
		"sasl.login.class":                   "Java classes cannot be loaded",
		"sasl.login.refresh.":                "tokens are renewed at four fifths of their life, which cannot be set",
		"sasl.server.":                       "it is a setting of brokers",
		"sasl.oauthbearer.jwks.":             "it is a setting of brokers",
		"ssl.cipher.suites":                  "Go chooses among safe cipher suites by itself",
		"ssl.client.auth":                    "it is a setting of brokers",
		"ssl.engine.factory.class":           "Java classes cannot be loaded",
		"ssl.keymanager.algorithm":           "it is about Java's own TLS",
		"ssl.trustmanager.algorithm":         "it is about Java's own TLS",
		"ssl.provider":                       "it is about Java's own TLS",
		"ssl.secure.random.implementation":   "it is about Java's own TLS",
		"security.providers":                 "Java classes cannot be loaded",
	} {
		if strings.HasPrefix(key, prefix) {
			reason = why
		}
	}
	r.fault(key, "", reason, cure)
}

// javaKeys maps each understood key to what it does.
func javaKeys() map[string]func(r *javaReader, key, value string) {
	return map[string]func(r *javaReader, key, value string){
		"bootstrap.servers": func(r *javaReader, _, v string) { r.cfg.Bootstrap = splitList(v) },
		"client.id":         func(r *javaReader, _, v string) { r.cfg.ClientID = v },
		"client.rack":       func(r *javaReader, _, v string) { r.cfg.ClientRack = v },
		"security.protocol": (*javaReader).protocol,

		"ssl.truststore.location":               func(r *javaReader, _, v string) { r.cfg.TLS.TrustStore.Location = v },
		"ssl.truststore.password":               func(r *javaReader, k, _ string) { r.cfg.TLS.TrustStore.Password = r.secret(k) },
		"ssl.truststore.type":                   func(r *javaReader, _, v string) { r.cfg.TLS.TrustStore.Type = v },
		"ssl.truststore.certificates":           func(r *javaReader, _, v string) { r.cfg.TLS.TrustStore.Certificates = v },
		"ssl.keystore.location":                 func(r *javaReader, _, v string) { r.cfg.TLS.KeyStore.Location = v },
		"ssl.keystore.password":                 func(r *javaReader, k, _ string) { r.cfg.TLS.KeyStore.Password = r.secret(k) },
		"ssl.keystore.type":                     func(r *javaReader, _, v string) { r.cfg.TLS.KeyStore.Type = v },
		"ssl.keystore.key":                      func(r *javaReader, _, v string) { r.cfg.TLS.KeyStore.Key = Secret(v) },
		"ssl.keystore.certificate.chain":        func(r *javaReader, _, v string) { r.cfg.TLS.KeyStore.Certificates = v },
		"ssl.key.password":                      func(r *javaReader, k, _ string) { r.cfg.TLS.KeyPassword = r.secret(k) },
		"ssl.endpoint.identification.algorithm": (*javaReader).endpointIdentification,
		"ssl.enabled.protocols":                 (*javaReader).enabledProtocols,
		"ssl.protocol":                          (*javaReader).sslProtocol,

		"sasl.mechanism":                                    func(r *javaReader, _, v string) { r.cfg.SASL.Mechanism = strings.ToUpper(v) },
		"sasl.jaas.config":                                  (*javaReader).jaas,
		"sasl.login.callback.handler.class":                 func(r *javaReader, _, v string) { r.handler = v },
		"sasl.oauthbearer.token.endpoint.url":               (*javaReader).endpoint,
		"sasl.oauthbearer.scope":                            func(r *javaReader, _, v string) { r.cfg.SASL.Scope = v },
		"sasl.oauthbearer.client.credentials.client.id":     func(r *javaReader, _, v string) { r.cfg.SASL.ClientID = v },
		"sasl.oauthbearer.client.credentials.client.secret": func(r *javaReader, k, _ string) { r.cfg.SASL.ClientSecret = r.secret(k) },
	}
}

// secret returns a value untrimmed: a password may end in a blank.
func (r *javaReader) secret(key string) Secret { return Secret(r.given[key]) }

// splitList splits at commas and drops blanks and empty items.
func splitList(value string) []string {
	var out []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// protocol reads security.protocol.
func (r *javaReader) protocol(key, value string) {
	switch strings.ToUpper(value) {
	case "PLAINTEXT", "":
	case "SSL":
		r.encrypted = true
	case "SASL_PLAINTEXT":
		r.authenticated = true
	case "SASL_SSL":
		r.encrypted, r.authenticated = true, true
	default:
		r.unclear = true
		r.fault(key, value, "is not a known protocol", "use PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
	}
}

// endpointIdentification reads how a broker's host is checked: by default it is, an empty value turns it off.
func (r *javaReader) endpointIdentification(key, value string) {
	switch strings.ToLower(value) {
	case "https":
	case "":
		r.cfg.TLS.SkipHostname = true
	default:
		r.fault(key, value, "is not a known algorithm", "use https, or nothing to turn the check of host names off")
	}
}

// tlsVersion knows the versions that are still considered safe.
func tlsVersion(name string) (uint16, bool) {
	switch name {
	case "TLSv1.2":
		return tls.VersionTLS12, true
	case "TLSv1.3":
		return tls.VersionTLS13, true
	}
	return 0, false
}

// enabledProtocols reads the versions that may be spoken.
func (r *javaReader) enabledProtocols(key, value string) {
	var versions []uint16
	for _, name := range splitList(value) {
		version, known := tlsVersion(name)
		if !known {
			r.fault(key, name, "is no supported protocol version", "use TLSv1.2 and TLSv1.3")
			continue
		}
		versions = append(versions, version)
	}
	if len(versions) == 0 {
		return
	}
	r.cfg.TLS.MinVersion = slices.Min(versions)
	if highest := slices.Max(versions); r.cfg.TLS.MaxVersion == 0 || highest < r.cfg.TLS.MaxVersion {
		r.cfg.TLS.MaxVersion = highest
	}
}

// sslProtocol reads the newest version that may be spoken.
func (r *javaReader) sslProtocol(key, value string) {
	version, known := tlsVersion(value)
	if !known && value != "TLS" && value != "" {
		r.fault(key, value, "is no supported protocol version", "use TLSv1.2 or TLSv1.3")
		return
	}
	if known && (r.cfg.TLS.MaxVersion == 0 || version < r.cfg.TLS.MaxVersion) {
		r.cfg.TLS.MaxVersion = version
	}
}

// endpoint reads where tokens come from; Java reads file URLs as the file that holds the token.
func (r *javaReader) endpoint(_, value string) {
	if path, isFile := strings.CutPrefix(value, "file:"); isFile {
		r.cfg.SASL.TokenFile = strings.TrimPrefix(path, "//")
		return
	}
	r.cfg.SASL.TokenEndpoint = value
}

// jaas reads the login module with its options.
func (r *javaReader) jaas(key, _ string) {
	parsed, err := parseJAAS(r.given[key])
	if err != nil {
		r.fault(key, "", err.Error(), `write: org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";`)
		return
	}
	r.login = parsed
}

// finish puts together what depends on several keys. As in Java, security.protocol alone decides what is used; keys that it leaves unused
// become ignored ones.
func (r *javaReader) finish() {
	if r.encrypted {
		r.cfg.TLS.Enabled = true
	} else {
		r.cfg.TLS = TLS{}
		r.ignore("ssl.")
	}
	mechanism := r.cfg.SASL.Mechanism
	unknown := mechanism != "" && !slices.Contains([]string{mechanismPlain, mechanismScram256, mechanismScram512, mechanismOAuth}, mechanism)
	if unknown && (r.authenticated || r.unclear) {
		is := unknownMechanism(mechanism)
		r.fault("sasl.mechanism", mechanism, is.Reason, is.Cure)
	}
	if !r.authenticated {
		r.cfg.SASL = SASL{}
		r.ignore("sasl.")
		return
	}
	if mechanism == "" {
		r.fault("sasl.mechanism", "", "is missing, and Java's default GSSAPI (Kerberos) is not supported", "set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER")
	}
	usable := mechanism != "" && !unknown
	if usable {
		r.loginHandler()
	}
	if usable || r.login != nil { // a login module is judged beside a wrong mechanism too
		r.applyLogin()
	}
	if !usable {
		r.cfg.SASL = SASL{} // said once is enough
	}
}

// applyLogin takes credentials from the login module.
func (r *javaReader) applyLogin() {
	if r.login == nil {
		if r.cfg.SASL.Mechanism == mechanismOAuth {
			return
		}
		if _, given := r.given["sasl.jaas.config"]; !given {
			r.fault("sasl.jaas.config", "", "is missing; JAAS files are not read", "put the login module of the file into this key")
		}
		r.cfg.SASL = SASL{} // said once is enough
		return
	}
	if err := r.login.apply(&r.cfg.SASL); err != nil {
		r.fault("sasl.jaas.config", "", err.Error(), "docs/security.md shows the options of each login module")
		r.cfg.SASL = SASL{}
	}
}

// loginHandler accepts the one callback handler that does what we do anyway: Java needs it named to use a token endpoint.
func (r *javaReader) loginHandler() {
	const key = "sasl.login.callback.handler.class"
	if r.handler == "" {
		return
	}
	if !strings.HasSuffix(r.handler, ".OAuthBearerLoginCallbackHandler") {
		r.fault(key, r.handler, "Java classes cannot be loaded", "leave it out, or use a token endpoint with OAuthBearerLoginCallbackHandler")
		return
	}
	if r.cfg.SASL.TokenEndpoint == "" && r.cfg.SASL.TokenFile == "" {
		r.fault("sasl.oauthbearer.token.endpoint.url", "", "is missing beside "+key, "set it")
	}
}

// ignore lists the given keys of a kind that security.protocol leaves unused, except those that are refused anyway.
func (r *javaReader) ignore(prefix string) {
	known := javaKeys()
	for key := range r.given {
		if _, ok := known[key]; ok && strings.HasPrefix(key, prefix) {
			r.cfg.Ignored = append(r.cfg.Ignored, key)
		}
	}
	slices.Sort(r.cfg.Ignored)
}
