package handler

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The values of Config.PartitionMismatch.
const (
	// Halt refuses a target topic that has fewer partitions than the source topic.
	Halt = "halt"
	// Modulo sends partition p to p modulo the target's count, as uReplicator does. Records of several source partitions mix in one target
	// partition; each keeps its own order.
	Modulo = "modulo"
)

// Config says what is mapped and changed. It is the part of a route's `topics` that concerns records.
type Config struct {
	// Rename is the target's name with {source} and {target} (cluster names) and {topic}; it must hold {topic}. Empty is "{topic}".
	Rename string `yaml:"rename"`
	// Mapping is source topic → target topic. It goes before MappingFile, which goes before Rename.
	Mapping map[string]string `yaml:"mapping"`
	// MappingFile is a file of Java properties, source=target, as uReplicator has it. Blank targets are ignored. It is read once.
	MappingFile string `yaml:"mapping_file"`
	// PartitionMismatch is Halt (also when empty) or Modulo.
	PartitionMismatch string `yaml:"partition_mismatch"`
	// Overrides is by source topic, whole name.
	Overrides map[string]TopicConfig `yaml:"overrides"`
}

// TopicConfig is what is done with the records of one topic. First the filter, then the transform.
type TopicConfig struct {
	Filter    *FilterConfig    `yaml:"filter"`
	Transform *TransformConfig `yaml:"transform"`
	// Replicas is how many workers of a cluster mirror each partition at once: 1 (also when 0), or 2 for a hot standby.
	Replicas int `yaml:"replicas" json:"-"` // no part of what is done with records
}

const mostReplicas = 2

// FilterConfig keeps the records that match all of its conditions and drops the others.
type FilterConfig struct {
	// Header matches when any header of that name has a value that matches.
	Header *HeaderMatch `yaml:"header"`
	// Key matches the key's bytes. A null key never matches.
	Key *KeyMatch `yaml:"key"`
	// Tombstones is KeepTombstones (also when empty) or DropTombstones.
	Tombstones string `yaml:"tombstones"`
}

// The values of FilterConfig.Tombstones.
const (
	// KeepTombstones judges a record without value by its key alone: deletes seldom carry headers, and a filter that lost them would leave
	// deleted keys on a compacted target for ever.
	KeepTombstones = "keep"
	// DropTombstones drops every record without value.
	DropTombstones = "drop"
)

// HeaderMatch is a condition on a header. Matches is RE2 and may match anywhere in the value: write ^ and $ for the whole.
type HeaderMatch struct {
	Name    string `yaml:"name"`
	Matches string `yaml:"matches"`
}

// KeyMatch is a condition on the key. Matches is as in HeaderMatch.
type KeyMatch struct {
	Matches string `yaml:"matches"`
}

// TransformConfig changes records.
type TransformConfig struct {
	// AddHeaders is appended to each record's headers, sorted by name; what is there stays.
	AddHeaders map[string]string `yaml:"add_headers"`
}

// DefaultConfig keeps names and refuses a target with too few partitions.
func DefaultConfig() Config {
	return Config{Rename: "{topic}", PartitionMismatch: Halt}
}

// ConfigError is one fault of the configuration.
type ConfigError struct {
	Key    string // below `topics`
	Value  string // empty if there is none
	Reason string
	Err    error // what lies behind it, if anything
}

// Error is one line.
func (e *ConfigError) Error() string {
	text := e.Key
	if e.Value != "" {
		text += " " + strconv.Quote(e.Value)
	}
	if text += ": " + e.Reason; e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// Validate reports all faults at once (*ConfigError, *MappingError), each with key, value and reason. It does not read MappingFile and does not
// know the clusters' names; ValidateNames does.
func (c Config) Validate() error {
	faults := []error{validateRename(c.Rename)}
	switch c.PartitionMismatch {
	case "", Halt, Modulo:
	default:
		faults = append(faults, &ConfigError{Key: "partition_mismatch", Value: c.PartitionMismatch, Reason: "is neither " + Halt + " nor " + Modulo})
	}
	faults = append(faults, validateMapping("mapping", c.Mapping))
	for _, topic := range slices.Sorted(maps.Keys(c.Overrides)) {
		if reason := illegal(topic); reason != "" {
			faults = append(faults, &ConfigError{Key: "overrides", Value: topic, Reason: "must be the whole name of one topic: " + reason})
		}
		if n := c.Overrides[topic].Replicas; n < 0 || n > mostReplicas {
			faults = append(faults, &ConfigError{Key: "overrides." + topic + ".replicas", Value: strconv.Itoa(n), Reason: "must be 1, or 2 for a hot standby"})
		}
		if _, err := compile("overrides."+topic, c.Overrides[topic]); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// ValidateNames reports what Validate cannot know: faults of the mapping file, and of Rename with the clusters' names in it.
func (c Config) ValidateNames(source, target string) error {
	_, err := newMapping(c, source, target)
	return err
}

// validateRename refuses a pattern that gives no topic a name that Kafka takes.
func validateRename(pattern string) error {
	if pattern == "" {
		return nil
	}
	wrong := func(reason string) error { return &ConfigError{Key: "rename", Value: pattern, Reason: reason} }
	if !strings.Contains(pattern, "{topic}") {
		return wrong("has no {topic}, every topic would land in one")
	}
	const shortest = "x" // stands for any name
	name := strings.NewReplacer("{topic}", shortest, "{source}", shortest, "{target}", shortest).Replace(pattern)
	if strings.ContainsAny(name, "{}") {
		return wrong("has a placeholder other than {source}, {target} and {topic}")
	}
	if reason := illegal(name); reason != "" {
		return wrong("gives no topic a name that Kafka takes: it " + reason)
	}
	return nil
}

// validateMapping checks both sides of a table; place names it in the faults.
func validateMapping(place string, table map[string]string) error {
	var faults []error
	for _, source := range slices.Sorted(maps.Keys(table)) {
		if reason := illegal(source); reason != "" {
			faults = append(faults, &ConfigError{Key: place, Value: source, Reason: "is no source topic: it " + reason})
		}
		if reason := illegal(table[source]); reason != "" {
			faults = append(faults, &MappingError{Topic: source, Key: place + "." + source, Value: table[source], Reason: reason})
		}
	}
	return errors.Join(faults...)
}
