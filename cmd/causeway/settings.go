package main

import (
	"errors"
	"net"

	"github.com/causeway-mirror/causeway/internal/native"
)

// settings are everything that standalone can be told, in the form of the native file. Flags write into the same struct afterwards.
type settings struct {
	native.File `yaml:",inline"`

	stateKey string // what names the folder of the positions in faults
}

// clusterSettings are what a cluster's workers and controllers do where nothing is said.
func clusterSettings() settings {
	return settings{File: native.Default(), stateKey: "offsets.dir (--state)"}
}

// defaultSettings are standalone's.
func defaultSettings() settings {
	s := clusterSettings()
	s.Offsets.Store, s.Server.Listen = native.StoreFile, "127.0.0.1:8080"
	return s
}

// loadFile reads the native YAML file over s.
func (s *settings) loadFile(path string) error { return native.LoadInto(path, s) }

// worker is the name under which this process appears.
func (s *settings) worker() string { return s.WorkerID("standalone") }

// filter compiles the topic patterns.
func (s *settings) filter() (native.Filter, error) { return s.Filter() }

// validate names everything that is wrong, each with key, value and reason.
func (s *settings) validate() error {
	var topicsErr error
	if len(s.Route.Topics.Include) == 0 {
		topicsErr = fault("route.topics.include (--topics)", "", "must name at least one topic or pattern")
	}
	return errors.Join(s.ValidateRoute(), s.ValidateMapping(), topicsErr, s.ValidateWorker(), s.validateRest())
}

func (s *settings) validateRest() error {
	return errors.Join(s.ValidateOffsets(native.StoreFile), s.ValidateLog(), s.ValidateServer())
}

// localAPI is where a mirror with these settings answers on this machine.
func (s *settings) localAPI() (string, error) {
	host, port, err := net.SplitHostPort(s.Server.Listen)
	if err != nil {
		return "", fault("server.listen (--listen)", s.Server.Listen, "must be HOST:PORT or :PORT")
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if s.Server.TLS.On() {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}

// fault is one wrong value: key, value, reason.
func fault(key, value, reason string) error { return native.Fault(key, value, reason) }
