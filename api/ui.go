package api

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed web
var web embed.FS

// ui serves the embedded pages below /ui/. They run no foreign script: the policy allows what this server serves and nothing else.
func ui() http.Handler {
	pages, err := fs.Sub(web, "web")
	if err != nil {
		panic("BUG: the embedded folder web is missing: " + err.Error())
	}
	files := http.StripPrefix("/ui/", http.FileServerFS(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		files.ServeHTTP(w, r)
	})
}
