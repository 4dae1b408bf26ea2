package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/cmd/internal/httpd"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/internal/replace"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// desk does what operators ask of a mirror in one process. What lasts is kept in a file in the state folder.
type desk struct {
	mirror mirrorer
	path   string // of the file
	log    hclog.Logger
	resets chan *askedReset
	ended  chan struct{} // closed when nothing is carried out any more
	// noResets is why positions can't be set here; nil if they can. It is set before run.
	noResets error

	mu     sync.Mutex // held while the file is written, so that it and the mirror see changes in one order
	topics map[string]operator.Topic
}

// askedReset is a reset on its way to the mirror.
type askedReset struct {
	partition route.Partition
	to        operator.Place
	done      chan error // takes one
}

// settingsFile is the name of the file in the state folder; docs/formats.md draws it.
const settingsFile = "settings.json"

// keptSettings is what the file holds.
type keptSettings struct {
	Version int                       `json:"v"`
	Topics  map[string]operator.Topic `json:"topics"`
}

const settingsVersion = 1

// openDesk reads what was set before and lets the mirror know. A file that can't be read is an error: what was paused must not be copied.
func openDesk(dir string, mirror mirrorer, log hclog.Logger) (*desk, error) {
	d := &desk{
		mirror: mirror, path: filepath.Join(dir, settingsFile), log: log, resets: make(chan *askedReset), ended: make(chan struct{}),
		topics: map[string]operator.Topic{},
	}
	text, err := os.ReadFile(d.path)
	if errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	kept := keptSettings{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&kept)
	if err == nil && kept.Version != settingsVersion {
		err = fmt.Errorf("v: %d: must be %d", kept.Version, settingsVersion) //nolint:err113 // only ever shown
	}
	for topic, t := range kept.Topics {
		if fault := t.Validate(); fault != nil {
			err = errors.Join(err, fmt.Errorf("topic %s: %w", topic, fault))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read settings in %s: %w", d.path, err)
	}
	for topic, t := range kept.Topics {
		d.topics[topic] = t
		mirror.Configure(topic, t)
	}
	return d, nil
}

// run carries out resets until ctx ends. One that is under way then is given up.
func (d *desk) run(ctx context.Context) {
	defer close(d.ended)
	var work sync.WaitGroup
	defer work.Wait()
	for {
		select {
		case r := <-d.resets:
			work.Go(func() {
				err := d.mirror.Reset(ctx, r.partition, connector.Reset{To: r.to})
				if err != nil && ctx.Err() == nil {
					d.log.Warn("partition was not reset", "partition", r.partition.String(), "to", r.to.String(), "err", err)
				}
				r.done <- err
			})
		case <-ctx.Done():
			return
		}
	}
}

// errEnding is why nothing more is done.
var errEnding = errors.New("the process is ending")

// resetPatience is how long an answer waits for a reset to be done or refused; one that takes longer goes on without it.
const resetPatience = 5 * time.Second

// Reset implements api.Operator.
func (d *desk) Reset(ctx context.Context, p route.Partition, to operator.Place) error {
	if err := d.has(p); err != nil {
		return err
	}
	if d.noResets != nil {
		return fmt.Errorf("%w: %w", api.ErrImpossible, d.noResets)
	}
	r := &askedReset{partition: p, to: to, done: make(chan error, 1)}
	select {
	case d.resets <- r:
	case <-d.ended:
		return errEnding
	case <-ctx.Done():
		return ctx.Err()
	}
	patience := time.NewTimer(resetPatience)
	defer patience.Stop()
	var err error
	select {
	case err = <-r.done:
	case <-patience.C:
	case <-ctx.Done():
	}
	var outside *connector.RangeError
	switch {
	case errors.As(err, &outside):
		return fmt.Errorf("%w: %w", api.ErrInvalid, outside)
	case errors.Is(err, offsets.ErrMissing):
		return fmt.Errorf("%w: %w", api.ErrImpossible, err)
	case errors.Is(err, connector.ErrBusy):
		return fmt.Errorf("%w: %w", api.ErrAlready, err)
	case errors.Is(err, connector.ErrElsewhere):
		return fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	return err
}

// Retry implements api.Operator.
func (d *desk) Retry(_ context.Context, p route.Partition) error {
	if !d.mirror.Retry(p) {
		return unknown("partition", p.String())
	}
	return nil
}

// LimitTopic implements api.Operator.
func (d *desk) LimitTopic(_ context.Context, topic string, l operator.Limits) error {
	return d.change(topic, func(t *operator.Topic) { t.Limits = l })
}

// LimitPartition implements api.Operator.
func (d *desk) LimitPartition(_ context.Context, p route.Partition, l operator.Limits) error {
	return d.changePart(p, func(s *operator.Settings) { s.Limits = l })
}

// PauseTopic implements api.Operator.
func (d *desk) PauseTopic(_ context.Context, topic string, on bool) error {
	return d.change(topic, func(t *operator.Topic) { t.Paused = on })
}

// PausePartition implements api.Operator.
func (d *desk) PausePartition(_ context.Context, p route.Partition, on bool) error {
	return d.changePart(p, func(s *operator.Settings) { s.Paused = on })
}

// RetryDeadLetters implements api.Operator.
func (d *desk) RetryDeadLetters(ctx context.Context, topic string) (api.DeadLetters, error) {
	if !d.mirrors(topic) {
		return api.DeadLetters{}, unknown("topic", topic)
	}
	box, r, err := d.mirror.PutBack(ctx, topic)
	return httpd.DeadLetters(d.log, api.DeadLetters{Topic: topic, DeadLetterTopic: box}, r, err)
}

// DeadLetters implements api.Operator.
func (d *desk) DeadLetters(ctx context.Context, topic string) ([]api.DeadLetter, error) {
	if !d.mirrors(topic) {
		return nil, unknown("topic", topic)
	}
	return httpd.ListDeadLetters(d.mirror.DeadLetters(ctx, topic))
}

func (d *desk) changePart(p route.Partition, change func(*operator.Settings)) error {
	if err := d.has(p); err != nil {
		return err
	}
	return d.change(p.Topic, func(t *operator.Topic) {
		own := t.Partitions[p.Partition]
		change(&own)
		t.Set(p.Partition, own)
	})
}

// change changes what holds for a topic: first in the file, then in the mirror.
func (d *desk) change(topic string, change func(*operator.Topic)) error {
	if !d.mirrors(topic) {
		return unknown("topic", topic)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.topics[topic].Clone()
	change(&next)
	topics := maps.Clone(d.topics)
	topics[topic] = next
	if next.IsZero() {
		delete(topics, topic)
	}
	text, err := json.Marshal(keptSettings{Version: settingsVersion, Topics: topics})
	if err == nil {
		err = replace.File(d.path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("store settings: %w", err)
	}
	d.topics = topics
	d.mirror.Configure(topic, next)
	return nil
}

// mirrors says whether a topic is mirrored.
func (d *desk) mirrors(topic string) bool {
	for _, p := range d.mirror.Snapshot().Partitions {
		if p.Topic == topic {
			return true
		}
	}
	return false
}

func (d *desk) has(p route.Partition) error {
	for _, one := range d.mirror.Snapshot().Partitions {
		if one.Topic == p.Topic && one.Partition == p.Partition {
			return nil
		}
	}
	return unknown("partition", p.String())
}

func unknown(what, name string) error {
	return fmt.Errorf("%w: %s %q is not mirrored", api.ErrNotFound, what, name)
}
