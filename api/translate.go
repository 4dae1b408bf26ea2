package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/causeway-mirror/causeway/route"
)

// Translator finds source offsets on the target. Errors: ErrNotFound where a partition does not run here, and whatever keeps it from being found out.
type Translator interface {
	Translate(ctx context.Context, p route.Partition, offset route.Offset) (Translation, error)
	// TranslateGroup translates what a consumer group of the source has committed.
	TranslateGroup(ctx context.Context, group string) ([]Translation, error)
}

// Translation is where readers of the target go on who would read the source from an offset on.
type Translation struct {
	Topic           string `json:"topic"`
	Partition       int32  `json:"partition"`
	Offset          int64  `json:"offset"`
	TargetTopic     string `json:"target_topic"`
	TargetPartition int32  `json:"target_partition"`
	TargetOffset    int64  `json:"target_offset"` // -1 if Reason says why it is not known
	Exact           bool   `json:"exact"`         // else it may be an earlier one, never a later one
	Reason          string `json:"reason"`
}

func translationLister() lister[Translation] {
	return lister[Translation]{
		key:  func(t *Translation) string { return fmt.Sprintf("%s/%010d", t.Topic, t.Partition) },
		text: func(t *Translation) []string { return []string{t.Topic, t.TargetTopic, t.Reason} },
		sorts: map[string]func(a, b *Translation) int{
			"topic": func(a, b *Translation) int { return cmp.Compare(a.Topic, b.Topic) },
		},
	}
}

// translate answers with a list also where one offset is asked for.
func (s *Server) translate(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	group, topic := q.Get("group"), q.Get("topic")
	partition, err := parseNumber(q, "partition", 0)
	offset, err2 := parseNumber(q, "offset", -1)
	switch alone := topic != "" && offset >= 0; {
	case err != nil || err2 != nil:
	case group == "" && !alone:
		err = errors.New("group, or topic and offset: must be given") //nolint:err113 // only ever shown
	case group != "" && (topic != "" || offset >= 0 || q.Has("partition")):
		err = errors.New("group: goes without topic, partition and offset") //nolint:err113 // only ever shown
	}
	if err = errors.Join(err, err2, repeated(q)); err != nil {
		fail(w, http.StatusUnprocessableEntity, "invalid", err.Error())
		return
	}
	if _, ok := pageOf(w, r, translationLister(), nil); !ok {
		return
	}
	s.extend(w, s.cfg.MaxWait)
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.MaxWait)
	defer cancel()
	var all []Translation
	if group != "" {
		all, err = s.deps.Translator.TranslateGroup(ctx, group)
	} else {
		var one Translation
		one, err = s.deps.Translator.Translate(ctx, route.Partition{Topic: topic, Partition: int32(partition)}, route.Offset(offset))
		all = []Translation{one}
	}
	if err != nil {
		done(w, http.StatusOK, nil, err)
		return
	}
	answerList(w, r, translationLister(), all)
}
