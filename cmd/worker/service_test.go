package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/engine"
	"github.com/causeway-mirror/causeway/cmd/internal/program"
	"github.com/causeway-mirror/causeway/internal/native"
)

// alone are the settings of a worker that reaches nobody.
func alone(t *testing.T) settings {
	t.Helper()
	s := settings{File: native.Default(), id: "w1", rateable: true}
	s.Route.Source.Bootstrap, s.Route.Target.Bootstrap = []string{"127.0.0.1:1"}, []string{"127.0.0.1:2"}
	s.Route.Topics.Rename = "{topic}"
	s.Offsets.Store, s.Offsets.Dir = native.StoreFile, t.TempDir()
	s.Coordination.ZooKeeper, s.Server.Listen = "127.0.0.1:3", "127.0.0.1:0"
	return s
}

func TestWorkerThatReachesNobodyLivesAndEnds(t *testing.T) {
	t.Parallel()
	v, err := openService(t.Context(), alone(t), hclog.NewNullLogger())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.run(ctx) }() // owned by the test, which reads ended
	ask := func(method, path string) (code int, body string) {
		w := httptest.NewRecorder()
		v.server.ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
		return w.Code, w.Body.String()
	}
	code, body := ask(http.MethodGet, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "zookeeper 127.0.0.1:3")
	w := httptest.NewRecorder()
	v.server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/partitions", http.NoBody))
	require.Equal(t, "none", w.Header().Get(api.SessionHeader))
	code, body = ask(http.MethodPut, "/ratelimiter?messagerate=5")
	require.Equal(t, http.StatusOK, code, body)
	code, body = ask(http.MethodGet, "/metrics")
	require.Equal(t, http.StatusOK, code)
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "causeway_") && strings.Contains(line, "helix") {
			require.Contains(t, line, `route="@source@target@1"`)
		}
	}
	cancel()
	require.NoError(t, <-ended)
	require.Equal(t, api.StateDraining, v.Snapshot().State)
}

// Each of the two had the whole of it.
func TestPartitionsAndMirrorEndWithinOneShutdownTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &service{settings: alone(t), log: hclog.NewNullLogger()}
		limit := v.settings.Worker.ShutdownTimeout.Duration() + engine.StopGrace
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		stopped := make(chan struct{})
		began := time.Now()
		err := v.takePart(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(limit - time.Second)
			return nil
		}, func() { close(stopped) }, nil)
		require.ErrorIs(t, err, program.ErrFault)
		require.ErrorContains(t, err, "mirror did not stop")
		require.Equal(t, limit, time.Since(began))
		<-stopped
	})
}

func TestWhatCannotBeHadIsToldAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s := alone(t)
	s.Server.Listen, s.Offsets.Dir = l.Addr().String(), "/dev/null/x"
	s.Route.Topics.MappingFile = "/dev/null/y"
	_, err = openService(t.Context(), s, hclog.NewNullLogger())
	for _, key := range []string{"server.listen", "offsets.dir", "route.topics."} {
		require.ErrorContains(t, err, key)
	}
}

func TestFiguresHaveTheirOldNames(t *testing.T) {
	t.Parallel()
	s := alone(t)
	s.mute = true
	v, err := openService(t.Context(), s, hclog.NewNullLogger())
	require.NoError(t, err)
	defer func() { require.NoError(t, v.close()) }()
	require.Empty(t, v.address())
	var names []string
	for _, f := range newFigures(v, time.Now()).read() {
		names = append(names, f.Name)
	}
	for _, name := range []string{
		"OwnedPartitionsCount", "TotalBlockingQueueSize.0", "TotalBlockingQueueSize.3", "commitFailure.count", "addTopicPartitionFailure.m1_rate",
		"deleteTopicPartitionFailure.mean_rate",
	} {
		require.Contains(t, names, name)
	}
}
