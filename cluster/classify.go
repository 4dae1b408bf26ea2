package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Class says what kind of failure an error is, and so what helps against it.
type Class int8

// The classes. The zero value is Other.
const (
	// Other is none of the below: retrying may help.
	Other Class = iota
	// Unreachable: no broker answered, or the one asked is not in charge now. Retry.
	Unreachable
	// Authentication: TLS or SASL refused one side. Retrying helps only after certificates or passwords were changed.
	Authentication
	// Authorization: we are known but may not do this. An operator must grant it.
	Authorization
	// NotFound: the topic, partition or broker does not exist.
	NotFound
	// Exists: the topic is there already.
	Exists
	// Invalid: the request or the configuration is wrong as it is; retrying is of no use.
	Invalid
)

// String returns the class in lower case, for logs and metrics.
func (c Class) String() string {
	names := [...]string{"other", "unreachable", "authentication", "authorization", "not_found", "exists", "invalid"}
	if c < 0 || int(c) >= len(names) {
		return "other"
	}
	return names[c]
}

// Classify sorts an error of Admin, or of package wire, into a class. nil is Other.
func Classify(err error) Class {
	if err == nil {
		return Other
	}
	var fault *ConfigError
	if errors.As(err, &fault) {
		return Invalid
	}
	if code, ok := protocolCode(err); ok {
		return classOfCode(code)
	}
	var authentication *AuthenticationError
	if isTLS(err) || errors.As(err, &authentication) {
		return Authentication
	}
	var configuration sarama.ConfigurationError
	if errors.As(err, &configuration) {
		return Invalid
	}
	if isNetwork(err) {
		return Unreachable
	}
	return Other
}

// protocolCode finds the Kafka error code in an error of either client.
func protocolCode(err error) (int16, bool) {
	var ours sarama.KError
	if errors.As(err, &ours) {
		return int16(ours), true
	}
	var wires *kerr.Error
	if errors.As(err, &wires) {
		return wires.Code, true
	}
	for code := int16(1); code <= lastCode; code++ { // sarama hides some codes so that only errors.Is finds them, that of SASL among them
		if errors.Is(err, sarama.KError(code)) {
			return code, true
		}
	}
	return 0, false
}

// lastCode lies above all error codes that Kafka has.
const lastCode = 150

// classOfCode sorts Kafka's error codes; those it does not list are Other.
func classOfCode(code int16) Class {
	switch sarama.KError(code) {
	case sarama.ErrBrokerNotAvailable, sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition, sarama.ErrRequestTimedOut,
		sarama.ErrNetworkException, sarama.ErrNotController, sarama.ErrConsumerCoordinatorNotAvailable, sarama.ErrReplicaNotAvailable,
		sarama.ErrListenerNotFound, sarama.ErrNotCoordinatorForConsumer, sarama.ErrOffsetsLoadInProgress:
		return Unreachable
	case sarama.ErrSASLAuthenticationFailed, sarama.ErrUnsupportedSASLMechanism, sarama.ErrIllegalSASLState:
		return Authentication
	case sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrTransactionalIDAuthorizationFailed, sarama.ErrDelegationTokenAuthorizationFailed, sarama.ErrSecurityDisabled:
		return Authorization
	case sarama.ErrUnknownTopicOrPartition, sarama.KError(unknownTopicID):
		return NotFound
	case sarama.ErrTopicAlreadyExists:
		return Exists
	case sarama.ErrInvalidTopic, sarama.ErrInvalidPartitions, sarama.ErrInvalidReplicationFactor, sarama.ErrInvalidReplicaAssignment,
		sarama.ErrInvalidConfig, sarama.ErrInvalidRequest, sarama.ErrUnsupportedVersion, sarama.ErrPolicyViolation,
		sarama.ErrUnsupportedForMessageFormat:
		return Invalid
	default:
		return Other
	}
}

// isTLS reports whether the handshake failed because one side did not like the other, rather than because the link broke.
func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
		link         *net.OpError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.As(err, &record) || errors.As(err, &link) && (link.Op == "remote error" || link.Op == "local error") // TLS alerts
}

// isNetwork reports whether an error is of the link: refused, reset, timed out, closed, or a name that does not resolve.
func isNetwork(err error) bool {
	for _, known := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE,
		sarama.ErrOutOfBrokers, sarama.ErrNotConnected, sarama.ErrClosedClient, sarama.ErrBrokerNotFound, sarama.ErrControllerNotAvailable,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var timeout net.Error
	return errors.As(err, &timeout)
}

// unknownTopicID is UNKNOWN_TOPIC_ID (KIP-516), which sarama has no name for.
const unknownTopicID = 100
