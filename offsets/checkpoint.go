package offsets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Version is the version of the stored form of a checkpoint that this code reads and writes. A field that is added, dropped or given
// another meaning makes a new version: a reader that guesses would duplicate or lose records.
const Version = 1

// Checkpoint is what is stored of one source partition's position. Everything before SourceOffset is on the target, by an acknowledgement
// with acks=all.
type Checkpoint struct {
	// Partition is the source topic-partition.
	Partition route.Partition
	// SourceOffset is the next source offset to forward; -1 while it has not been resolved yet.
	SourceOffset route.Offset
	// TargetOffset is the target offset that follows the last forwarded record; -1 when unknown.
	TargetOffset route.Offset
	// Sequence is the base sequence of the record at SourceOffset, 0 to 2³¹-1.
	Sequence int32
	// ProducerID is the idempotent producer id on the target (KIP-98); -1 when none is used.
	ProducerID int64
	// ProducerEpoch is the epoch of ProducerID; -1 when none is used.
	ProducerEpoch int16
	// SourceTopicID tells a recreated source topic from a truncated one (KIP-516). Zero when unknown.
	SourceTopicID route.TopicID
	// TargetTopicID tells a recreated target topic. Zero when unknown.
	TargetTopicID route.TopicID
	// LeaderEpoch is the source leader epoch of the last forwarded batch (KIP-320); -1 when unknown.
	LeaderEpoch int32
	// Fingerprint is the handler's: if it differs from the running handler's, Sequence proves nothing and a new epoch begins.
	Fingerprint string
	// Writer names the worker that wrote the checkpoint.
	Writer string
	// Opened says that one batch of this id and epoch was acknowledged with acks=all, so that pipelines are safe.
	Opened bool
	// Clean says that the writer stopped with nothing in flight beyond SourceOffset. [Advance] takes nobody else's word for it.
	Clean bool
	// AckedAt is when the target last acknowledged anything of this id with acks=all. Zero when never, and where an epoch began behind records that the
	// target had without an acknowledgement.
	AckedAt time.Time
	// Foreign says that SourceOffset was written by another program than Causeway, as an operator or uReplicator do where the store lets them.
	// Of what was known before, ProducerID, ProducerEpoch and the topic ids are left (-1 and zero if there was no checkpoint); the next write
	// begins a newer epoch or another id. It is an answer of Load alone and never stored.
	Foreign bool
}

// stored is the JSON form; docs/formats.md draws it. Pointers tell a missing field from a zero.
type stored struct {
	V             *int           `json:"v"`
	Topic         *string        `json:"topic"`
	Partition     *int32         `json:"partition"`
	SourceOffset  *route.Offset  `json:"source_offset"`
	TargetOffset  *route.Offset  `json:"target_offset"`
	Sequence      *int32         `json:"sequence"`
	ProducerID    *int64         `json:"producer_id"`
	ProducerEpoch *int16         `json:"producer_epoch"`
	SourceTopicID *route.TopicID `json:"source_topic_id"`
	TargetTopicID *route.TopicID `json:"target_topic_id"`
	LeaderEpoch   *int32         `json:"leader_epoch"`
	Fingerprint   *string        `json:"fingerprint"`
	Writer        *string        `json:"writer"`
	Opened        *bool          `json:"opened"`
	Clean         *bool          `json:"clean"`
	AckedAt       *time.Time     `json:"acked_at"`
}

// MarshalJSON writes the versioned form.
func (c Checkpoint) MarshalJSON() ([]byte, error) {
	version, acked := Version, c.AckedAt.UTC()
	return json.Marshal(stored{
		V: &version, Topic: &c.Partition.Topic, Partition: &c.Partition.Partition,
		SourceOffset: &c.SourceOffset, TargetOffset: &c.TargetOffset, Sequence: &c.Sequence,
		ProducerID: &c.ProducerID, ProducerEpoch: &c.ProducerEpoch,
		SourceTopicID: &c.SourceTopicID, TargetTopicID: &c.TargetTopicID, LeaderEpoch: &c.LeaderEpoch,
		Fingerprint: &c.Fingerprint, Writer: &c.Writer, Opened: &c.Opened, Clean: &c.Clean, AckedAt: &acked,
	})
}

// UnmarshalJSON reads the versioned form, strictly: another version, an unknown field, a missing field or an impossible value is an error,
// because each of them read as zero would mean "copy everything again".
func (c *Checkpoint) UnmarshalJSON(text []byte) error {
	var s stored
	if err := decodeStrict(text, &s, Version); err != nil {
		return fmt.Errorf("decode checkpoint: %w", err)
	}
	read := Checkpoint{
		Partition:    route.Partition{Topic: *s.Topic, Partition: *s.Partition},
		SourceOffset: *s.SourceOffset, TargetOffset: *s.TargetOffset, Sequence: *s.Sequence,
		ProducerID: *s.ProducerID, ProducerEpoch: *s.ProducerEpoch,
		SourceTopicID: *s.SourceTopicID, TargetTopicID: *s.TargetTopicID, LeaderEpoch: *s.LeaderEpoch,
		Fingerprint: *s.Fingerprint, Writer: *s.Writer, Opened: *s.Opened, Clean: *s.Clean, AckedAt: *s.AckedAt,
	}
	if err := read.Validate(); err != nil {
		return fmt.Errorf("decode checkpoint: %w", err)
	}
	*c = read
	return nil
}

// Validate reports all fields that hold an impossible value, each with its name, value and bound.
func (c Checkpoint) Validate() error {
	var faults []error
	least := func(name string, value, bound int64) {
		if value < bound {
			faults = append(faults, fmt.Errorf("checkpoint %s: %s is %d, must be at least %d", c.Partition, name, value, bound))
		}
	}
	if c.Partition.Topic == "" {
		faults = append(faults, errors.New("checkpoint: topic is empty"))
	}
	if c.Foreign {
		faults = append(faults, fmt.Errorf("checkpoint %s: a foreign one can't be stored", c.Partition))
	}
	least("partition", int64(c.Partition.Partition), 0)
	least("source_offset", int64(c.SourceOffset), -1)
	least("target_offset", int64(c.TargetOffset), -1)
	least("sequence", int64(c.Sequence), 0)
	least("producer_id", c.ProducerID, -1)
	least("leader_epoch", int64(c.LeaderEpoch), -1)
	if c.ProducerID >= 0 {
		least("producer_epoch", int64(c.ProducerEpoch), 0)
	} else {
		least("producer_epoch", int64(c.ProducerEpoch), -1)
	}
	return errors.Join(faults...)
}

// Equal says that both hold the same. Time is compared as an instant: what was stored has lost its zone and its monotonic reading.
func (c Checkpoint) Equal(d Checkpoint) bool {
	if !c.AckedAt.Equal(d.AckedAt) {
		return false
	}
	c.AckedAt, d.AckedAt = time.Time{}, time.Time{}
	return c == d
}

// decodeStrict decodes one JSON object whose `v` is one of the known versions and whose keys are exactly the fields of into, a pointer to a
// struct of pointers.
func decodeStrict(text []byte, into any, known ...int) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("text after the end")
		}
	}
	err = cmp.Or(err, missing(into))
	return cmp.Or(checkVersion(text, known), err) // another version explains every other fault
}

func checkVersion(text []byte, known []int) error {
	var version struct {
		V *int `json:"v"`
	}
	switch err := json.Unmarshal(text, &version); {
	case err != nil:
		return err
	case version.V == nil:
		return errors.New("no version field v")
	case !slices.Contains(known, *version.V):
		return &VersionError{Got: *version.V, Known: slices.Max(known)}
	}
	return nil
}

// missing names the fields of a struct of pointers that were not in the text, or null there.
func missing(from any) error {
	v := reflect.ValueOf(from).Elem()
	var faults []error
	for i := range v.NumField() {
		if v.Field(i).IsNil() {
			faults = append(faults, fmt.Errorf("no field %s", v.Type().Field(i).Tag.Get("json")))
		}
	}
	return errors.Join(faults...)
}
