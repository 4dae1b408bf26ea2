package cluster

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Validate reports everything that is wrong, all at once. It reads the files that the configuration names, so that a wrong store password is
// found at the start and not by the first connection; it does not touch the network.
func (c Config) Validate() error {
	if len(c.Bootstrap) == 0 {
		return errors.Join(c.named(&ConfigError{
			Key: "bootstrap", Reason: "no broker is named", Cure: "give one or more host:port",
		}), c.check())
	}
	return c.check()
}

// check is Validate without the demand for bootstrap brokers, which may be given beside a properties file.
func (c Config) check() error {
	faults := slices.Concat(c.bootstrapFaults(), c.tlsFaults(), c.saslFaults())
	errs := make([]error, 0, len(faults))
	for _, fault := range faults {
		errs = append(errs, c.named(fault))
	}
	return errors.Join(errs...)
}

// javaNames maps native keys to those of the Java client, for faults of a configuration that came from a properties file.
func javaNames() map[string]string {
	return map[string]string{ //nolint:gosec // these are names of settings
		"bootstrap":                   "bootstrap.servers",
		"tls.truststore":              "ssl.truststore.location",
		"tls.truststore.location":     "ssl.truststore.location",
		"tls.truststore.type":         "ssl.truststore.type",
		"tls.truststore.password":     "ssl.truststore.password",
		"tls.truststore.certificates": "ssl.truststore.certificates",
		"tls.keystore":                "ssl.keystore.location",
		"tls.keystore.location":       "ssl.keystore.location",
		"tls.keystore.type":           "ssl.keystore.type",
		"tls.keystore.password":       "ssl.keystore.password",
		"tls.keystore.key":            "ssl.keystore.key",
		"tls.keystore.certificates":   "ssl.keystore.certificate.chain",
		"tls.key_password":            "ssl.key.password",
		"sasl.username":               "sasl.jaas.config: username",
		"sasl.password":               "sasl.jaas.config: password",
		"sasl.token":                  "sasl.jaas.config: token",
		"sasl.token_file":             "sasl.oauthbearer.token.endpoint.url",
		"sasl.token_endpoint":         "sasl.oauthbearer.token.endpoint.url",
		"sasl.client_id":              "sasl.jaas.config: clientId",
		"sasl.client_secret":          "sasl.jaas.config: clientSecret",
		"sasl.extensions":             "sasl.jaas.config: extension",
	}
}

// named gives a fault the key that the configuration's author wrote.
func (c Config) named(err error) error {
	var fault *ConfigError
	if !c.java || !errors.As(err, &fault) {
		return err
	}
	if name, ok := javaNames()[fault.Key]; ok {
		renamed := *fault
		renamed.Key = name
		return &renamed
	}
	return err
}

// bootstrapFaults checks that each address is host:port.
func (c Config) bootstrapFaults() []*ConfigError {
	var faults []*ConfigError
	for _, address := range c.Bootstrap {
		host, port, err := net.SplitHostPort(address)
		number, numberErr := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || numberErr != nil || number == 0 {
			faults = append(faults, &ConfigError{
				Key: "bootstrap", Value: address, Reason: "is not host:port with a port from 1 to 65535", Cure: "write for example kafka-1:9092",
			})
		}
	}
	return faults
}

// tlsFaults checks the TLS part and reads its files.
func (c Config) tlsFaults() []*ConfigError {
	t := c.TLS
	faults := slices.Concat(storeFaults(t.TrustStore, "tls.truststore"), storeFaults(t.KeyStore, "tls.keystore"))
	if t.CAFile != "" && t.TrustStore != (Store{}) {
		faults = append(faults, exclusive("tls.ca_file", "tls.truststore"))
	}
	if (t.CertFile != "" || t.KeyFile != "") && t.KeyStore != (Store{}) {
		faults = append(faults, exclusive("tls.cert_file", "tls.keystore"))
	}
	if t.CertFile != "" && t.KeyFile == "" {
		faults = append(faults, &ConfigError{Key: "tls.key_file", Reason: "is missing beside cert_file", Cure: "name the file of the private key"})
	}
	if t.KeyFile != "" && t.CertFile == "" {
		faults = append(faults, &ConfigError{Key: "tls.cert_file", Reason: "is missing beside key_file", Cure: "name the file of the certificate"})
	}
	if t.KeyPassword != "" && t.KeyPasswordFile != "" {
		faults = append(faults, exclusive("tls.key_password", "tls.key_password_file"))
	}
	if t.MinVersion != 0 && t.MaxVersion != 0 && t.MinVersion > t.MaxVersion {
		faults = append(faults, &ConfigError{
			Key: "ssl.enabled.protocols", Reason: "excludes the version that ssl.protocol asks for", Cure: "leave ssl.protocol out",
		})
	}
	if len(faults) > 0 {
		return faults // reading the files would only report the same again
	}
	if _, err := c.roots(); err != nil {
		faults = appendFault(faults, err)
	}
	if _, err := c.clientCertificates(); err != nil {
		faults = appendFault(faults, err)
	}
	return faults
}

// storeFaults checks how a store is described.
func storeFaults(s Store, key string) []*ConfigError {
	var faults []*ConfigError
	kind := strings.ToUpper(s.Type)
	inline := s.Certificates != "" || s.Key != ""
	switch {
	case s == Store{}:
		return nil
	case kind != "" && kind != storeJKS && kind != storePKCS12 && kind != storePEM:
		faults = append(faults, &ConfigError{Key: key + ".type", Value: s.Type, Reason: "is not a known store type", Cure: "use JKS, PKCS12 or PEM"})
	case inline && kind != "" && kind != storePEM:
		faults = append(faults, &ConfigError{Key: key + ".type", Value: s.Type, Reason: "must be PEM for certificates given inline", Cure: "set it to PEM"})
	case kind == storePEM && (s.Password != "" || s.PasswordFile != ""):
		faults = append(faults, &ConfigError{Key: key + ".password", Reason: "a PEM store has no password", Cure: "give the password of an encrypted key as key password"})
	}
	if inline && s.Location != "" {
		faults = append(faults, exclusive(key+".location", key+".certificates"))
	}
	if !inline && s.Location == "" {
		faults = append(faults, &ConfigError{Key: key + ".location", Reason: "is missing though the store is described", Cure: "name the file"})
	}
	if s.Key != "" && s.Certificates == "" {
		faults = append(faults, &ConfigError{Key: key + ".certificates", Reason: "is missing beside the key", Cure: "give the certificate chain"})
	}
	if key == "tls.keystore" && s.Certificates != "" && s.Key == "" {
		faults = append(faults, &ConfigError{Key: key + ".key", Reason: "is missing beside the certificate chain", Cure: "give the private key"})
	}
	if s.Password != "" && s.PasswordFile != "" {
		faults = append(faults, exclusive(key+".password", key+".password_file"))
	}
	return faults
}

// saslFaults checks that the mechanism has what it needs and nothing that it would ignore.
func (c Config) saslFaults() []*ConfigError {
	s := c.SASL
	var faults []*ConfigError
	switch strings.ToUpper(s.Mechanism) {
	case "":
		if s.Username != "" || s.Password != "" || s.PasswordFile != "" || s.hasToken() {
			faults = append(faults, &ConfigError{Key: "sasl.mechanism", Reason: "is missing though credentials are given", Cure: "use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"})
		}
	case mechanismPlain, mechanismScram256, mechanismScram512:
		faults = s.passwordFaults()
	case mechanismOAuth:
		faults = s.tokenFaults()
	default:
		faults = append(faults, unknownMechanism(s.Mechanism))
	}
	return faults
}

// hasToken reports whether anything of OAUTHBEARER is set.
func (s SASL) hasToken() bool {
	return s.Token != "" || s.TokenFile != "" || s.TokenEndpoint != "" || s.Unsecured != nil
}

// passwordFaults checks PLAIN and SCRAM.
func (s SASL) passwordFaults() []*ConfigError {
	var faults []*ConfigError
	if s.Username == "" {
		faults = append(faults, &ConfigError{Key: "sasl.username", Reason: "is missing", Cure: s.Mechanism + " needs a user name"})
	}
	switch {
	case s.Password != "" && s.PasswordFile != "":
		faults = append(faults, exclusive("sasl.password", "sasl.password_file"))
	case s.Password == "" && s.PasswordFile == "":
		faults = append(faults, &ConfigError{Key: "sasl.password", Reason: "is missing", Cure: s.Mechanism + " needs a password or a password file"})
	default:
		faults = append(faults, secretFileFaults("sasl.password_file", s.Password, s.PasswordFile)...)
	}
	if s.hasToken() {
		faults = append(faults, &ConfigError{Key: "sasl.token", Reason: "is of OAUTHBEARER, the mechanism is " + s.Mechanism, Cure: "remove one of them"})
	}
	return faults
}

// tokenFaults checks OAUTHBEARER: exactly one origin of tokens.
func (s SASL) tokenFaults() []*ConfigError {
	var faults []*ConfigError
	origins := 0
	for _, set := range []bool{s.Token != "", s.TokenFile != "", s.TokenEndpoint != "", s.Unsecured != nil} {
		if set {
			origins++
		}
	}
	if origins != 1 {
		faults = append(faults, &ConfigError{
			Key: "sasl.token", Reason: strconv.Itoa(origins) + " origins of tokens are given where one is needed",
			Cure: "give either a token, a token file or a token endpoint",
		})
	}
	faults = append(faults, secretFileFaults("sasl.token_file", s.Token, s.TokenFile)...)
	if s.TokenEndpoint != "" {
		faults = append(faults, s.endpointFaults()...)
	}
	for name := range s.Extensions {
		if name == "auth" || name == "" || strings.Trim(name, letters) != "" {
			faults = append(faults, &ConfigError{Key: "sasl.extensions", Value: name, Reason: "is not a name of letters other than auth (RFC 7628 §3.1)", Cure: "rename or remove it"})
		}
	}
	return faults
}

// letters are what the name of an extension may consist of.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// endpointFaults checks the token endpoint and its credentials.
func (s SASL) endpointFaults() []*ConfigError {
	var faults []*ConfigError
	parsed, err := url.Parse(s.TokenEndpoint)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "https" && parsed.Scheme != "http") {
		faults = append(faults, &ConfigError{Key: "sasl.token_endpoint", Value: displayURL(s.TokenEndpoint), Reason: "is not an http or https URL", Cure: "write for example https://login.example.com/oauth2/token"})
	}
	if err == nil && parsed.User != nil {
		faults = append(faults, &ConfigError{Key: "sasl.token_endpoint", Value: displayURL(s.TokenEndpoint), Reason: "holds a user or password, which would be shown with it", Cure: "give client id and client secret instead"})
	}
	if s.ClientID == "" {
		faults = append(faults, &ConfigError{Key: "sasl.client_id", Reason: "is missing", Cure: "the token endpoint needs a client id"})
	}
	switch {
	case s.ClientSecret != "" && s.ClientSecretFile != "":
		faults = append(faults, exclusive("sasl.client_secret", "sasl.client_secret_file"))
	case s.ClientSecret == "" && s.ClientSecretFile == "":
		faults = append(faults, &ConfigError{Key: "sasl.client_secret", Reason: "is missing", Cure: "the token endpoint needs a client secret or a file that holds it"})
	default:
		faults = append(faults, secretFileFaults("sasl.client_secret_file", s.ClientSecret, s.ClientSecretFile)...)
	}
	return faults
}

// secretFileFaults checks that the file of a secret can be read and is not empty.
func secretFileFaults(key string, secret Secret, path string) []*ConfigError {
	if path == "" {
		return nil
	}
	text, err := secret.orFile(path)
	if err != nil {
		return []*ConfigError{{Key: key, Value: path, Reason: "cannot be read", Err: err}}
	}
	if text == "" {
		return []*ConfigError{{Key: key, Value: path, Reason: "is empty", Cure: "write the secret into it"}}
	}
	return nil
}

// exclusive is the fault of two settings of which only one may be given.
func exclusive(one, other string) *ConfigError {
	return &ConfigError{Key: one, Reason: "is given together with " + other, Cure: "remove one of them"}
}

// appendFault adds an error that is a fault already.
func appendFault(faults []*ConfigError, err error) []*ConfigError {
	var fault *ConfigError
	if errors.As(err, &fault) {
		return append(faults, fault)
	}
	return append(faults, &ConfigError{Key: "tls", Reason: "cannot be used", Err: err})
}
