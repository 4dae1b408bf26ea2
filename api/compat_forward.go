package api

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
)

// passedOn marks a call that a standby passed on, so that two that take each other for the leader do not play it back and forth.
const passedOn = "Causeway-Passed-On"

// passTimeout bounds a call that is passed on.
const passTimeout = 30 * time.Second

// newForwarder passes calls on to the leader, signed by a name. A token goes along: the leader asks for it, too.
func newForwarder(name string, lead Leadership, peers http.RoundTripper, log hclog.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport: peers,
		Rewrite: func(p *httputil.ProxyRequest) {
			if target, ok := p.In.Context().Value(targetKey{}).(*url.URL); ok {
				p.SetURL(target)
				p.Out.URL.Path, p.Out.URL.RawPath, p.Out.Host = p.In.URL.Path, p.In.URL.RawPath, target.Host
			}
			p.Out.Header.Set(passedOn, name)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				log.Warn("a call could not be passed on to the leader", "error", err)
			}
			noLeader(w)
		},
		ErrorLog: log.StandardLogger(nil),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(passedOn) != "" {
			noLeader(w)
			return
		}
		target, ok := leaderURL(r.Context(), lead)
		if !ok {
			noLeader(w)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), targetKey{}, target), passTimeout)
		defer cancel()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	})
}

// targetKey is the context's key for the leader's base URL.
type targetKey struct{}

// leaderURL gives the leader's base URL.
func leaderURL(ctx context.Context, lead Leadership) (*url.URL, bool) {
	_, address := lead.Leader(ctx)
	if address == "" {
		return nil, false
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	return u, err == nil && u.Host != ""
}

func noLeader(w http.ResponseWriter) {
	compatText(w, http.StatusServiceUnavailable, "No controller leads the cluster at the moment\n")
}
