package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		give error
		want Class
	}{
		{nil, Other},
		{errors.New("anything"), Other},
		{context.Canceled, Other},
		{context.DeadlineExceeded, Unreachable},
		{io.EOF, Unreachable},
		{io.ErrUnexpectedEOF, Unreachable},
		{net.ErrClosed, Unreachable},
		{os.ErrDeadlineExceeded, Unreachable},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, Unreachable},
		{&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, Unreachable},
		{sarama.Wrap(sarama.ErrOutOfBrokers, io.EOF), Unreachable},
		{sarama.ErrNotController, Unreachable},
		{sarama.ErrRequestTimedOut, Unreachable},
		{kerr.NotLeaderForPartition, Unreachable},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, Authentication},
		{&AuthenticationError{Mechanism: "SCRAM-SHA-256", Err: io.EOF}, Authentication},
		{sarama.ErrSASLAuthenticationFailed, Authentication},
		{sarama.Wrap(sarama.ErrOutOfBrokers, sarama.Wrap(sarama.ErrSASLAuthenticationFailed, errors.New("why"))), Authentication},
		{kerr.SaslAuthenticationFailed, Authentication},
		{kerr.UnsupportedSaslMechanism, Authentication},
		{sarama.ErrTopicAuthorizationFailed, Authorization},
		{kerr.ClusterAuthorizationFailed, Authorization},
		{kerr.TransactionalIDAuthorizationFailed, Authorization},
		{sarama.ErrUnknownTopicOrPartition, NotFound},
		{kerr.UnknownTopicID, NotFound},
		{sarama.ErrTopicAlreadyExists, Exists},
		{&sarama.TopicError{Err: sarama.ErrPolicyViolation}, Invalid},
		{&sarama.TopicPartitionError{Err: sarama.ErrInvalidPartitions}, Invalid},
		{kerr.InvalidConfig, Invalid},
		{sarama.ConfigurationError("x"), Invalid},
		{&ConfigError{Key: "x"}, Invalid},
	} {
		t.Run(fmt.Sprint(row.give), func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, Classify(row.give))
			if row.give != nil {
				require.Equal(t, row.want, Classify(fmt.Errorf("create topic x: %w", row.give)))
			}
		})
	}
	require.Equal(t, "authorization", Authorization.String())
	require.Equal(t, "other", Class(77).String())
}
