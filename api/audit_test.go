package api

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// auditedServer is one whose audit can be read.
func auditedServer(t *testing.T) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := serverOf(t, "controller", leader{answeringFleet{}}, func(c *Config, _ *fakeMirror) { c.TokenFile = tokenFile(t, "s3cret") })
	s.audit.log = hclog.New(&hclog.LoggerOptions{Output: &log, DisableTime: true, JSONFormat: true})
	return s, &log
}

func TestEveryWriteIsLoggedWithWhoAndWhatAndHowItEnded(t *testing.T) {
	t.Parallel()
	s, log := auditedServer(t)
	write := func(method, path, body, token string) string {
		log.Reset()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		s.ServeHTTP(httptest.NewRecorder(), r)
		return log.String()
	}
	const reset = "/api/v1/topics/orders/partitions/3/reset"
	require.JSONEq(t, `{"@level":"info","@message":"a write was asked for","method":"POST","uri":"`+reset+`","status":202,"client":"192.0.2.1:1234","body":"{\"to\":  \"latest\"}"}`,
		write(http.MethodPost, reset, "{\"to\": \n\"latest\"}", "s3cret"))
	require.Contains(t, write(http.MethodPost, "/api/v1/rebalance", "", "s3cret"), `"status":202`)
	require.Contains(t, write(http.MethodDelete, "/api/v1/topics/a%0Ab", "", "s3cret"), `"uri":"/api/v1/topics/a%0Ab"`, "one line for one write")
	refused := write(http.MethodPost, "/api/v1/rebalance", "", "guess")
	require.Contains(t, refused, `"status":401`)
	require.NotContains(t, refused, "guess")
	long := write(http.MethodPost, "/api/v1/topics/orders/expand", `{"partitions":3}`+strings.Repeat(" ", 5000)+"x", "s3cret")
	require.Less(t, len(long), 1000)
	require.Empty(t, write(http.MethodGet, "/api/v1/status", "", "s3cret"), "reads are not")
}

func TestWhoGuessesTokensFillsNoLog(t *testing.T) {
	t.Parallel()
	s, log := auditedServer(t)
	synctest.Test(t, func(t *testing.T) {
		guess := func() {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/rebalance", http.NoBody)
			s.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 100 {
			guess()
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
		time.Sleep(refusalsEvery)
		guess()
		require.Equal(t, 2, strings.Count(log.String(), "\n"))
		require.Contains(t, log.String(), `"refused_before":99`)
	})
}
