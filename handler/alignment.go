package handler

import "fmt"

// AlignmentError says that a target topic has fewer partitions than its source topic, so that some would have no place of their own.
type AlignmentError struct {
	Topic, Target    string // source topic, target topic
	SourcePartitions int32
	TargetPartitions int32
}

// Error names both counts and the cure.
func (e *AlignmentError) Error() string {
	return fmt.Sprintf("topic %s has %d partitions, target topic %s has %d: add partitions to %s until it has %d, or set partition_mismatch: %s",
		e.Topic, e.SourcePartitions, e.Target, e.TargetPartitions, e.Target, e.SourcePartitions, Modulo)
}

// Alignment maps the partitions of one source topic to those of its target topic.
type Alignment struct {
	source, target int32
	topicShared    bool // another source topic goes to the same target topic
}

// Target gives the target partition of source partition p, which must be in the source topic. Shared says that other source partitions may
// write there too: p needs a producer id of its own, or their sequences would collide. It depends on configuration and counts only, and
// errs on the side of true. Topics grow, so it holds for this Alignment: who is alone may get company later, which is shared then, and p may go
// to another target partition.
func (a Alignment) Target(p int32) (target int32, shared bool) {
	target = p % a.target
	alone := p < a.target && int64(p)+int64(a.target) >= int64(a.source)
	return target, a.topicShared || !alone
}

// Align maps partition i to partition i. A target with more partitions is as good; one with fewer is refused with an *AlignmentError, or
// taken modulo if so configured.
func (h *Handler) Align(topic string, sourcePartitions, targetPartitions int32) (Alignment, error) {
	target, err := h.mapping.target(topic)
	if err != nil {
		return Alignment{}, err
	}
	if sourcePartitions <= 0 || targetPartitions <= 0 || (targetPartitions < sourcePartitions && !h.modulo) {
		return Alignment{}, &AlignmentError{Topic: topic, Target: target, SourcePartitions: sourcePartitions, TargetPartitions: targetPartitions}
	}
	return Alignment{source: sourcePartitions, target: targetPartitions, topicShared: h.mapping.shared(topic, target)}, nil
}
