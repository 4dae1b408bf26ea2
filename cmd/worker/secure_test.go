package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestAWorkerServesOverTLSAndSaysSo(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	s := alone(t)
	cert, key := ca.Files(t, "w1")
	s.Server.TLS = native.ServerTLS{CertFile: cert, KeyFile: key}
	s.Server.Auth.TokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(s.Server.Auth.TokenFile, []byte("s3cret"), 0o600))
	require.NoError(t, s.ValidateServer())
	v, err := openService(t.Context(), s, hclog.NewNullLogger())
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(v.member.address, "https://127.0.0.1:"), v.member.address)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx) }() // owned by the test, which reads ended
	peers := api.NewPeers(ca.File)
	defer peers.CloseIdleConnections()
	code := func(method, path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, v.member.address+path, http.NoBody)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := peers.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, code(http.MethodGet, "/api/v1/partitions", ""))
	require.Equal(t, http.StatusUnauthorized, code(http.MethodPut, "/ratelimiter?messagerate=5", "x"))
	require.Equal(t, http.StatusOK, code(http.MethodPut, "/ratelimiter?messagerate=5", "s3cret"))
	cancel()
	require.NoError(t, <-ended)
}
