package network

import (
	"sync"
	"time"
)

// Window is what is in flight on a connection: what was asked and is not answered yet, in the order in which it was asked. Whoever reads the
// requests puts them in and is held up while there are too many (muted), which in the end holds up the client.
type Window[T any] struct {
	most int
	tell func(idle bool)

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	items   []T
	empty   time.Time // since when nothing is in flight
	ended   bool
}

// NewWindow has room for so many at once. tell is called when the first one comes in and when the last one is out, under the window's lock: in
// the order in which that happens.
func NewWindow[T any](most int, tell func(idle bool)) *Window[T] {
	w := &Window[T]{most: most, tell: tell, empty: time.Now()}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// Put adds one behind the others as soon as there is room; false when the window ended.
func (w *Window[T]) Put(item T) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.items) >= w.most && !w.ended {
		w.changed.Wait()
	}
	if w.ended {
		return false
	}
	if w.items = append(w.items, item); len(w.items) == 1 {
		w.tell(false)
	}
	return true
}

// First is the oldest one, if there is one.
func (w *Window[T]) First() (item T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) == 0 {
		return item, false
	}
	return w.items[0], true
}

// Pop removes the oldest one: it is answered.
func (w *Window[T]) Pop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.items = w.items[1:]; len(w.items) == 0 {
		w.items, w.empty = nil, time.Now()
		w.tell(true)
	}
	w.changed.Broadcast()
}

// Idle is for how long nothing has been in flight; 0 while something is.
func (w *Window[T]) Idle() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) > 0 {
		return 0
	}
	return time.Since(w.empty)
}

// AwaitEmpty waits until all is answered, or the window ended.
func (w *Window[T]) AwaitEmpty() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.items) > 0 && !w.ended {
		w.changed.Wait()
	}
}

// End lets nobody wait any more.
func (w *Window[T]) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.changed.Broadcast()
}
