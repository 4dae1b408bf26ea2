package cluster

// Config says how one Kafka cluster is reached. The zero value with Bootstrap set is a plaintext cluster without authentication. It may be
// printed, logged and marshalled: all that is secret in it is a Secret, which masks itself.
type Config struct {
	// Name is how routes, logs and metrics call the cluster.
	Name string `json:"name" yaml:"name"`
	// Bootstrap lists host:port of brokers to ask first.
	Bootstrap []string `json:"bootstrap" yaml:"bootstrap"`
	// ClientID is sent with each request, for the brokers' logs and quotas; empty means DefaultClientID.
	ClientID string `json:"client_id,omitempty" yaml:"client_id,omitempty"`
	// ClientRack lets brokers name a nearer replica to fetch from (KIP-392).
	ClientRack string `json:"client_rack,omitempty" yaml:"client_rack,omitempty"`
	// TLS is off unless one of its fields is set.
	TLS TLS `json:"tls,omitzero" yaml:"tls,omitempty"`
	// SASL is off unless its mechanism is set.
	SASL SASL `json:"sasl,omitzero" yaml:"sasl,omitempty"`
	// Ignored lists the keys of a Java properties file that have no bearing here, sorted, so that the caller can say so once.
	Ignored []string `json:"-" yaml:"-"`

	// java tells that the configuration came from a properties file, so that faults name the keys that its author wrote.
	java bool
}

// DefaultClientID is what a broker's log shows when Config.ClientID is empty.
const DefaultClientID = "causeway"

// TLS says whether and how connections are encrypted. Files are PEM unless they are stores.
type TLS struct {
	// Enabled turns TLS on with the system's certificate authorities; any other field turns it on as well.
	Enabled bool `json:"enabled,omitempty" yaml:"enabled,omitempty"`
	// CAFile holds the authorities that may sign a broker's certificate; empty means the system's.
	CAFile string `json:"ca_file,omitempty" yaml:"ca_file,omitempty"`
	// CertFile holds our certificate and its chain, for brokers that ask for one.
	CertFile string `json:"cert_file,omitempty" yaml:"cert_file,omitempty"`
	// KeyFile holds the private key of CertFile.
	KeyFile string `json:"key_file,omitempty" yaml:"key_file,omitempty"`
	// KeyPassword decrypts an encrypted private key, wherever it came from.
	KeyPassword Secret `json:"key_password,omitempty" yaml:"key_password,omitempty"`
	// KeyPasswordFile holds KeyPassword instead.
	KeyPasswordFile string `json:"key_password_file,omitempty" yaml:"key_password_file,omitempty"`
	// ServerName is checked against the broker's certificate instead of the address dialled.
	ServerName string `json:"server_name,omitempty" yaml:"server_name,omitempty"`
	// TrustStore is a Java trust store, instead of CAFile.
	TrustStore Store `json:"truststore,omitzero" yaml:"truststore,omitempty"`
	// KeyStore is a Java key store, instead of CertFile and KeyFile.
	KeyStore Store `json:"keystore,omitzero" yaml:"keystore,omitempty"`
	// SkipHostname accepts a certificate of a trusted authority for any host. Only an empty ssl.endpoint.identification.algorithm sets it.
	SkipHostname bool `json:"-" yaml:"-"`
	// MinVersion and MaxVersion bound the protocol (tls.VersionTLS12, tls.VersionTLS13); 0 means Go's default.
	MinVersion uint16 `json:"-" yaml:"-"`
	MaxVersion uint16 `json:"-" yaml:"-"`
}

// On reports whether connections are encrypted.
func (t TLS) On() bool { return t != TLS{} }

// Store is a Java key or trust store: a file of type JKS or PKCS12 (told apart by content), or PEM, or PEM given inline.
type Store struct {
	// Location is the file.
	Location string `json:"location,omitempty" yaml:"location,omitempty"`
	// Type is JKS, PKCS12 or PEM; empty means that the content decides.
	Type string `json:"type,omitempty" yaml:"type,omitempty"`
	// Password opens the store.
	Password Secret `json:"password,omitempty" yaml:"password,omitempty"`
	// PasswordFile holds Password instead.
	PasswordFile string `json:"password_file,omitempty" yaml:"password_file,omitempty"`
	// Certificates is inline PEM: authorities of a trust store, our chain of a key store.
	Certificates string `json:"certificates,omitempty" yaml:"certificates,omitempty"`
	// Key is the inline PEM private key of a key store.
	Key Secret `json:"key,omitempty" yaml:"key,omitempty"`
}

// SASL says how we authenticate.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; empty means no SASL.
	Mechanism string `json:"mechanism,omitempty" yaml:"mechanism,omitempty"`
	// Username of PLAIN and SCRAM.
	Username string `json:"username,omitempty" yaml:"username,omitempty"`
	// Password of PLAIN and SCRAM.
	Password Secret `json:"password,omitempty" yaml:"password,omitempty"`
	// PasswordFile holds Password instead.
	PasswordFile string `json:"password_file,omitempty" yaml:"password_file,omitempty"`
	// DelegationToken tells that user and password of SCRAM are a delegation token (KIP-48).
	DelegationToken bool `json:"delegation_token,omitempty" yaml:"delegation_token,omitempty"`
	// Token is a fixed OAUTHBEARER token.
	Token Secret `json:"token,omitempty" yaml:"token,omitempty"`
	// TokenFile holds Token instead; whoever renews the token writes the file.
	TokenFile string `json:"token_file,omitempty" yaml:"token_file,omitempty"`
	// TokenEndpoint is the URL that gives tokens for client credentials (RFC 6749 §4.4).
	TokenEndpoint string `json:"token_endpoint,omitempty" yaml:"token_endpoint,omitempty"`
	// ClientID of the token endpoint.
	ClientID string `json:"client_id,omitempty" yaml:"client_id,omitempty"`
	// ClientSecret of the token endpoint.
	ClientSecret Secret `json:"client_secret,omitempty" yaml:"client_secret,omitempty"`
	// ClientSecretFile holds ClientSecret instead.
	ClientSecretFile string `json:"client_secret_file,omitempty" yaml:"client_secret_file,omitempty"`
	// Scope is asked of the token endpoint.
	Scope string `json:"scope,omitempty" yaml:"scope,omitempty"`
	// Extensions are sent with an OAUTHBEARER token (KIP-342).
	Extensions map[string]string `json:"extensions,omitempty" yaml:"extensions,omitempty"`
	// Unsecured makes tokens without a signature, which only brokers set up for tests accept.
	Unsecured *Unsecured `json:"-" yaml:"-"`
}

// clientID returns the id to send.
func (c Config) clientID() string {
	if c.ClientID == "" {
		return DefaultClientID
	}
	return c.ClientID
}
