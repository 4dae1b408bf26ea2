package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/causeway-mirror/causeway/internal/graphite"
	"github.com/causeway-mirror/causeway/internal/native"
)

// settings are everything that the worker was told, by the native file or by the old options, in the form of the file.
type settings struct {
	native.File

	id       string
	mute     bool            // no HTTP is served
	hostname string          // under which others reach this process; empty: the machine's
	rateable bool            // PUT /ratelimiter may change route.limits.records_per_second
	graphite graphite.Config // without an address nothing is reported
	warnings []string
}

// read understands a command line: the native file, or the old options.
func read(args []string) (settings, error) {
	if path, ok := nativeFile(args); ok {
		return fromNative(path)
	}
	return fromOptions(args)
}

// nativeFile finds the file if the line names one and nothing else.
func nativeFile(args []string) (string, bool) {
	name, path, joined := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	if name != "config" || !strings.HasPrefix(args[0], "-") {
		return "", false
	}
	if !joined && len(args) == 2 {
		path = args[1]
	} else if len(args) != 1 {
		return "", false
	}
	return path, path != ""
}

// fromNative reads the native file; all faults at once.
func fromNative(path string) (settings, error) {
	s := settings{File: native.Default()}
	fileErr := s.Load(path)
	judged := errors.Join(s.ValidateRoute(), s.ValidateWorker(), s.ValidateCoordination(),
		s.ValidateOffsets(native.StoreZooKeeper, native.StoreFile), s.ValidateServer(), s.ValidateLog())
	s.id, s.rateable = s.WorkerID("worker"), true
	return s, native.Judged(path, fileErr, judged)
}

// fault is one thing wrong with an old option.
func fault(option, value, reason string) error {
	if value == "" {
		return fmt.Errorf("-%s: %s", option, reason)
	}
	return fmt.Errorf("-%s %q: %s", option, value, reason)
}
