package connector

import (
	"fmt"
	"time"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/events"
	"github.com/causeway-mirror/causeway/mirror"
)

// A topic that its source does not have, or that its target refuses, is the trouble of its own partitions: they halt, or stop, and the route is well.

// absentFor is for how long a source must not know a topic before that is believed: a broker that has just started knows none.
const absentFor = 30 * time.Second

// unknown says why a topic can't be started of which the source tells no partitions.
func (c *Connector) unknown(t *pair, name string, cause error) error {
	err := fmt.Errorf("source topic %s: %w", name, cmpErr(cause))
	switch class := cluster.Classify(cause); {
	case class == cluster.Authorization:
		return &haltError{err}
	case cause != nil && class != cluster.NotFound:
		return err
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	lasts := false
	for _, p := range t.parts {
		if p.absent.IsZero() {
			p.absent = now
		}
		lasts = lasts || now.Sub(p.absent) >= absentFor
	}
	switch {
	case lasts && c.cfg.On.Deleted == mirror.Stop:
		return &stopError{err}
	case lasts:
		return &haltError{err}
	}
	return err
}

// stopError is a reason not to run that is no trouble.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// rest notes that partitions don't run because their topic was deleted, and by policy that is no trouble. Their start goes on being tried.
func (c *Connector) rest(parts []*partition, err *stopError) {
	var fresh []*partition
	c.mu.Lock()
	for _, p := range parts {
		if p.lane != nil {
			continue
		}
		if !p.rests {
			fresh = append(fresh, p)
		}
		p.reason, p.halted, p.rests, p.told = mirror.ReasonDeleted, false, true, true
	}
	c.mu.Unlock()
	for _, p := range fresh {
		c.deps.Events.Emit(events.Of(p.source, events.TopicDeleted, events.Warning, mirror.ReasonDeleted).Because(err.Error()))
	}
}

// present notes that the source has the topic.
func (c *Connector) present(t *pair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range t.parts {
		p.absent = time.Time{}
	}
}

// uncreated says why a target topic could not be made. What is refused the way it is asked for, such as a name that collides with another's, somebody
// must change or allow.
func uncreated(cause error) error {
	err := fmt.Errorf("create target topic: %w", cause)
	if class := cluster.Classify(cause); class == cluster.Authorization || class == cluster.Invalid {
		return &haltError{err}
	}
	return err
}
