package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/route"
)

// settings are everything that standalone can be told, in the form of its YAML file. Flags write into the same struct afterwards.
type settings struct {
	Route   routeSettings  `yaml:"route"`
	Worker  workerSettings `yaml:"worker"`
	Offsets offsetSettings `yaml:"offsets"`
	Server  serverSettings `yaml:"server"`
	Log     logSettings    `yaml:"log"`
}

type routeSettings struct {
	ID        string            `yaml:"id"`
	Source    cluster.Config    `yaml:"source"`
	Target    cluster.Config    `yaml:"target"`
	Topics    topicSettings     `yaml:"topics"`
	Start     string            `yaml:"start"`
	Isolation string            `yaml:"isolation"`
	Delivery  string            `yaml:"delivery"`
	On        map[string]string `yaml:"on"`
	Loops     string            `yaml:"loops"`
}

type topicSettings struct {
	Include          []string      `yaml:"include"`
	Exclude          []string      `yaml:"exclude"`
	Create           bool          `yaml:"create"`
	DiscoverInterval conf.Duration `yaml:"discover_interval"`

	handler.Config `yaml:",inline"`
}

type workerSettings struct {
	ID              string        `yaml:"id"`
	Streams         int           `yaml:"streams"`
	Fetchers        int           `yaml:"fetchers"`
	Memory          conf.Bytes    `yaml:"memory"`
	Spill           spillSettings `yaml:"spill"`
	InFlight        string        `yaml:"in_flight"`
	AckWindow       int           `yaml:"ack_window"`
	CommitInterval  conf.Duration `yaml:"commit_interval"`
	ShutdownTimeout conf.Duration `yaml:"shutdown_timeout"`
}

type spillSettings struct {
	MaxBytes conf.Bytes `yaml:"max_bytes"`
}

type offsetSettings struct {
	Store string `yaml:"store"`
	Dir   string `yaml:"dir"`
}

type serverSettings struct {
	Listen      string        `yaml:"listen"`
	IdleTimeout conf.Duration `yaml:"idle_timeout"`
}

type logSettings struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// minMemory is what the program needs before it can hold a single large batch on its way.
const minMemory = 64 << 20

func defaultSettings() settings {
	return settings{
		Route: routeSettings{
			ID:     "1",
			Source: cluster.Config{Name: "source"},
			Target: cluster.Config{Name: "target"},
			Topics: topicSettings{Create: true, DiscoverInterval: conf.Duration(30 * time.Second), Config: handler.DefaultConfig()},
			Start:  "earliest", Isolation: "read_committed", Delivery: "exactly-once", On: defaultPolicies(), Loops: "refuse",
		},
		Worker: workerSettings{
			Streams: 4, Fetchers: 4, Memory: 256 << 20, InFlight: "auto", AckWindow: 1,
			CommitInterval: conf.Duration(5 * time.Second), ShutdownTimeout: conf.Duration(30 * time.Second),
		},
		Offsets: offsetSettings{Store: "file", Dir: "./causeway-state"},
		Server:  serverSettings{Listen: "127.0.0.1:8080", IdleTimeout: conf.Duration(5 * time.Minute)},
		Log:     logSettings{Level: "info", Format: "text"},
	}
}

// defaultPolicies says what happens when the source or the target is not as the checkpoint left it.
func defaultPolicies() map[string]string {
	return map[string]string{
		"truncated": "continue", "recreated": "continue", "diverged": "halt", "deleted": "halt", "target_lost": "halt",
		"foreign_writer": "continue", "oversized": "halt", "refused": "halt",
	}
}

// loadFile reads the native YAML file over s.
func (s *settings) loadFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("--config %q: %w", path, err)
	}
	if err = conf.Decode(text, s, os.LookupEnv); err != nil {
		return prefixed(err, path+": ")
	}
	return nil
}

// routeName is the route as metrics and logs write it.
func (s *settings) routeName() route.Route {
	return route.Route{Source: s.Route.Source.Name, Target: s.Route.Target.Name, ID: s.Route.ID}
}

// worker is the name under which this process appears.
func (s *settings) worker() string {
	if s.Worker.ID != "" {
		return s.Worker.ID
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "standalone"
}

// inFlight is the bound of unanswered bytes per target broker; 0 lets the producer find it.
func (s *settings) inFlight() (int64, error) {
	if s.Worker.InFlight == "auto" || s.Worker.InFlight == "" {
		return 0, nil
	}
	var b conf.Bytes
	if err := b.UnmarshalText([]byte(s.Worker.InFlight)); err != nil || b == 0 {
		return 0, fault("worker.in_flight", s.Worker.InFlight, "must be auto or a size such as 8MiB")
	}
	return int64(b), nil
}

// filter compiles the topic patterns.
func (s *settings) filter() (topicFilter, error) {
	var (
		f      topicFilter
		faults []error
	)
	compile := func(key, flag string, texts []string) (out []pattern) {
		for i, text := range texts {
			p, err := compilePattern(text)
			if err != nil {
				faults = append(faults, fault(fmt.Sprintf("route.topics.%s[%d] (%s)", key, i, flag), text, err.Error()))
				continue
			}
			out = append(out, p)
		}
		return out
	}
	f.include = compile("include", "--topics", s.Route.Topics.Include)
	f.exclude = compile("exclude", "--exclude", s.Route.Topics.Exclude)
	return f, errors.Join(faults...)
}

// validate names everything that is wrong, each with key, value and reason.
func (s *settings) validate() error {
	_, filterErr := s.filter()
	_, inFlightErr := s.inFlight()
	return errors.Join(s.validateRoute(), filterErr, s.validateWorker(), inFlightErr, s.validateRest())
}

func (s *settings) validateRoute() error {
	r := &s.Route
	faults := []error{
		prefixed(r.Source.Validate(), "route.source (--source): "),
		prefixed(r.Target.Validate(), "route.target (--target): "),
		prefixed(r.Topics.Validate(), "route.topics."),
		s.validateModes(),
	}
	if len(r.Topics.Include) == 0 {
		faults = append(faults, fault("route.topics.include (--topics)", "", "must name at least one topic or pattern"))
	}
	for key, name := range map[string]string{"route.source.name": r.Source.Name, "route.target.name": r.Target.Name, "route.id": r.ID} {
		if name == "" || strings.ContainsAny(name, "@/ ") {
			faults = append(faults, fault(key, name, "must not be empty or hold @, / or spaces"))
		}
	}
	if sameCluster(r.Source.Bootstrap, r.Target.Bootstrap) && r.Topics.Rename == "{topic}" && len(r.Topics.Mapping) == 0 && r.Topics.MappingFile == "" {
		faults = append(faults, fault("route.target (--target)", strings.Join(r.Target.Bootstrap, ","), "is the source too, and topics keep their names: each would be copied onto itself"))
	}
	faults = append(faults, positive("route.topics.discover_interval", r.Topics.DiscoverInterval), validatePolicies(r.On))
	return errors.Join(faults...)
}

// validateModes judges the words of the route that have a default.
func (s *settings) validateModes() error {
	return errors.Join(
		oneOf("route.isolation (--isolation)", s.Route.Isolation, "read_committed", "read_uncommitted"),
		oneOf("route.delivery (--delivery)", s.Route.Delivery, "exactly-once", "at-least-once"),
		oneOf("route.loops", s.Route.Loops, "refuse"),
		validateStart(s.Route.Start),
	)
}

// validatePolicies accepts the defaults only: the other answers are not there yet, and a policy that does nothing would be a lie.
func validatePolicies(on map[string]string) error {
	defaults := defaultPolicies()
	var faults []error
	for _, key := range sortedKeys(on) {
		want, known := defaults[key]
		switch {
		case !known:
			faults = append(faults, fault("route.on."+key, on[key], "unknown; known are "+strings.Join(sortedKeys(defaults), ", ")))
		case on[key] != want:
			faults = append(faults, fault("route.on."+key, on[key], "this version can only "+want))
		}
	}
	return errors.Join(faults...)
}

func (s *settings) validateWorker() error {
	w := &s.Worker
	faults := []error{
		atLeastOne("worker.streams (--streams)", w.Streams),
		atLeastOne("worker.fetchers (--fetchers)", w.Fetchers),
		atLeastOne("worker.ack_window", w.AckWindow),
		positive("worker.commit_interval (--commit-interval)", w.CommitInterval),
		positive("worker.shutdown_timeout", w.ShutdownTimeout),
	}
	if w.Memory < minMemory {
		faults = append(faults, fault("worker.memory (--memory)", w.Memory.String(), "must be at least "+conf.Bytes(minMemory).String()))
	}
	if w.Spill.MaxBytes != 0 {
		faults = append(faults, fault("worker.spill.max_bytes (--spill-max)", w.Spill.MaxBytes.String(), "this version cannot spill to disk; must be 0"))
	}
	return errors.Join(faults...)
}

func (s *settings) validateRest() error {
	faults := []error{
		oneOf("offsets.store", s.Offsets.Store, "file"),
		s.validateLog(),
		positive("server.idle_timeout", s.Server.IdleTimeout),
	}
	if s.Offsets.Dir == "" {
		faults = append(faults, fault("offsets.dir (--state)", "", "must name a folder"))
	}
	if _, port, err := net.SplitHostPort(s.Server.Listen); err != nil {
		faults = append(faults, fault("server.listen (--listen)", s.Server.Listen, "must be HOST:PORT or :PORT"))
	} else if _, err = strconv.ParseUint(port, 10, 16); err != nil {
		faults = append(faults, fault("server.listen (--listen)", s.Server.Listen, "the port must be a number from 0 to 65535"))
	}
	return errors.Join(faults...)
}

func (s *settings) validateLog() error {
	levelErr := error(nil)
	if hclog.LevelFromString(s.Log.Level) == hclog.NoLevel {
		levelErr = fault("log.level (--log-level)", s.Log.Level, "must be trace, debug, info, warn, error or off")
	}
	return errors.Join(levelErr, oneOf("log.format (--log-format)", s.Log.Format, "text", "json"))
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
	return "http://" + net.JoinHostPort(host, port), nil
}

// validateStart accepts earliest, latest, a time or a duration back.
func validateStart(text string) error {
	if text == "earliest" || text == "latest" {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return nil
	}
	return fault("route.start (--start)", text, "must be earliest, latest, a time (RFC 3339) or a duration back such as 24h")
}

func sameCluster(a, b []string) bool {
	return slices.ContainsFunc(a, func(address string) bool { return slices.Contains(b, address) })
}

// fault is one wrong value: key, value, reason.
func fault(key, value, reason string) error { return fmt.Errorf("%s %q: %s", key, value, reason) }

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fault(key, value, "must be "+strings.Join(allowed, " or "))
}

func atLeastOne(key string, n int) error {
	if n >= 1 {
		return nil
	}
	return fault(key, strconv.Itoa(n), "must be at least 1")
}

func positive(key string, d conf.Duration) error {
	if d > 0 {
		return nil
	}
	return fault(key, d.String(), "must be more than 0s")
}

// prefixed puts a text before each of the errors that were joined into err.
func prefixed(err error, prefix string) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, prefixed(e, prefix))
		}
		return errors.Join(all...)
	}
	return fmt.Errorf("%s%w", prefix, err)
}
