package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// guard lets only those change something who know the token, and no page of another origin. Whoever may reach the port may read.
type guard struct {
	readOnly  bool   // nobody may
	tokenFile string // empty: everybody may
	origins   *http.CrossOriginProtection
	log       hclog.Logger
}

// errNoToken says that there is nothing to compare with.
var errNoToken = errors.New("the file is empty")

// token reads the file. That is done for every write, so that a replaced token counts at once and a withdrawn one no longer.
func (g *guard) token() (string, error) {
	text, err := os.ReadFile(g.tokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("read the token: %s: %w", g.tokenFile, errNoToken)
	}
	return token, nil
}

// admits says whether a request may go on; if not, it is answered. A token that can't be read admits nobody.
func (g *guard) admits(w http.ResponseWriter, r *http.Request) bool {
	if !changes(r.Method) {
		return true
	}
	if err := g.origins.Check(r); err != nil { // another site's page, in the browser of somebody who may reach this port
		fail(w, http.StatusForbidden, "cross_origin", "what a page of another origin asks for is not done")
		return false
	}
	if g.readOnly {
		fail(w, http.StatusForbidden, "read_only", "nothing is changed through this API: server.read_only is set")
		return false
	}
	if g.tokenFile == "" {
		return true
	}
	token, err := g.token()
	if err != nil {
		g.log.Error("writes are refused: the token can't be read", "err", err)
		fail(w, http.StatusServiceUnavailable, "unavailable", "the server's token can't be read; its log says why")
		return false
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		w.Header().Set("WWW-Authenticate", `Bearer realm="causeway"`)
		fail(w, http.StatusUnauthorized, "unauthorized", r.Method+" needs the header Authorization: Bearer TOKEN")
	case !same(strings.TrimSpace(given), token):
		w.Header().Set("WWW-Authenticate", `Bearer realm="causeway", error="invalid_token"`)
		fail(w, http.StatusUnauthorized, "unauthorized", "the token is not the right one")
	default:
		return true
	}
	return false
}

// changes says that a method is not one of those that only read.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// same takes as long whatever the two have in common, and whatever their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
