package httpd

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/letters"
)

// ListDeadLetters gives the letters of a source topic in the API's words.
func ListDeadLetters(found []letters.Letter, err error) ([]api.DeadLetter, error) {
	if errors.Is(err, letters.ErrNone) {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	all := make([]api.DeadLetter, 0, len(found))
	for i := range found {
		l := &found[i]
		all = append(all, api.DeadLetter{
			DeadLetterTopic: l.At.Topic, DeadLetterPartition: l.At.Partition, DeadLetterOffset: int64(l.Offset), Topic: l.From.Source.Topic,
			Partition: l.From.Source.Partition, Offset: int64(l.From.Offset), TargetTopic: l.From.Target.Topic, TargetPartition: l.From.Target.Partition,
			Reason: l.From.Reason, Time: l.Buried, Timestamp: l.Time, Bytes: l.Bytes,
		})
	}
	return all, err
}

// DeadLetters gives what became of a source topic's dead letters the API's meaning, and logs what was done, also before an error.
func DeadLetters(log hclog.Logger, did api.DeadLetters, r letters.Result, err error) (api.DeadLetters, error) {
	did.PutBack, did.Refused, did.Foreign = r.PutBack, r.Refused, r.Foreign
	if r.PutBack > 0 || r.Refused > 0 {
		log.Info("dead letters were put back", "topic", did.Topic, "dead_letter_topic", did.DeadLetterTopic, "put_back", r.PutBack, "refused", r.Refused)
	}
	switch {
	case err == nil:
		return did, nil
	case errors.Is(err, letters.ErrBusy):
		return did, fmt.Errorf("%w: %w", api.ErrAlready, err)
	case errors.Is(err, letters.ErrNone):
		return did, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	case r.PutBack > 0 || r.Refused > 0:
		return did, fmt.Errorf("after %d that were put back and %d that are refused again: %w", r.PutBack, r.Refused, err)
	}
	return did, err
}
