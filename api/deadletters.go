package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"
)

// DeadLetters says what became of the dead letters of a topic.
type DeadLetters struct {
	Topic           string `json:"topic"` // of the source
	DeadLetterTopic string `json:"dead_letter_topic"`
	PutBack         int64  `json:"put_back"` // records that their target topics have again
	Refused         int64  `json:"refused"`  // that are refused again: they stand at the end of the dead-letter topic
	Foreign         int64  `json:"foreign"`  // that are passed over, since they are no dead letters of the topic
}

// DeadLetter is a record that the target refused, and that was not put back. Offsets and partitions are -1 where the letter does not say them.
type DeadLetter struct {
	DeadLetterTopic     string    `json:"dead_letter_topic"`
	DeadLetterPartition int32     `json:"dead_letter_partition"`
	DeadLetterOffset    int64     `json:"dead_letter_offset"`
	Topic               string    `json:"topic"` // of the source, as what follows
	Partition           int32     `json:"partition"`
	Offset              int64     `json:"offset"`
	TargetTopic         string    `json:"target_topic"` // that refused it
	TargetPartition     int32     `json:"target_partition"`
	Reason              string    `json:"reason"`
	Time                time.Time `json:"time"`      // when it became a dead letter
	Timestamp           time.Time `json:"timestamp"` // the record's own
	Bytes               int       `json:"bytes"`     // of its key and value
}

func deadLetterLister() lister[DeadLetter] {
	return lister[DeadLetter]{
		// Padded so that the order of keys is the order of numbers.
		key: func(l *DeadLetter) string {
			return fmt.Sprintf("%010d/%020d", l.DeadLetterPartition, l.DeadLetterOffset)
		},
		text: func(l *DeadLetter) []string { return []string{l.TargetTopic, l.Reason} },
		sorts: map[string]func(a, b *DeadLetter) int{
			"time": func(a, b *DeadLetter) int { return a.Time.Compare(b.Time) },
			"offset": func(a, b *DeadLetter) int {
				return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
			},
			"bytes": func(a, b *DeadLetter) int { return cmp.Compare(a.Bytes, b.Bytes) },
		},
	}
}

// listDeadLetters reads all of them for each page: they are few, or the list is not what is needed.
func (s *Server) listDeadLetters(w http.ResponseWriter, r *http.Request, o Operator) {
	s.extend(w, s.cfg.MaxWait)
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.MaxWait)
	defer cancel()
	if _, ok := pageOf(w, r, deadLetterLister(), nil); !ok { // before it takes long
		return
	}
	letters, err := o.DeadLetters(ctx, r.PathValue("topic"))
	if err != nil {
		done(w, http.StatusOK, nil, err)
		return
	}
	answerList(w, r, deadLetterLister(), letters)
}

// retryDeadLetters takes as long as there are letters; what is done is done, also when the client has gone.
func (s *Server) retryDeadLetters(w http.ResponseWriter, r *http.Request, o Operator) {
	s.extend(w, s.cfg.MaxWait)
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.MaxWait)
	defer cancel()
	letters, err := o.RetryDeadLetters(ctx, r.PathValue("topic"))
	done(w, http.StatusOK, letters, err)
}
