package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/conf"
	"github.com/causeway-mirror/causeway/internal/native"
)

// settingFlags are standalone's flags. They are kept as they were given and written over the file's values, so that flags win.
type settingFlags struct {
	set    *pflag.FlagSet
	config string
	unread []error // what of the settings could not be read, as faults of conf
	routeFlags
	workerFlags
}

// routeFlags are what of the route may be given as a flag.
type routeFlags struct {
	source, target             string
	sourceConfig, targetConfig string
	sourceName, targetName     string
	topics, exclude            []string
	start, delivery, isolation string
	rename                     string
	createTopics               bool
}

// workerFlags are what of the process may be given as a flag.
type workerFlags struct {
	state, listen       string
	streams, fetchers   int
	memory, spillMax    string
	commitInterval      time.Duration
	logLevel, logFormat string
}

// clusterFlags are the flags that say how the two clusters are reached; verify has them too.
func (f *settingFlags) clusterFlags(cmd *cobra.Command) {
	f.set = cmd.Flags()
	f.set.StringVar(&f.config, "config", "", "native YAML `FILE`; flags win over it")
	f.set.StringVar(&f.source, "source", "", "source brokers, `HOST:PORT,...`")
	f.set.StringVar(&f.target, "target", "", "target brokers, `HOST:PORT,...`")
	f.set.StringVar(&f.sourceConfig, "source-config", "", "Kafka client properties `FILE` for the source (TLS, SASL)")
	f.set.StringVar(&f.targetConfig, "target-config", "", "Kafka client properties `FILE` for the target (TLS, SASL)")
	f.set.StringVar(&f.sourceName, "source-name", "source", "`NAME` of the source in {source}, metrics and logs")
	f.set.StringVar(&f.targetName, "target-name", "target", "`NAME` of the target in {target}, metrics and logs")
	f.set.StringArrayVar(&f.topics, "topics", nil, "topics to mirror, `REGEX,...` (RE2, whole name)")
	f.set.StringArrayVar(&f.exclude, "exclude", nil, "topics to leave out, `REGEX,...` (RE2, whole name)")
	f.set.StringVar(&f.rename, "rename", "{topic}", "`NAME` on the target, made of {source}, {target} and {topic}")
}

// mirrorFlags are the others.
func (f *settingFlags) mirrorFlags(cmd *cobra.Command) {
	d := defaultSettings()
	set := cmd.Flags()
	set.StringVar(&f.start, "start", d.Route.Start, "`WHERE` topics of the first discovery begin: earliest, latest, a time (RFC 3339) or a duration back")
	set.StringVar(&f.delivery, "delivery", d.Route.Delivery, "`PROMISE`: exactly-once, the only one there is")
	set.StringVar(&f.isolation, "isolation", d.Route.Isolation, "`LEVEL`: read_committed or read_uncommitted")
	set.StringVar(&f.state, "state", d.Offsets.Dir, "`DIR` that keeps the positions")
	set.StringVar(&f.listen, "listen", d.Server.Listen, "`HOST:PORT` of API, metrics and UI")
	set.IntVar(&f.streams, "streams", d.Worker.Streams, "mirror loops")
	set.IntVar(&f.fetchers, "fetchers", d.Worker.Fetchers, "fetchers per source broker")
	set.StringVar(&f.memory, "memory", d.Worker.Memory.String(), "`SIZE` of the whole process in memory")
	set.StringVar(&f.spillMax, "spill-max", "0", "`SIZE` of data that may go to disk in an outage of the target; 0: none")
	set.DurationVar(&f.commitInterval, "commit-interval", d.Worker.CommitInterval.Duration(), "how often positions are stored")
	set.BoolVar(&f.createTopics, "create-topics", d.Route.Topics.Create, "create missing topics on the target")
	choices(cmd, "start", "earliest", "latest")
	choices(cmd, "delivery", "exactly-once")
	choices(cmd, "isolation", "read_committed", "read_uncommitted")
}

func (f *settingFlags) logFlags(cmd *cobra.Command) {
	d := defaultSettings()
	cmd.Flags().StringVar(&f.logLevel, "log-level", d.Log.Level, "`LEVEL`: trace, debug, info, warn, error or off")
	cmd.Flags().StringVar(&f.logFormat, "log-format", d.Log.Format, "`FORM`: text or json")
	logChoices(cmd)
}

func logChoices(cmd *cobra.Command) {
	choices(cmd, "log-level", "trace", "debug", "info", "warn", "error", "off")
	choices(cmd, "log-format", "text", "json")
}

// load returns the effective settings of standalone, or everything that is wrong with the file and the flags.
func (f *settingFlags) load() (settings, error) {
	return f.loadFor(defaultSettings(), (*settings).validate)
}

// loadShared is load for commands that take the file of any of the programs. A cluster's workers and controllers have defaults of their own.
func (f *settingFlags) loadShared() (settings, error) {
	s, err := f.loadFor(defaultSettings(), (*settings).validateShared)
	if s.clustered() {
		return f.loadFor(clusterSettings(), (*settings).validateShared)
	}
	return s, err
}

// loadFor returns the effective settings, s where nothing is said, or what judge and reading them find wrong.
func (f *settingFlags) loadFor(s settings, judge func(*settings) error) (settings, error) {
	var fileErr error
	f.unread = nil
	if f.config != "" {
		fileErr = s.loadFile(f.config)
	}
	flagErr := errors.Join(f.applyClusters(&s), f.applyMirror(&s))
	if s.Route.Topics.Rename == "" { // names are kept; shown as such
		s.Route.Topics.Rename = handler.DefaultConfig().Rename
	}
	// What could not be read may have named what is missing now; what is there is judged in the same go.
	judged := native.Without(judge(&s), errors.Join(append(f.unread, fileErr)...))
	return s, errors.Join(fileErr, flagErr, judged)
}

func (f *settingFlags) given(name string) bool { return f.set.Changed(name) }

// over writes value into place if the flag was given.
func over[T any](f *settingFlags, name string, value T, place *T) {
	if f.given(name) {
		*place = value
	}
}

func (f *settingFlags) applyClusters(s *settings) error {
	sourceErr := f.applyCluster(&s.Route.Source, "source", f.source, f.sourceConfig)
	targetErr := f.applyCluster(&s.Route.Target, "target", f.target, f.targetConfig)
	over(f, "source-name", f.sourceName, &s.Route.Source.Name)
	over(f, "target-name", f.targetName, &s.Route.Target.Name)
	over(f, "topics", splitAll(f.topics), &s.Route.Topics.Include)
	over(f, "exclude", splitAll(f.exclude), &s.Route.Topics.Exclude)
	over(f, "rename", f.rename, &s.Route.Topics.Rename)
	return errors.Join(sourceErr, targetErr)
}

// applyCluster takes a cluster from a properties file, if one is named, and its brokers from the flag.
func (f *settingFlags) applyCluster(c *cluster.Config, flag, bootstrap, file string) error {
	if f.given(flag) {
		c.Bootstrap = splitList(bootstrap)
	}
	if f.given(flag + "-config") {
		properties, err := cluster.LoadProperties(file)
		if err != nil {
			f.unread = append(f.unread, &conf.FaultError{Key: "route." + flag})
			return fault("--"+flag+"-config", file, err.Error())
		}
		read, err := cluster.FromProperties(c.Name, properties)
		if len(read.Bootstrap) == 0 || f.given(flag) {
			read.Bootstrap = c.Bootstrap
		}
		if err != nil { // of what is wrong only the brokers are taken, so that they are not called missing
			c.Bootstrap = read.Bootstrap
			return native.Prefixed(err, "--"+flag+"-config "+file+": ")
		}
		*c = read
	}
	return nil
}

func (f *settingFlags) applyMirror(s *settings) error {
	over(f, "start", f.start, &s.Route.Start)
	over(f, "delivery", f.delivery, &s.Route.Delivery)
	over(f, "isolation", f.isolation, &s.Route.Isolation)
	over(f, "state", f.state, &s.Offsets.Dir)
	over(f, "listen", f.listen, &s.Server.Listen)
	over(f, "streams", f.streams, &s.Worker.Streams)
	over(f, "fetchers", f.fetchers, &s.Worker.Fetchers)
	over(f, "commit-interval", conf.Duration(f.commitInterval), &s.Worker.CommitInterval)
	over(f, "create-topics", f.createTopics, &s.Route.Topics.Create)
	over(f, "log-level", f.logLevel, &s.Log.Level)
	over(f, "log-format", f.logFormat, &s.Log.Format)
	return errors.Join(f.size("memory", f.memory, &s.Worker.Memory), f.size("spill-max", f.spillMax, &s.Worker.Spill.MaxBytes))
}

func (f *settingFlags) size(name, text string, place *conf.Bytes) error {
	if !f.given(name) {
		return nil
	}
	if err := place.UnmarshalText([]byte(text)); err != nil {
		return fault("--"+name, text, valueless(err))
	}
	return nil
}

func splitAll(lists []string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, native.SplitPatterns(list)...)
	}
	return all
}

// splitList cuts at commas; empty items stay, so that Validate can name them.
func splitList(text string) []string {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
