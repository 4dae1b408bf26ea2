package spill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/causeway-mirror/causeway/route"
)

// log is one partition's segments. One goroutine at a time appends; others may read, sync and trim meanwhile.
type log struct {
	dir, origin string
	disk        *disk

	mu       sync.Mutex
	segments []segment         // oldest first; the last one is written to if file is open
	file     *os.File          // the last segment's; nil = the next append begins one
	unsynced []*os.File        // written to since the last sync; all but file are closed by it
	newNames bool              // the folder's entries have changed since the last sync
	written  route.Offset      // position after the last append
	safe     route.Offset      // the same, of the last sync
	syncing  sync.Mutex        // one sync at a time; taken before mu
	damages  map[place]segment // what damage can't be read, with the segment as it was then
	broken   error             // a write or a sync has failed so that what the files hold is not known
}

// place is where in which segment.
type place struct {
	base route.Offset
	off  int64
}

// opened is what openLog found beside the log.
type opened struct {
	corrupt []Corruption // at the end, where it is not known up to where; Next is route.NoOffset
	foreign error        // the whole log can't be gone on with, and why
}

// openLog reads a folder's segments. What a crash has left unfinished at the end is cut off; what is damaged there is copied aside first.
func openLog(dir, origin string, d *disk) (*log, opened, error) {
	l := &log{dir: dir, origin: origin, disk: d, written: route.NoOffset, safe: route.NoOffset, damages: map[place]segment{}}
	var found opened
	bases, err := segments(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, found, err
	}
	foreign := 0
	for i, base := range bases {
		last := i == len(bases)-1
		s, reason := walk(l.path(base), origin, base, last)
		switch {
		case reason == nil:
		case !isDamage(reason):
			return nil, found, fmt.Errorf("read %s: %w", l.path(base), reason)
		case foreign == i && (errors.Is(reason, errOrigin) || errors.Is(reason, errVersion)): // behind one that is ours it is damage
			foreign++
			found.foreign = fmt.Errorf("%s: %w", segmentName(base), reason)
			s.damaged = true
		case last:
			if err := l.cutTail(s, reason, &found); err != nil {
				return nil, found, err
			}
		default:
			s.damaged = true
		}
		l.segments = append(l.segments, s)
	}
	if foreign < len(bases) {
		found.foreign = nil
	}
	if err := l.dropEmptyTail(&found); err != nil {
		return nil, found, err
	}
	if n := len(l.segments); n > 0 {
		l.written = l.segments[n-1].next
		l.safe = l.written
	}
	for i := 1; i < len(l.segments); i++ {
		if l.segments[i-1].next > l.segments[i].base {
			found.foreign = fmt.Errorf("%s: %w", segmentName(l.segments[i].base), errIndex)
		}
	}
	return l, found, nil
}

// isDamage tells what the bytes say from what the disk says.
func isDamage(err error) bool {
	return slices.ContainsFunc([]error{errCut, errHead, errOrigin, errVersion, errFrameHead, errBody, errIndex}, func(e error) bool { return errors.Is(err, e) })
}

// cutTail ends the last segment where it can be read.
func (l *log) cutTail(s segment, reason error, found *opened) error {
	path := l.path(s.base)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !errors.Is(reason, errCut) {
		found.corrupt = append(found.corrupt, Corruption{Path: path, Bytes: s.end, First: s.next, Next: route.NoOffset, Reason: reason.Error()})
		if err := l.disk.copyAside(path); err != nil {
			return err
		}
	}
	if err := os.Truncate(path, s.end); err != nil {
		return err
	}
	l.disk.free(info.Size() - s.end)
	return l.disk.syncPath(path)
}

// dropEmptyTail removes a last segment without items: its file may lack a head, and the next append makes it anew.
func (l *log) dropEmptyTail(found *opened) error {
	n := len(l.segments)
	if n == 0 || l.segments[n-1].items > 0 || l.segments[n-1].damaged {
		return nil
	}
	err := os.Remove(l.path(l.segments[n-1].base))
	l.disk.free(l.segments[n-1].end)
	l.segments = l.segments[:n-1]
	if n > 1 && l.segments[n-2].damaged { // nothing behind its damage is left that a reader could come to
		s := l.segments[n-2]
		found.corrupt = append(found.corrupt, Corruption{Path: l.path(s.base), Bytes: s.end, First: s.next, Next: route.NoOffset, Reason: errFrameHead.Error()})
	}
	return err
}

func (l *log) path(base route.Offset) string { return filepath.Join(l.dir, segmentName(base)) }

// append writes one transaction. ErrFull: there is no room, nothing was written. Other errors are the disk's.
func (l *log) append(items []Item, segmentBytes int64) error {
	scratch, _ := l.disk.scratch.Get().(*[]byte) // nothing else is ever put there
	defer l.disk.scratch.Put(scratch)
	b, err := appendFrame((*scratch)[:0], items)
	if err != nil {
		return err
	}
	*scratch = b
	first, next := items[0].First, items[len(items)-1].Next
	l.mu.Lock()
	broken, file := l.broken, l.file
	at := int64(0)
	if n := len(l.segments); n > 0 {
		at = l.segments[n-1].end
	}
	fits := file != nil && l.written == first && at+int64(len(b)) <= segmentBytes
	l.mu.Unlock()
	if broken != nil {
		return broken
	}
	if !fits {
		return l.begin(b, items)
	}
	if err := l.write(file, b, at); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.segments[len(l.segments)-1]
	s.end, s.next, s.items = at+int64(len(b)), next, s.items+int64(len(items))
	l.written = next
	l.dirtyLocked(file)
	return nil
}

// begin writes a frame as the first of a new segment.
func (l *log) begin(b []byte, items []Item) error {
	base, next := items[0].First, items[len(items)-1].Next
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return full(err)
	}
	head := headOf(l.origin, base)
	path := l.path(base)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return full(err)
	}
	if err := l.write(file, append(head, b...), 0); err != nil {
		return errors.Join(err, file.Close(), os.Remove(path))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked()
	l.file, l.newNames, l.written = file, true, next
	l.segments = append(l.segments, segment{base: base, next: next, items: int64(len(items)), end: int64(len(head) + len(b))})
	l.dirtyLocked(file)
	return nil
}

// leaveLocked ends the appends to the present file. The next sync closes it, also if it has nothing to sync: one may be under way.
func (l *log) leaveLocked() {
	if l.file != nil {
		l.dirtyLocked(l.file)
		l.file = nil
	}
}

func (l *log) dirtyLocked(f *os.File) {
	if !slices.Contains(l.unsynced, f) {
		l.unsynced = append(l.unsynced, f)
	}
}

// write puts b at a place of a file, or leaves the file as it was.
func (l *log) write(f *os.File, b []byte, at int64) error {
	if !l.disk.reserve(int64(len(b))) {
		return fmt.Errorf("%w: max_bytes is reached", ErrFull)
	}
	_, err := l.disk.writeAt(f, b, at)
	if err == nil {
		return nil
	}
	l.disk.free(int64(len(b)))
	if cut := f.Truncate(at); cut != nil {
		l.mu.Lock()
		l.broken = fmt.Errorf("cut off a write that failed: %w", cut)
		l.mu.Unlock()
	}
	return full(err)
}

// full gives an error of the disk that only says that it is full its name.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// sync brings to disk what was written before the call. After a failure the system may have dropped what it had, so the log takes nothing more.
func (l *log) sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	files, names, written := l.unsynced, l.newNames, l.written
	l.unsynced, l.newNames = nil, false
	l.mu.Unlock()
	var faults []error
	for _, f := range files {
		faults = append(faults, l.disk.sync(f))
	}
	if names {
		faults = append(faults, l.disk.syncPath(l.dir), l.disk.syncPath(filepath.Dir(l.dir)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range files {
		if f != l.file && !slices.Contains(l.unsynced, f) { // nothing is appended to it any more
			faults = append(faults, f.Close())
		}
	}
	if err := errors.Join(faults...); err != nil {
		l.broken = fmt.Errorf("sync %s: %w", l.dir, err)
		return l.broken
	}
	l.safe = max(l.safe, written)
	return nil
}

// trim removes the segments of which everything lies before a position.
func (l *log) trim(at route.Offset) error {
	l.mu.Lock()
	n := 0
	for n < len(l.segments) && l.segments[n].next <= at && (n == len(l.segments)-1 || l.segments[n+1].base <= at) {
		n++
	}
	gone := slices.Clone(l.segments[:n])
	l.segments = slices.Delete(l.segments, 0, n)
	if n > 0 && len(l.segments) == 0 {
		l.leaveLocked()
	}
	l.mu.Unlock()
	var faults []error
	for _, s := range gone {
		var err error
		if s.damaged {
			err = l.disk.moveAside(l.path(s.base))
		} else if err = os.Remove(l.path(s.base)); err == nil {
			l.disk.free(s.end)
		}
		if !errors.Is(err, os.ErrNotExist) { // else someone else has removed it, as the reader has told
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// at returns the segment that a position lies in or behind, else the first one, and whether there is any.
func (l *log) at(p route.Offset) (segment, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range slices.Backward(l.segments) {
		if s.base <= p {
			return s, true
		}
	}
	if len(l.segments) == 0 {
		return segment{}, false
	}
	return l.segments[0], true
}

// from returns the segment that begins at base and how the log goes on behind it, as of one moment: a segment that another follows grows no more.
// Neither is there: nil.
func (l *log) from(base route.Offset) (s, following *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.segments {
		if t.base == base {
			s = &t
		} else if t.base > base {
			return s, &t
		}
	}
	return s, nil
}

// itemsFrom is how many items can be read from the segment on that begins at base.
func (l *log) itemsFrom(base route.Offset) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(0)
	for _, s := range l.segments {
		if s.base >= base {
			n += s.items
		}
	}
	return n
}

// damage notes that nothing can be read at a place of a segment, so that it is kept when it is trimmed. It returns the segment as it was when that
// was noted first: what was appended since lies behind the damage. No more is written to it.
func (l *log) damage(s segment, off int64) segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.segments {
		if l.segments[i].base == s.base {
			l.segments[i].damaged = true
			if i == len(l.segments)-1 {
				l.leaveLocked()
			}
		}
	}
	key := place{s.base, off}
	if _, known := l.damages[key]; !known {
		l.damages[key] = s
	}
	return l.damages[key]
}

// extent is the positions that the log covers, holes included; route.NoOffset twice if there are none.
func (l *log) extent() (first, next route.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments) == 0 {
		return route.NoOffset, route.NoOffset
	}
	return l.segments[0].base, l.segments[len(l.segments)-1].next
}

// figures are how many items can be read, of how many bytes, and up to which position everything is synced.
func (l *log) figures() (items, bytes int64, safe route.Offset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		items, bytes = items+s.items, bytes+s.end
	}
	return items, bytes, l.safe
}

// close closes the files. What was written and not synced is left to the system.
func (l *log) close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveLocked()
	var faults []error
	for _, f := range l.unsynced {
		faults = append(faults, f.Close())
	}
	l.unsynced, l.broken = nil, ErrClosed
	return errors.Join(faults...)
}
