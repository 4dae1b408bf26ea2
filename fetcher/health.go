package fetcher

import (
	"fmt"
	"sync"
	"time"
)

// UnreachableError says that the source cluster, or one of its brokers, can't be reached.
type UnreachableError struct {
	Broker int32 // -1: no broker answers
	Since  time.Time
	Err    error // of the last try
}

// Error says who, since when, and why.
func (e *UnreachableError) Error() string {
	if e.Broker < 0 {
		return fmt.Sprintf("source cluster unreachable since %s: %v", e.Since.Format(time.RFC3339), e.Err)
	}
	return fmt.Sprintf("source broker %d unreachable since %s: %v", e.Broker, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// health keeps who fails to reach what. The key nil stands for the router, which asks any broker.
type health struct {
	mu   sync.Mutex
	down map[*loop]UnreachableError
}

// fail notes a failure. It is true for the first one in a row.
func (h *health) fail(l *loop, err error) bool {
	broker := int32(-1)
	if l != nil {
		broker = l.pair.broker
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down == nil {
		h.down = make(map[*loop]UnreachableError)
	}
	e, known := h.down[l]
	if !known {
		e = UnreachableError{Broker: broker, Since: time.Now()}
	}
	e.Err = err
	h.down[l] = e
	return !known
}

// up ends a row of failures. It is true if there was one.
func (h *health) up(l *loop) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, was := h.down[l]
	delete(h.down, l)
	return was
}

// isDown says whether a loop can't reach its broker.
func (h *health) isDown(l *loop) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.down[l]
	return is
}

// worst is the failure of the whole cluster, else the one that lasts longest.
func (h *health) worst() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.down[nil]; ok {
		return &e
	}
	var worst *UnreachableError
	for _, e := range h.down {
		if worst == nil || e.Since.Before(worst.Since) {
			worst = &e
		}
	}
	if worst == nil {
		return nil
	}
	return worst
}
