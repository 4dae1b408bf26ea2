package cluster

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The mechanisms that brokers and we have in common.
const (
	mechanismPlain    = "PLAIN"
	mechanismScram256 = "SCRAM-SHA-256"
	mechanismScram512 = "SCRAM-SHA-512"
	mechanismOAuth    = "OAUTHBEARER"
)

// Mechanism returns how to authenticate, or nil when there is nothing to do. Passwords and tokens in files are read for each connection. Keep
// the mechanism for all connections of a client: it caches the token that an endpoint gave.
func (c Config) Mechanism() (sasl.Mechanism, error) {
	s := c.SASL
	switch strings.ToUpper(s.Mechanism) {
	case "":
		return nil, nil //nolint:nilnil // nil means no SASL, as the signature promises
	case mechanismPlain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := s.Password.orFile(s.PasswordFile)
			return plain.Auth{User: s.Username, Pass: password}, err
		}), nil
	case mechanismScram256:
		return scram.Sha256(s.scram), nil
	case mechanismScram512:
		return scram.Sha512(s.scram), nil
	case mechanismOAuth:
		token := c.tokenSource()
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			text, err := token(ctx)
			return oauth.Auth{Token: text, Extensions: s.Extensions}, err
		}), nil
	default:
		return nil, c.named(unknownMechanism(s.Mechanism))
	}
}

// scram returns what SCRAM needs for one connection.
func (s SASL) scram(context.Context) (scram.Auth, error) {
	password, err := s.Password.orFile(s.PasswordFile)
	return scram.Auth{User: s.Username, Pass: password, IsToken: s.DelegationToken}, err
}

// unknownMechanism is the fault of a mechanism that we do not speak.
func unknownMechanism(name string) *ConfigError {
	reason := "this mechanism is not supported"
	if strings.EqualFold(name, "GSSAPI") {
		reason = "Kerberos is not supported"
	}
	return &ConfigError{
		Key: "sasl.mechanism", Value: name, Reason: reason,
		Cure: "use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, or a listener with TLS client certificates",
	}
}
