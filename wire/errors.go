package wire

import (
	"errors"
	"fmt"
)

var (
	// ErrUnsupported is the answer when the broker does not know a request, or not in a version that serves.
	ErrUnsupported = errors.New("the broker does not support this request")

	// ErrClosed is the cause in a LinkError when the connection or the client was closed on our side.
	ErrClosed = errors.New("closed on our side")
	// ErrTooLarge says that a topic takes no batch of that size.
	ErrTooLarge = errors.New("the batch is larger than the topic takes")
	// ErrRefused says that a topic does not take a batch for what it is.
	ErrRefused = errors.New("the topic does not take the batch")
)

// LinkError is a failure of the connection to a broker. Whether the broker did what it was asked for is not known.
type LinkError struct {
	Op     string // what was being done
	Broker int32  // -1 for a bootstrap address
	Addr   string // host:port
	Err    error
}

// Error names the broker as well as its address: the address alone says little behind a load balancer.
func (e *LinkError) Error() string {
	if e.Broker < 0 {
		return fmt.Sprintf("%s (%s): %v", e.Op, e.Addr, e.Err)
	}
	return fmt.Sprintf("%s (broker %d, %s): %v", e.Op, e.Broker, e.Addr, e.Err)
}

// Unwrap gives the cause.
func (e *LinkError) Unwrap() error { return e.Err }

// AuthError says that the cluster refused our credentials, or that we could not make any: trying again without a change is of no use. It
// is found with errors.As in what Dial, Request and a connection's Err return.
type AuthError struct {
	Mechanism string
	Message   string // what the broker added, may be empty
	Err       error  // kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, or the mechanism's own error
}

// Error never holds a secret: brokers don't send them back, and mechanisms don't print them.
func (e *AuthError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("authenticate with %s: %v", e.Mechanism, e.Err)
	}
	return fmt.Sprintf("authenticate with %s: %v: %s", e.Mechanism, e.Err, e.Message)
}

// Unwrap gives the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// ClusterError says that an address which was a broker of our cluster, or should lead to it, belongs to another cluster now.
type ClusterError struct {
	Want string
	Got  string
}

// Error names both cluster ids.
func (e *ClusterError) Error() string {
	return fmt.Sprintf("the broker belongs to cluster %s and not to %s", e.Got, e.Want)
}

// FrameError is an answer that cannot be one: the peer is no Kafka broker, expects TLS, or the stream is out of step.
type FrameError struct {
	Reason string
	Value  int64
}

// Error says what did not fit.
func (e *FrameError) Error() string { return fmt.Sprintf("%s: %d", e.Reason, e.Value) }
