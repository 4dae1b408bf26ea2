package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// readSettings reads what holds for topics. A record that can't be read is told and left out: workers skip it too.
func (c *helixCluster) readSettings(ctx context.Context) error {
	session := c.term.Session()
	folder := c.cluster.Property(propertyFolder, topicsFolder)
	topics, err := session.Children(ctx, folder, nil)
	if err != nil && !errors.Is(err, helix.ErrNotFound) {
		return fmt.Errorf("read the topics' settings: %w", err)
	}
	settings := make(map[string]operator.Topic, len(topics))
	for _, topic := range topics {
		record, _, err := session.GetRecord(ctx, folder+"/"+topic, nil)
		switch {
		case errors.Is(err, helix.ErrNotFound):
			continue
		case err == nil:
			settings[topic], err = operator.ReadTopic(record.Simple, record.Map)
		case !errors.Is(err, helix.ErrMalformed) && !errors.Is(err, helix.ErrEmpty):
			return fmt.Errorf("read the topics' settings: %w", err)
		}
		if err != nil {
			delete(settings, topic)
			c.log.Warn("settings of a topic can't be read and are skipped", "topic", topic, "error", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings = settings
	return nil
}

// Configure implements Cluster.
func (c *helixCluster) Configure(ctx context.Context, topic string, change func(*operator.Topic)) error {
	var now operator.Topic
	err := c.update(ctx, func(r *helix.Record) error {
		was, err := operator.ReadTopic(r.Simple, r.Map)
		if err != nil { // what can't be read is not kept
			c.log.Warn("settings of a topic could not be read and are replaced", "topic", topic, "error", err)
		}
		now = was.Clone()
		change(&now)
		now.Write(r.Simple, r.Map)
		return nil
	}, propertyFolder, topicsFolder, topic)
	if err != nil {
		return translate(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publishSettingsLocked(topic, now)
	return nil
}

// update changes a record of the property store. One that can't be read is replaced: nobody could do what it asks for.
func (c *helixCluster) update(ctx context.Context, change func(*helix.Record) error, at ...string) error {
	err := c.term.Admin().UpdateProperty(ctx, change, at...)
	if !errors.Is(err, helix.ErrMalformed) {
		return err
	}
	c.log.Warn("a record can't be read and is replaced", "path", c.cluster.Property(at...), "error", err)
	if err = c.term.Admin().RemoveProperty(ctx, at...); err != nil {
		return err
	}
	return c.term.Admin().UpdateProperty(ctx, change, at...)
}

// publishSettingsLocked shows what holds for a topic now.
func (c *helixCluster) publishSettingsLocked(topic string, now operator.Topic) {
	settings := maps.Clone(c.settings)
	settings[topic] = now
	if now.IsZero() {
		delete(settings, topic)
	}
	c.settings = settings
	next := *c.state
	next.Settings, next.Pins = settings, c.pins
	c.publishLocked(&next)
}

// Command implements Cluster. A reset that waits is not replaced by a retry, which it does anyway.
func (c *helixCluster) Command(ctx context.Context, p route.Partition, command operator.Command) error {
	err := c.update(ctx, func(r *helix.Record) error {
		if was, err := operator.ReadCommand(r.Simple); err == nil && was.To != nil && command.To == nil {
			return nil
		}
		command.Write(r.Simple)
		return nil
	}, propertyFolder, commandsFolder, p.Topic, partitionName(p.Partition))
	return translate(err)
}

// forget removes what operators asked of a topic that is no more.
func (c *helixCluster) forget(ctx context.Context, topic string) error {
	for _, folder := range []string{topicsFolder, commandsFolder, pinsFolder} {
		if err := c.term.Admin().RemoveProperty(ctx, propertyFolder, folder, topic); err != nil {
			return translate(err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = maps.Clone(c.pins)
	maps.DeleteFunc(c.pins, func(p route.Partition, _ string) bool { return p.Topic == topic })
	c.publishSettingsLocked(topic, operator.Topic{})
	return nil
}
