package api

import (
	"net/http"

	"github.com/causeway-mirror/causeway/network"
)

// admission keeps the server answering whatever comes: so many requests are answered at once, and so many wait. Connections alone do not bound them,
// since one of HTTP/2 has many.
type admission struct {
	requests, waits *network.Pool
}

func newAdmission(cfg Config, deps Deps) *admission {
	name := deps.Identity.Route.String()
	return &admission{
		requests: network.NewPool(cfg.MaxRequests, "requests", name, deps.Registry),
		waits:    network.NewPool(cfg.MaxWaits, "waits", name, deps.Registry),
	}
}

// poolOf is where a request needs a place. Those that may wait for minutes have places of their own, or they would keep out all others; what probes
// and scrapers ask for needs none (nil): they must see a process that has too much to do.
func (a *admission) poolOf(r *http.Request) *network.Pool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return nil
	case "/api/v1/wait", "/api/v1/events":
		return a.waits
	}
	return a.requests
}

// refuseBusy answers what there is no place for.
func refuseBusy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	fail(w, http.StatusServiceUnavailable, "busy", "too many requests at once; try again")
}
