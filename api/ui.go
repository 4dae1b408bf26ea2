package api

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed web
var web embed.FS

// pagePolicy lets the page load and ask what this server serves and nothing else, and nobody frame it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ui serves the embedded page below /ui/. It is built from the folder ui of this repository, and checked in.
func ui() http.Handler {
	pages, err := fs.Sub(web, "web")
	if err != nil {
		panic("BUG: the embedded folder web is missing: " + err.Error())
	}
	files := http.StripPrefix("/ui/", http.FileServerFS(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", pagePolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-cache") // another version's page asks another version's API
		files.ServeHTTP(w, r)
	})
}
