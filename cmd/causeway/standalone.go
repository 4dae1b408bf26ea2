package main

import (
	"github.com/causeway-mirror/causeway/cmd/internal/engine"
)

// newMirror builds the data path of a route.
func newMirror(s settings, deps engine.Deps) (mirrorer, error) {
	return engine.New(&s.File, s.worker(), deps)
}
