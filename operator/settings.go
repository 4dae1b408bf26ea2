package operator

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
)

// Limits bound what one worker takes from the source. 0 = none.
type Limits struct {
	RecordsPerSecond float64 `json:"records_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"` // as they come, compressed
}

// Validate reports each limit that is no rate, as an *InvalidError.
func (l Limits) Validate() error {
	var faults []error
	check := func(key string, rate float64) {
		if !(rate >= 0) || math.IsInf(rate, 1) { // also what is no number
			faults = append(faults, &InvalidError{Key: key, Value: rate, Reason: "must not be negative; 0 = none"})
		}
	}
	check(fieldRecords, l.RecordsPerSecond)
	check(fieldBytes, l.BytesPerSecond)
	return errors.Join(faults...)
}

// Settings are what holds for a topic, or for one of its partitions beside what holds for the topic. The zero value changes nothing.
type Settings struct {
	Paused bool   `json:"paused"`
	Limits Limits `json:"limits"`
}

// Topic is all that holds for a topic. The zero value changes nothing. Those that are shared are not changed: Clone.
type Topic struct {
	Settings

	Partitions map[int32]Settings `json:"partitions,omitempty"` // of those that have some of their own
}

// Stopped says whether a partition is paused, by itself or with its topic.
func (t Topic) Stopped(partition int32) bool { return t.Paused || t.Partitions[partition].Paused }

// IsZero says that the topic is mirrored like any other.
func (t Topic) IsZero() bool { return t.Settings == Settings{} && len(t.Partitions) == 0 }

// Equal says that the same holds for both.
func (t Topic) Equal(u Topic) bool {
	return t.Settings == u.Settings && maps.Equal(t.Partitions, u.Partitions)
}

// Clone returns a copy that shares nothing.
func (t Topic) Clone() Topic {
	t.Partitions = maps.Clone(t.Partitions)
	return t
}

// Set gives a partition settings of its own; the zero value takes them back. The topic must be the caller's own.
func (t *Topic) Set(partition int32, s Settings) {
	if s == (Settings{}) {
		delete(t.Partitions, partition)
		return
	}
	if t.Partitions == nil {
		t.Partitions = map[int32]Settings{}
	}
	t.Partitions[partition] = s
}

// Validate reports all that can't be, as *InvalidErrors.
func (t Topic) Validate() error {
	faults := []error{t.Limits.Validate()}
	for p, s := range t.Partitions {
		if p < 0 {
			faults = append(faults, &InvalidError{Key: "partition", Value: p, Reason: "must not be negative"})
		}
		if err := s.Limits.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("partition %d: %w", p, err))
		}
	}
	return errors.Join(faults...)
}

// Fields of settings. A record's simple fields are the topic's, its map fields the partitions' by number. Others are kept for whoever wrote them.
const (
	fieldPaused  = "paused"
	fieldRecords = "records_per_second"
	fieldBytes   = "bytes_per_second"
)

// Write puts the settings into a record's simple and map fields. What is zero is not written.
func (t Topic) Write(simple map[string]string, parts map[string]map[string]string) {
	t.write(simple)
	for name, fields := range parts {
		if _, ok := parseNumber(name); ok {
			Settings{}.write(fields)
			if len(fields) == 0 {
				delete(parts, name)
			}
		}
	}
	for p, s := range t.Partitions {
		name := strconv.Itoa(int(p))
		if parts[name] == nil {
			parts[name] = map[string]string{}
		}
		s.write(parts[name])
	}
}

func (s Settings) write(fields map[string]string) {
	put := func(key, value string, set bool) {
		if delete(fields, key); set {
			fields[key] = value
		}
	}
	put(fieldPaused, "true", s.Paused)
	put(fieldRecords, formatRate(s.Limits.RecordsPerSecond), s.Limits.RecordsPerSecond > 0)
	put(fieldBytes, formatRate(s.Limits.BytesPerSecond), s.Limits.BytesPerSecond > 0)
}

func formatRate(rate float64) string { return strconv.FormatFloat(rate, 'f', -1, 64) }

// ReadTopic reads what Write wrote. The error names all fields that can't be read.
func ReadTopic(simple map[string]string, parts map[string]map[string]string) (Topic, error) {
	var t Topic
	var faults []error
	var err error
	if t.Settings, err = readSettings(simple); err != nil {
		faults = append(faults, err)
	}
	for name, fields := range parts {
		p, ok := parseNumber(name)
		if !ok {
			continue // another program's
		}
		s, err := readSettings(fields)
		if err != nil {
			faults = append(faults, fmt.Errorf("partition %d: %w", p, err))
		}
		t.Set(p, s)
	}
	return t, errors.Join(faults...)
}

func readSettings(fields map[string]string) (Settings, error) {
	var s Settings
	var faults []error
	if text, ok := fields[fieldPaused]; ok {
		var err error
		if s.Paused, err = strconv.ParseBool(text); err != nil {
			faults = append(faults, &InvalidError{Key: fieldPaused, Value: text, Reason: "must be true or false"})
		}
	}
	rate := func(key string, into *float64) {
		text, ok := fields[key]
		if !ok {
			return
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			faults = append(faults, &InvalidError{Key: key, Value: text, Reason: "must be a number; 0 = none"})
			return
		}
		*into = n
	}
	rate(fieldRecords, &s.Limits.RecordsPerSecond)
	rate(fieldBytes, &s.Limits.BytesPerSecond)
	return s, errors.Join(append(faults, s.Limits.Validate())...)
}

// parseNumber reads a partition's name; false for a foreign one.
func parseNumber(name string) (int32, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return int32(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == name
}
