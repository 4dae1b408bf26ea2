package api

import (
	_ "embed"
	"net/http"
)

// document describes the native API; a test holds it against the handlers.
//
//go:embed openapi.yaml
var document []byte

// openAPI answers GET /api/v1/openapi.yaml.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(document)
}
