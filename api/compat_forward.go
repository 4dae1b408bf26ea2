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

// ErrNoLeader is what a Fleet answers when its process leads no longer.
var ErrNoLeader = errors.New("no controller leads the cluster at the moment")

// forwarder passes calls on to the leader, signed by a name.
type forwarder struct {
	name   string
	lead   Leadership
	refuse func(http.ResponseWriter) // answers where there is no leader to be reached
	proxy  *httputil.ReverseProxy
}

// newForwarder passes calls on to the leader. A token goes along: the leader asks for it, too.
func newForwarder(name string, lead Leadership, peers http.RoundTripper, log hclog.Logger, refuse func(http.ResponseWriter)) *forwarder {
	proxy := &httputil.ReverseProxy{
		Transport: peers,
		Rewrite: func(p *httputil.ProxyRequest) {
			if target, ok := p.In.Context().Value(targetKey{}).(*url.URL); ok {
				p.SetURL(target)
				p.Out.URL.Path, p.Out.URL.RawPath, p.Out.Host = p.In.URL.Path, p.In.URL.RawPath, target.Host
			}
			p.Out.Header.Set(passedOn, name)
			p.SetXForwarded() // the leader logs who asked
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				log.Warn("a call could not be passed on to the leader", "error", err)
			}
			refuse(w)
		},
		ErrorLog: log.StandardLogger(nil),
	}
	return &forwarder{name: name, lead: lead, refuse: refuse, proxy: proxy}
}

// ServeHTTP passes a call on that does not wait for anything.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.pass(w, r, 0) }

// pass passes a call on whose answer may wait for so long.
func (f *forwarder) pass(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	target, ok := f.leader(r)
	if !ok {
		f.refuse(w)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), targetKey{}, target), passTimeout+wait)
	defer cancel()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// leader gives the base URL of the leader that a call is for; false if there is none, or it is this process: one that was elected and does not know
// its cluster yet, or that knows it no longer.
func (f *forwarder) leader(r *http.Request) (*url.URL, bool) {
	id, address := f.lead.Leader(r.Context())
	if r.Header.Get(passedOn) != "" || id == f.name || address == "" {
		return nil, false
	}
	u, err := url.Parse(strings.TrimSuffix(address, "/"))
	return u, err == nil && u.Host != ""
}

// targetKey is the context's key for the leader's base URL.
type targetKey struct{}

func noLeader(w http.ResponseWriter) {
	compatText(w, http.StatusServiceUnavailable, "No controller leads the cluster at the moment\n")
}
