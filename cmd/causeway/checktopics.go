package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/cmd/internal/engine"
	"github.com/causeway-mirror/causeway/handler"
	"github.com/causeway-mirror/causeway/internal/native"
	"github.com/causeway-mirror/causeway/loops"
)

// topicFacts are what a cluster says of one topic.
type topicFacts struct {
	err        error // why it says nothing
	partitions int32
	leaderless int
	replicas   int // of its first partition
	isr        int // the fewest of a partition
	rights     int32
	configs    map[string]string // nil if they may not be read
}

// setting is a number among the topic's settings.
func (t *topicFacts) setting(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(t.configs[name], 10, 64)
	return n, err == nil
}

// topicPair is a topic and its copy.
type topicPair struct {
	handler.Topic

	source, target topicFacts
}

// checkTopics compares the topics that would be mirrored with what they would become.
func (p *preflight) checkTopics(ctx context.Context, source, target *checkedSide) {
	const key = "route.topics.include (--topics)"
	if len(p.settings.Route.Topics.Include) == 0 { // of a cluster only
		p.add(point{warn, key, "", "topics are added by hand, so none was looked at", "name with --topics those that you will add"})
		return
	}
	topics, err := source.admin.Topics(ctx)
	if err != nil {
		p.add(source.refused(point{Key: source.key("topics"), Value: strings.Join(source.cfg.Bootstrap, ",")}, err))
		return
	}
	pairs := p.selected(ctx, source, topics)
	if len(pairs) == 0 {
		p.add(point{warn, key, strings.Join(p.settings.Route.Topics.Include, ","), "no topic that is there is mirrored", "create one, or name others"})
		return
	}
	if p.ask(ctx, source, target, pairs) {
		for _, t := range pairs {
			p.checkSource(t)
			p.checkTarget(ctx, target, t)
		}
		p.checkLoops(ctx, source, target, pairs)
		p.checkIDExpiration(ctx, target)
		p.add(point{good, "route.topics", strconv.Itoa(len(pairs)), "topics looked at", ""})
	}
}

// checkLoops looks for topics that other routes would bring back. Whoever can't see that mirrors all the same.
func (p *preflight) checkLoops(ctx context.Context, source, target *checkedSide, pairs []*topicPair) {
	if source.id == "" || target.id == "" { // the mirror doesn't look either
		return
	}
	topics := make(map[string]string, len(pairs))
	for _, t := range pairs {
		topics[t.Source] = t.Target
	}
	cfg := loops.Config{Route: p.settings.RouteName().String(), Takes: new(engine.Selection(&p.settings.File)), Drop: p.settings.Route.Loops == native.LoopsDrop}
	watch := loops.NewWatch(cfg, source.admin, target.admin, silent(), nil)
	refused, err := watch.Preview(ctx, loops.Ends{Source: source.id, Target: target.id, Producer: -1}, topics)
	if err != nil {
		p.add(point{warn, "route.loops", p.settings.Route.Loops, cause(err), "grant what the brokers refuse, see docs/security.md: till then loops aren't noticed"})
		return
	}
	for _, topic := range slices.Sorted(maps.Keys(refused)) {
		p.add(point{bad, "route.loops", p.settings.Route.Loops, refused[topic].Error(), "exclude the topic, here or there, or give it another name"}, topic)
	}
}

// selected are the topics that would be mirrored, as discovery would find them. Of those that would not although they are named, it tells why.
func (p *preflight) selected(ctx context.Context, source *checkedSide, topics map[string]cluster.Topic) []*topicPair {
	const key = "route.topics.include (--topics)"
	same := native.SameCluster(p.settings.Route.Source.Bootstrap, p.settings.Route.Target.Bootstrap)
	d := discovery{mapper: p.handler, filter: p.filter, oneCluster: same}
	sifted := d.sift(topics)
	var pairs []*topicPair
	for _, name := range sifted.found {
		if t, err := p.handler.Topic(name); err == nil {
			pairs = append(pairs, &topicPair{Topic: t})
		}
	}
	for _, e := range sifted.refused {
		if e.Partition == 0 {
			p.add(point{bad, "route.topics.rename (--rename)", p.settings.Route.Topics.Rename, e.Reason, "exclude it, or give it another name"}, e.Topic)
		}
	}
	var missing []string
	for _, e := range sifted.excluded {
		if e.Reason == missingReason {
			missing = append(missing, e.Topic)
		}
	}
	facts, err := source.facts(ctx, missing)
	if err != nil {
		p.add(source.refused(point{Key: key, Value: strings.Join(missing, ",")}, err))
	}
	for _, name := range missing {
		if f := facts[name]; f != nil && cluster.Classify(f.err) == cluster.Authorization {
			p.add(point{bad, "source rights", "no Describe", "the mirror's user may not see it", "grant Read and Describe on the topic"}, name)
			continue
		}
		p.add(point{warn, key, name, missingReason, "create it, or mend the name; it is mirrored once it is there"})
	}
	return pairs
}

// facts asks for topics by name, without their settings.
func (s *checkedSide) facts(ctx context.Context, topics []string) (map[string]*topicFacts, error) {
	all := make(map[string]*topicFacts, len(topics))
	if len(topics) == 0 {
		return all, nil
	}
	answer, err := describe(ctx, s.client, topics)
	if err != nil {
		return nil, err
	}
	for i := range answer.Topics {
		t := &answer.Topics[i]
		if t.Topic == nil {
			continue
		}
		f := &topicFacts{err: kerr.ErrorForCode(t.ErrorCode), partitions: int32(len(t.Partitions)), isr: math.MaxInt, rights: unknownRights}
		if answer.Version >= 8 { // KIP-430
			f.rights = t.AuthorizedOperations
		}
		for j := range t.Partitions {
			part := &t.Partitions[j]
			if part.Leader < 0 {
				f.leaderless++
			}
			if part.Partition == 0 {
				f.replicas = len(part.Replicas)
			}
			f.isr = min(f.isr, len(part.ISR))
		}
		all[*t.Topic] = f
	}
	return all, nil
}

// ask fills in what both clusters say of the pairs; false: one of them does not answer, which is told.
func (p *preflight) ask(ctx context.Context, source, target *checkedSide, pairs []*topicPair) bool {
	for _, side := range []*checkedSide{source, target} {
		names := make([]string, len(pairs))
		for i, t := range pairs {
			names[i] = t.Source
			if side == target {
				names[i] = t.Target
			}
		}
		facts, err := side.facts(ctx, names)
		if err == nil {
			err = side.readSettings(ctx, facts)
		}
		if err != nil {
			p.add(side.refused(point{Key: side.key("topics"), Value: strings.Join(side.cfg.Bootstrap, ",")}, err))
			return false
		}
		for i, t := range pairs {
			f := facts[names[i]]
			if f == nil {
				f = &topicFacts{err: kerr.UnknownTopicOrPartition, rights: unknownRights}
			}
			if side == source {
				t.source = *f
			} else {
				t.target = *f
			}
		}
	}
	return true
}

// readSettings reads those of the topics that are there. Topics of which we may not read them go without.
func (s *checkedSide) readSettings(ctx context.Context, facts map[string]*topicFacts) error {
	var there []string
	for name, f := range facts {
		if f.err == nil {
			there = append(there, name)
		}
	}
	configs, err := s.admin.TopicConfigs(ctx, there...)
	if err != nil && cluster.Classify(err) != cluster.Authorization {
		return err
	}
	for name, settings := range configs {
		facts[name].configs = settings
	}
	return nil
}

// checkSource looks whether a topic can be read.
func (p *preflight) checkSource(t *topicPair) {
	f := &t.source
	if f.err != nil {
		p.add(point{bad, "source topic", cause(f.err), "it can't be described", "mend what the broker says"}, t.Source)
		return
	}
	p.checkLeaders("source", t.Source, f)
	if f.rights == unknownRights {
		p.add(point{warn, "source rights", "unknown", "the brokers do not tell them (before Kafka 2.3)", "compare with docs/security.md by hand"})
	} else if !may(f.rights, kmsg.ACLOperationRead) {
		p.add(point{bad, "source rights", "no Read", "the mirror's user may not fetch", "grant Read on the topic"}, t.Source)
	}
}

func (p *preflight) checkLeaders(part, topic string, f *topicFacts) {
	if f.leaderless > 0 {
		p.add(point{bad, part + " leaders", fmt.Sprintf("%d missing", f.leaderless), "partitions without a leader stand still", "start the brokers that hold them"}, topic)
	}
}

// checkTarget looks whether the copy can be written, made or grown.
func (p *preflight) checkTarget(ctx context.Context, target *checkedSide, t *topicPair) {
	f := &t.target
	switch class := cluster.Classify(f.err); {
	case class == cluster.NotFound:
		p.checkCreation(ctx, target, t)
		return
	case class == cluster.Authorization:
		p.add(point{bad, "target rights", "no Describe", "the mirror's user may not see it", "grant Write, Read and Describe on the topic"}, t.Target)
		return
	case f.err != nil:
		p.add(point{bad, "target topic", cause(f.err), "it can't be described", "mend what the broker says"}, t.Target)
		return
	}
	p.checkLeaders("target", t.Target, f)
	p.checkRights(f, t.Target)
	p.checkGrowth(ctx, target, t)
	if f.configs == nil {
		p.add(point{warn, "target rights", "no DescribeConfigs", "limits can't be compared, nor batches split before the broker refuses them", "grant DescribeConfigs on the topic"}, t.Target)
		return
	}
	p.checkReplicas(t)
	if t.source.configs == nil {
		p.add(point{warn, "source rights", "no DescribeConfigs", "limits can't be compared", "grant it on the topic while you check, or compare by hand"}, t.Source)
		return
	}
	p.checkLimits(target, t)
}

// checkRights holds what we may do against the table of docs/security.md.
func (p *preflight) checkRights(f *topicFacts, topic string) {
	if f.rights == unknownRights {
		p.add(point{warn, "target rights", "unknown", "the brokers do not tell them (before Kafka 2.3)", "compare with docs/security.md by hand"})
		return
	}
	for _, needed := range []struct {
		op           kmsg.ACLOperation
		name, reason string
	}{
		{kmsg.ACLOperationWrite, "Write", "the mirror's user may not produce"},
		{kmsg.ACLOperationRead, "Read", "after a restart or a lost connection it can't be found out what arrived, and the partition halts"},
	} {
		if !may(f.rights, needed.op) {
			p.add(point{bad, "target rights", "no " + needed.name, needed.reason, "grant " + needed.name + " on the topic"}, topic)
		}
	}
}

// checkCreation asks the target whether it would create a topic, without creating it.
func (p *preflight) checkCreation(ctx context.Context, target *checkedSide, t *topicPair) {
	const key = "route.topics.create (--create-topics)"
	if !p.settings.Route.Topics.Create {
		p.add(point{bad, key, "false", "the target does not have it", "create it, or let the mirror do it"}, t.Target)
		return
	}
	spec := cluster.TopicSpec{Name: t.Target, Partitions: max(t.source.partitions, 1), ReplicationFactor: -1}
	if err := target.admin.TryTopic(ctx, spec); err != nil {
		p.add(target.uncreated(point{Key: key, Value: "true"}, err, "Create on the topic or the cluster"), t.Target)
		return
	}
	p.add(point{good, key, "true", "the target does not have it yet and would create it", ""}, t.Target)
}

// uncreated says why the target would not make or grow a topic.
func (s *checkedSide) uncreated(at point, err error, right string) point {
	at = s.refused(at, err)
	at.Reason = "the target would refuse it: " + at.Reason
	switch cluster.Classify(err) {
	case cluster.Authorization:
		at.Reason, at.Remedy = "the mirror's user may not do it on the target", "grant "+right+", or do it by hand"
	case cluster.Invalid:
		at.Remedy = "do it by hand as the broker wants it"
	case cluster.Unreachable, cluster.Authentication, cluster.NotFound, cluster.Exists, cluster.Other:
	}
	return at
}

// checkGrowth wants a place on the target for each partition.
func (p *preflight) checkGrowth(ctx context.Context, target *checkedSide, t *topicPair) {
	want, have := t.source.partitions, t.target.partitions
	if have >= want || want == 0 {
		return
	}
	_, alignErr := p.handler.Align(t.Source, want, have)
	at := point{Key: "target partitions", Value: strconv.Itoa(int(have))}
	if !p.settings.Route.Topics.Create {
		if alignErr != nil {
			at.Severity, at.Reason = bad, fmt.Sprintf("the source has %d, and route.topics.create is false", want)
			at.Remedy = "add partitions, let the mirror do it, or set route.topics.partition_mismatch to " + handler.Modulo
			p.add(at, t.Target)
		}
		return
	}
	if err := target.admin.TryPartitions(ctx, t.Target, want); err != nil {
		at = target.uncreated(at, err, "Alter on the topic")
		if alignErr == nil {
			at.Severity = warn // they share partitions then
		}
	} else {
		at.Severity, at.Reason = good, fmt.Sprintf("the source has %d; the mirror would add the others", want)
	}
	p.add(at, t.Target)
}

// checkReplicas: we produce with acks=all.
func (p *preflight) checkReplicas(t *topicPair) {
	const key = "target min.insync.replicas"
	want, ok := t.target.setting("min.insync.replicas")
	value := decimal(want)
	switch {
	case !ok || t.target.partitions == 0:
	case want > int64(t.target.replicas):
		p.add(point{bad, key, value, fmt.Sprintf("there are only %d replicas, so nothing can be produced with acks=all", t.target.replicas), "lower it, or add replicas"}, t.Target)
	case want > int64(t.target.isr):
		p.add(point{bad, key, value, fmt.Sprintf("a partition has only %d in-sync replicas now, so nothing can be produced to it", t.target.isr), "start the brokers that hold the others"}, t.Target)
	}
}

// checkLimits looks for records that the source takes and the target refuses or changes.
func (p *preflight) checkLimits(target *checkedSide, t *topicPair) {
	from, to := &t.source, &t.target
	if s, d := from.configs["compression.type"], to.configs["compression.type"]; d != "" && d != "producer" && d != s {
		p.add(point{warn, "target compression.type", d, "its brokers compress each batch anew, at their expense", "set it to producer"}, t.Target)
	}
	if from.configs["compression.type"] == "zstd" && target.oldest[kmsg.Produce] < zstdVersion {
		p.add(point{warn, "source compression.type", "zstd", "the target's brokers do not know it (before Kafka 2.1), so each batch is rewritten", "upgrade them"}, t.Source)
	}
	if to.configs["message.timestamp.type"] == "LogAppendTime" && from.configs["message.timestamp.type"] != "LogAppendTime" {
		p.add(point{warn, "target message.timestamp.type", "LogAppendTime", "records get the time of their copy in place of their own", "set it to CreateTime"}, t.Target)
	}
	if strings.Contains(to.configs["cleanup.policy"], "compact") && !strings.Contains(from.configs["cleanup.policy"], "compact") {
		p.add(point{warn, "target cleanup.policy", to.configs["cleanup.policy"], "a record without a key is refused and halts its partition; the source allows it", "set it to the source's"}, t.Target)
	}
	p.checkLess(t, "max.message.bytes", "larger records halt their partition (route.on.oversized)")
	for _, bound := range []string{"message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "message.timestamp.difference.max.ms"} {
		if to.configs["message.timestamp.type"] != "LogAppendTime" {
			p.checkLess(t, bound, "records whose times are farther off halt their partition (route.on.refused)")
		}
	}
}

// checkLess wants a limit of the target that is not below the source's.
func (p *preflight) checkLess(t *topicPair, name, reason string) {
	s, known := t.source.setting(name)
	d, ok := t.target.setting(name)
	if known && ok && d < s {
		p.add(point{warn, "target " + name, decimal(d), fmt.Sprintf("the source allows %d; %s", s, reason), "raise it to the source's"}, t.Target)
	}
}

func decimal[N ~int16 | ~int32 | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// checkIDExpiration: a day is assumed where it can't be read.
func (p *preflight) checkIDExpiration(ctx context.Context, target *checkedSide) {
	const key = "target producer.id.expiration.ms"
	_, err := target.admin.BrokerConfig(ctx)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
	case cluster.Classify(err) == cluster.Authorization:
		p.add(point{warn, key, "unknown", "the mirror's user may not read it; a day is assumed", "grant DescribeConfigs on the cluster if it is set lower"})
	default:
		p.add(target.refused(point{Key: key, Value: "unknown"}, err))
	}
}
