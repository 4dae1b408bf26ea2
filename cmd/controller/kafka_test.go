package main

import (
	"context"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// Whoever asked, and the end of the process, waited as long as the first one did for a ZooKeeper that does not answer.
func TestNobodyWaitsForAnothersQuestionAboutBrokers(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	k := newKafka(endpoint{zookeeper: silent.Addr().String()}, false, hclog.NewNullLogger())
	first, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // owned by the test, which reads ended
		_, err := k.Counts(first)
		ended <- err
	}()
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()

	second, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.Counts(second)
	require.ErrorIs(t, err, context.Canceled)
	k.close()
	require.Empty(t, ended, "the first one still asks")
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}
