package handler

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/magiconair/properties"
)

// maxTopicName is Kafka's bound: with partition number and suffix a folder's name must fit a file system's 255 bytes.
const maxTopicName = 249

// MappingError says that a topic can't be mapped.
type MappingError struct {
	Topic  string // the source topic
	Key    string // the setting that gave the name
	Value  string // the name that is refused
	Reason string
}

// Error names all of it.
func (e *MappingError) Error() string {
	return fmt.Sprintf("%s: topic %q maps to %q, which %s", e.Key, e.Topic, e.Value, e.Reason)
}

// illegal says why Kafka would refuse a topic name, or nothing.
func illegal(name string) string {
	switch {
	case name == "":
		return "is empty"
	case name == "." || name == "..":
		return "is a reserved name"
	case len(name) > maxTopicName:
		return fmt.Sprintf("has %d characters of at most %d", len(name), maxTopicName)
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Sprintf("has the character %q; letters, digits and ._- are allowed", c)
		}
	}
	return ""
}

// mapping knows the target topic of every source topic.
type mapping struct {
	table   map[string]string   // explicit entries and the file's; the explicit ones won
	origin  map[string]string   // source topic → the setting it came from
	rename  string              // the pattern with the cluster names in place
	prefix  string              // what stands in rename before the first {topic}
	sources map[string][]string // target → the source topics that the table sends there
}

func newMapping(cfg Config, source, target string) (*mapping, error) {
	pattern := cfg.Rename
	if pattern == "" {
		pattern = "{topic}"
	}
	m := &mapping{
		table: map[string]string{}, origin: map[string]string{}, sources: map[string][]string{},
		rename: strings.NewReplacer("{source}", source, "{target}", target).Replace(pattern),
	}
	m.prefix, _, _ = strings.Cut(m.rename, "{topic}")
	var faults []error
	if reason := illegal(m.renamed("x")); reason != "" && validateRename(pattern) == nil { // then it is a cluster's name
		reason = fmt.Sprintf("gives %q, and so no topic a name that Kafka takes: it %s", m.rename, reason)
		faults = append(faults, &ConfigError{Key: "rename", Value: pattern, Reason: reason})
	}
	if cfg.MappingFile != "" {
		table, err := readMapping(cfg.MappingFile)
		faults = append(faults, err)
		m.add("mapping_file "+cfg.MappingFile, table)
	}
	m.add("mapping", cfg.Mapping)
	for _, s := range slices.Sorted(maps.Keys(m.table)) {
		m.sources[m.table[s]] = append(m.sources[m.table[s]], s)
	}
	return m, errors.Join(faults...)
}

func (m *mapping) add(origin string, table map[string]string) {
	for source, target := range table {
		m.table[source], m.origin[source] = target, origin+"."+source
	}
}

// readMapping reads uReplicator's file: Java properties in ISO 8859-1, no expansion of ${…}, the last of equal keys counts.
func readMapping(path string) (map[string]string, error) {
	l := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	p, err := l.LoadFile(path)
	if err != nil {
		return nil, &ConfigError{Key: "mapping_file", Value: path, Reason: "cannot be read", Err: unwrapped(err)}
	}
	table := map[string]string{}
	for source, target := range p.Map() {
		if target = strings.TrimSpace(target); target != "" {
			table[source] = target
		}
	}
	return table, validateMapping("mapping_file "+path, table)
}

// unwrapped leaves out the path, which the fault names already.
func unwrapped(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// target maps one topic.
func (m *mapping) target(topic string) (string, error) {
	key := m.origin[topic]
	target, ok := m.table[topic]
	if !ok {
		key, target = "rename", m.renamed(topic)
	}
	if reason := illegal(target); reason != "" {
		return "", &MappingError{Topic: topic, Key: key, Value: target, Reason: reason}
	}
	return target, nil
}

func (m *mapping) renamed(topic string) string { return strings.ReplaceAll(m.rename, "{topic}", topic) }

// shared says whether another source topic, existing or not, would go to the same target topic. It must not ask which topics exist: a
// worker that has not seen the other topic yet has to answer the same.
func (m *mapping) shared(topic, target string) bool {
	for _, other := range m.sources[target] {
		if other != topic {
			return true
		}
	}
	other, ok := m.unrenamed(target)
	_, mapped := m.table[other]
	return ok && other != topic && !mapped
}

// unrenamed gives the one source topic that the rename pattern sends to a target, if there is one.
func (m *mapping) unrenamed(target string) (string, bool) {
	n := strings.Count(m.rename, "{topic}")
	length := len(target) - (len(m.rename) - n*len("{topic}"))
	if length <= 0 || length%n != 0 || !strings.HasPrefix(target, m.prefix) {
		return "", false
	}
	topic := target[len(m.prefix):][:length/n]
	return topic, m.renamed(topic) == target && illegal(topic) == ""
}
