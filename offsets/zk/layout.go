package zk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// topicVersion is the version of the record of a topic. That of a checkpoint and a route are theirs.
const topicVersion = 1

// shownValue is how much of a value that can't be read an error shows.
const shownValue = 100

// NodeError says that a node holds what can't be understood, or is not there although it must be. It matches offsets.ErrCorrupt.
type NodeError struct {
	Path  string
	Value string // what it holds, or the beginning of it; empty if it is not there
	Err   error
}

// Error names path, value and reason.
func (e *NodeError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("node %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("node %s holds %q: %v", e.Path, e.Value, e.Err)
}

// Unwrap gives the reason.
func (e *NodeError) Unwrap() error { return e.Err }

func corrupt(path string, value []byte, reason error) error {
	if len(value) == 0 {
		reason = errors.Join(reason, errors.New("it is empty"))
	}
	return &NodeError{Path: path, Value: string(value[:min(len(value), shownValue)]), Err: fmt.Errorf("%w: %w", offsets.ErrCorrupt, reason)}
}

// layout is the node of the group, below which everything lies.
type layout struct{ group string }

func (l layout) offsets() string           { return l.group + "/offsets" }
func (l layout) offsetsOf(t string) string { return l.offsets() + "/" + t }
func (l layout) causeway() string          { return l.group + "/causeway" } // holds the route
func (l layout) topic(t string) string     { return l.causeway() + "/" + t }
func (l layout) events() string            { return l.group + "/causeway-events" }
func (l layout) plain(p route.Partition) string {
	return l.offsetsOf(p.Topic) + "/" + strconv.Itoa(int(p.Partition))
}

func (l layout) rest(p route.Partition) string {
	return l.topic(p.Topic) + "/" + strconv.Itoa(int(p.Partition))
}

// parsePlain reads a plain offset as uReplicator does, but refuses what that takes for "no offset": a partition that was copied before must
// not begin anew because of a slip of the pen. -1 is a checkpoint's own "not resolved yet".
func parsePlain(path string, text []byte) (route.Offset, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil && n < -1 {
		err = errors.New("an offset is at least 0")
	}
	if err != nil {
		var number *strconv.NumError
		if errors.As(err, &number) {
			err = fmt.Errorf("no decimal offset: %w", number.Err)
		}
		return 0, corrupt(path, text, err)
	}
	return route.Offset(n), nil
}

func formatPlain(o route.Offset) []byte { return strconv.AppendInt(nil, int64(o), 10) }

// topicRecord is what a topic's node holds: which partitions ever had a checkpoint, so that one that is gone is not taken for one that
// never was.
type topicRecord struct {
	V             int           `json:"v"`
	SourceTopicID route.TopicID `json:"source_topic_id"` // of the checkpoint begun last
	Partitions    []int32       `json:"partitions"`      // in order
}

// parseTopic reads a topic's node. One without data was made by somebody who needed a parent, and says nothing.
func parseTopic(path string, text []byte) (topicRecord, error) {
	var r topicRecord
	if len(text) == 0 {
		return r, nil
	}
	var version struct {
		V *int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return r, corrupt(path, text, err)
	}
	if version.V == nil {
		return r, corrupt(path, text, errors.New("no version field v"))
	}
	if *version.V != topicVersion {
		return r, corrupt(path, text, &offsets.VersionError{Got: *version.V, Known: topicVersion})
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, corrupt(path, text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, corrupt(path, text, errors.New("text after the end"))
	}
	if r.Partitions == nil {
		return r, corrupt(path, text, errors.New("no field partitions"))
	}
	slices.Sort(r.Partitions)
	return r, nil
}

// with adds partitions and the id of their topic.
func (r topicRecord) with(id route.TopicID, partitions []int32) topicRecord {
	all := slices.Concat(r.Partitions, partitions)
	slices.Sort(all)
	return topicRecord{V: topicVersion, SourceTopicID: id, Partitions: slices.Compact(all)}
}

func (r topicRecord) has(partition int32) bool {
	_, found := slices.BinarySearch(r.Partitions, partition)
	return found
}
