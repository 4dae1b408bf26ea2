package api

import (
	"errors"
	"math"
	"net/http"
	"strconv"
)

// errNoRate is what uReplicator's limiter says of rates that are none.
var errNoRate = errors.New("rate must be positive")

// NewRateLimiter is the REST of uReplicator's worker: PUT /ratelimiter?messagerate=R with R in records a second. set is told of a good rate; its
// error goes to the client.
func NewRateLimiter(set func(recordsPerSecond float64) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/ratelimiter":
			compatError(w, r, http.StatusNotFound)
		case r.Method != http.MethodPut:
			w.Header().Set("Allow", http.MethodPut)
			compatError(w, r, http.StatusMethodNotAllowed)
		default:
			limitRate(w, r.URL.Query().Get("messagerate"), set)
		}
	})
}

func limitRate(w http.ResponseWriter, text string, set func(float64) error) {
	if text == "" {
		compatText(w, http.StatusBadRequest, "Failed to add new rate limit due to missing parameter messagerate\n")
		return
	}
	rate, err := strconv.ParseFloat(text, 64)
	if err == nil && (!(rate > 0) || math.IsInf(rate, 0)) {
		err = errNoRate
	}
	if err == nil {
		err = set(rate)
	}
	if err != nil {
		compatText(w, http.StatusBadRequest, "Failed to add new topic, with exception: %s\n", err)
		return
	}
	compatText(w, http.StatusOK, "Successfully set rate: %s\n", text) // as it was typed
}
