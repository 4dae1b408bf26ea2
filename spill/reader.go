package spill

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/causeway-mirror/causeway/route"
)

// reader goes through a log. It is one goroutine's; the log may grow and be trimmed behind it meanwhile.
type reader struct {
	log   *log
	alloc func(n int) ([]byte, Holder)

	in   bool     // a segment was entered: the one that begins at base
	file *os.File // its file; nil if it is gone
	base route.Offset
	off  int64        // where the next frame begins
	next route.Offset // position that the next frame begins at
	seen int64        // items of this segment before the next frame
	skip route.Offset // items that end at or before it are left out

	items []Item // of the frame that was read last, not handed out yet
	hold  Holder // what they lie in
}

// seek makes the next item the one that holds a position or, if none does, what read says of that.
func (r *reader) seek(p route.Offset) error {
	r.close()
	s, ok := r.log.at(p)
	if !ok {
		return io.EOF
	}
	if err := r.enter(s); err != nil {
		return err
	}
	r.skip = p
	for r.next < p && r.off < s.end {
		fr, err := readFrame(r.file, r.off, s.end, r.next)
		switch {
		case isDamage(err):
			return nil // read tells of it
		case err != nil:
			return err
		case fr.next > p:
			return nil
		}
		r.pass(fr)
	}
	return nil
}

// enter opens a segment. A head that was damaged since the log was opened doesn't matter: the frames have their own sums. A file that is gone is
// damage as large as the segment.
func (r *reader) enter(s segment) error {
	r.close()
	f, err := os.Open(r.log.path(s.base))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	r.in, r.base = true, s.base
	r.off, r.next, r.seen = int64(headFixed+len(r.log.origin)+4), s.base, 0
	if err != nil {
		return r.rest(s, err)
	}
	r.file = f
	return nil
}

// rest goes to the end of a segment of which nothing further can be read, and returns what is lost with that. It is the same each time that the
// reader comes there, though the segment may have grown.
func (r *reader) rest(s segment, reason error) *Corruption {
	s = r.log.damage(s, r.off)
	c := r.corruption(s.next, s.items-r.seen, reason)
	r.off, r.next, r.seen = s.end, s.next, s.items
	return c
}

func (r *reader) pass(fr frame) {
	r.off, r.next, r.seen = r.off+fr.length(), fr.next, r.seen+int64(fr.items)
}

// read returns the next item with a reference that is the caller's. io.EOF: there is none yet. A *Corruption is returned once, and the reader is
// behind it. Other errors are the disk's; the reader is where it was.
func (r *reader) read() (Item, error) {
	for {
		for len(r.items) > 0 {
			item := r.items[0]
			r.items = r.items[1:]
			if item.Next <= r.skip {
				continue
			}
			item.Hold = r.hold
			item.retain()
			return item, nil
		}
		r.drop()
		if err := r.load(); err != nil {
			return Item{}, err
		}
	}
}

// load reads the next frame.
func (r *reader) load() error {
	if !r.in {
		return io.EOF
	}
	s, following := r.log.from(r.base)
	switch {
	case s != nil && r.off < s.end: // a segment that is not there any more was trimmed, so all of it was taken
	case following != nil:
		return r.advance(*following)
	default:
		return io.EOF
	}
	if r.file == nil {
		return r.rest(*s, os.ErrNotExist)
	}
	fr, err := readFrame(r.file, r.off, s.end, r.next)
	if err != nil {
		if !isDamage(err) {
			return err
		}
		return r.rest(*s, err) // where the next frame begins is not known
	}
	body, hold := r.alloc(int(fr.size))
	items, err := readBody(r.file, r.off, fr, body)
	if err != nil {
		Item{Hold: hold}.release()
	}
	switch {
	case errors.Is(err, errCut):
		return r.rest(*s, err)
	case isDamage(err):
		r.log.damage(*s, r.off)
		c := r.corruption(fr.next, int64(fr.items), err)
		r.pass(fr)
		return c
	case err != nil:
		return fmt.Errorf("read %s: %w", r.file.Name(), err)
	}
	r.items, r.hold = items, hold
	r.pass(fr)
	return nil
}

// advance goes to the segment that follows the one at whose end the reader is.
func (r *reader) advance(following segment) error {
	var hole *Corruption
	if r.next < following.base {
		hole = r.corruption(following.base, 0, errFrameHead)
	}
	err := r.enter(following)
	var gone *Corruption
	switch {
	case hole == nil && err == nil:
		return r.load()
	case hole != nil && errors.As(err, &gone):
		hole.Next, hole.items = gone.Next, gone.items
		return hole
	case hole != nil && err == nil:
		return hole
	default:
		return err
	}
}

// place is the position of the next item.
func (r *reader) place() route.Offset {
	switch {
	case !r.in:
		return route.NoOffset
	case len(r.items) > 0:
		return r.items[0].First
	default:
		return r.next
	}
}

// left is how many items can be read from here on. The reader is of no use afterwards.
func (r *reader) left() int64 {
	n := r.log.itemsFrom(r.base) - r.seen
	if r.next < r.skip && r.load() == nil {
		for _, item := range r.items {
			if item.Next <= r.skip {
				n--
			}
		}
	}
	r.close()
	return n
}

// corruption describes damage from here up to next.
func (r *reader) corruption(next route.Offset, items int64, reason error) *Corruption {
	return &Corruption{Path: r.log.path(r.base), Bytes: r.off, First: max(r.next, r.skip), Next: next, Reason: reason.Error(), items: items}
}

// drop gives back the frame that was read last.
func (r *reader) drop() {
	Item{Hold: r.hold}.release()
	r.items, r.hold = nil, nil
}

// close leaves the segment.
func (r *reader) close() {
	r.drop()
	if r.file != nil {
		_ = r.file.Close() // was only read
	}
	r.in, r.file = false, nil
}
