package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRateLimiterAnswersAsItAlwaysDid(t *testing.T) {
	t.Parallel()
	var set []float64
	h := NewRateLimiter(func(rate float64) error {
		if rate == 13 {
			return errors.New("unlucky")
		}
		set = append(set, rate)
		return nil
	})
	for _, row := range []struct {
		method, target string
		code           int
		body           string
	}{
		{"PUT", "/ratelimiter?messagerate=1000", 200, "Successfully set rate: 1000\n"},
		{"PUT", "/ratelimiter?messagerate=0.5", 200, "Successfully set rate: 0.5\n"},
		{"PUT", "/ratelimiter?messagerate=25000000", 200, "Successfully set rate: 25000000\n"},
		{"PUT", "/ratelimiter", 400, "Failed to add new rate limit due to missing parameter messagerate\n"},
		{"PUT", "/ratelimiter?messagerate=0", 400, "Failed to add new topic, with exception: rate must be positive\n"},
		{"PUT", "/ratelimiter?messagerate=NaN", 400, "Failed to add new topic, with exception: rate must be positive\n"},
		{"PUT", "/ratelimiter?messagerate=-Inf", 400, "Failed to add new topic, with exception: rate must be positive\n"},
		{"PUT", "/ratelimiter?messagerate=x", 400, "Failed to add new topic, with exception: strconv.ParseFloat: parsing \"x\": invalid syntax\n"},
		{"PUT", "/ratelimiter?messagerate=13", 400, "Failed to add new topic, with exception: unlucky\n"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(row.method, row.target, http.NoBody))
		require.Equal(t, row.code, w.Code, row.target)
		require.Equal(t, row.body, w.Body.String())
	}
	require.Equal(t, []float64{1000, 0.5, 2.5e7}, set)
	for target, code := range map[string]int{"/ratelimiter": 405, "/topics": 404, "/ratelimiter/": 404} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, http.NoBody))
		require.Equal(t, code, w.Code, target)
	}
}
