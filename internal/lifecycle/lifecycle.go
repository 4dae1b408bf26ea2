package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrStuck says that a component did not end within the time to stop. Its goroutine may still run; the process should exit.
var ErrStuck = errors.New("did not stop in time")

// Component is one part of a process. Every function may be nil.
type Component struct {
	// Name stands in errors.
	Name string
	// Start returns when the component is ready for those after it. Its context ends when the process is asked to stop.
	Start func(ctx context.Context) error
	// Run works until its context ends, which happens when everything that was started later has stopped. If it returns earlier, with or
	// without an error, all is stopped.
	Run func(ctx context.Context) error
	// Stop frees what Start took, after Run has returned. Its context ends when the time to stop is over.
	Stop func(ctx context.Context) error
}

// Group runs components.
type Group struct {
	// Components are in the order of start; each may use those before it.
	Components []Component
	// StopTimeout bounds the stop of all together.
	StopTimeout time.Duration
}

// started is a component that has to be stopped.
type started struct {
	Component
	cancel context.CancelFunc
	done   chan struct{}
	err    error // guarded by done
}

// Run starts the components, waits until ctx ends or one of them does, and stops them. The answer is the first failure; failures of the stop
// that it caused are joined behind it. A stop by ctx is no failure.
func (g Group) Run(ctx context.Context) error {
	starting, abort := context.WithCancel(ctx)
	defer abort()
	ended := make(chan *started, len(g.Components))
	var running []*started
	var failure error
	for _, c := range g.Components {
		if c.Start != nil {
			if err := c.Start(starting); err != nil {
				failure = fmt.Errorf("start %s: %w", c.Name, err)
				break
			}
		}
		running = append(running, launch(context.WithoutCancel(ctx), c, ended))
	}
	if failure == nil {
		select {
		case <-ctx.Done():
		case first := <-ended:
			failure = first.failure()
		}
	} else if ctx.Err() != nil && errors.Is(failure, ctx.Err()) {
		failure = nil
	}
	return errors.Join(failure, g.stop(context.WithoutCancel(ctx), running, failure))
}

// launch begins a component's Run. Its goroutine is waited for in stop.
func launch(ctx context.Context, c Component, ended chan<- *started) *started {
	ctx, cancel := context.WithCancel(ctx)
	s := &started{Component: c, cancel: cancel, done: make(chan struct{})}
	if c.Run == nil {
		close(s.done)
		return s
	}
	go func() { // owned by Group.Run
		s.err = c.Run(ctx)
		close(s.done)
		ended <- s
	}()
	return s
}

// stop ends the components in reverse. A failure that is known already is not reported again.
func (g Group) stop(ctx context.Context, running []*started, known error) error {
	ctx, cancel := context.WithTimeout(ctx, g.StopTimeout)
	defer cancel()
	var failures []error
	for i, s := range slices.Backward(running) {
		s.cancel()
		select {
		case <-s.done:
		case <-ctx.Done():
			for _, below := range running[:i] {
				below.cancel() // they are told, but what the stuck one may still use is not freed
			}
			return errors.Join(append(failures, fmt.Errorf("stop %s: %w", s.Name, ErrStuck))...)
		}
		if err := s.failure(); err != nil && (known == nil || known.Error() != err.Error()) {
			failures = append(failures, err)
		}
		if s.Stop != nil {
			if err := s.Stop(ctx); err != nil {
				failures = append(failures, fmt.Errorf("stop %s: %w", s.Name, err))
			}
		}
	}
	return errors.Join(failures...)
}

// failure is what a component that has ended failed with. The end of its context is none.
func (s *started) failure() error {
	if s.err == nil || errors.Is(s.err, context.Canceled) {
		return nil
	}
	return fmt.Errorf("run %s: %w", s.Name, s.err)
}
