package mirror

// A worker may have ten thousand lanes of which most do nothing for hours. To look at each of them several times a second would cost more CPU than
// all else that it does then. So whoever looks after what no event tells (a position to store, a halt to try again, a source that must be asked)
// looks at the restless lanes alone: those to which something happened, until nothing is left to be done for them.

// lock is how a lane is locked by whoever may change it.
func (l *Lane) lock() {
	l.mu.Lock()
	l.stirLocked()
}

func (l *Lane) stirLocked() {
	if !l.restless {
		l.restless = l.stream.stirred(l)
	}
}

// restLocked takes the lane off its stream's restless ones if nothing is left to be done before something happens to it.
func (l *Lane) restLocked() {
	if l.restless && l.restingLocked() {
		l.restless = false
		l.stream.rested(l)
	}
}

func (l *Lane) restingLocked() bool {
	in, o := &l.in, &l.out
	switch {
	case l.closing, l.pos.dirty, l.pos.doubted, l.backlog:
		return false
	case in.fault != nil, in.retried, len(in.entries) > 0, in.gap > 0, in.unstored > 0, in.withheld && !l.heldLocked():
		return false
	case l.pos.anew.Cause != 0, in.aside.fault != nil:
		return false
	case o.queue.len() > 0, o.flying.len() > 0, o.window > 0, l.refusedLocked():
		return false
	}
	return o.phase == open || o.phase == certifying
}

// Restless lists the lanes that are not at rest, in no order: all others are neither stale, refused, doubted nor short.
func (m *Mirror) Restless() []*Lane {
	var all []*Lane
	for _, s := range m.streams {
		all = append(all, s.listRestless()...)
	}
	return all
}

// stirred puts a lane among the restless ones; false if the lane is not the stream's any more.
func (s *Stream) stirred(l *Lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes[l.plan.Source] != l {
		return false
	}
	s.restless[l] = struct{}{}
	return true
}

func (s *Stream) rested(l *Lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.restless, l)
}

func (s *Stream) listRestless() []*Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Lane, 0, len(s.restless))
	for l := range s.restless {
		all = append(all, l)
	}
	return all
}
