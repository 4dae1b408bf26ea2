package spill

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/route"
)

// A segment is a header and frames; a frame is one transaction. Both are drawn in docs/formats.md. Numbers are big endian, sums are CRC-32C.
const (
	magic      = "CWSPILL\n"
	version    = 1
	headFixed  = 20 // magic, version, length of origin, base; origin and the sum follow
	frameFixed = 32 // items, bytes of the body, first, next, sum of the body, sum of what is before
	indexEntry = 12 // position after the item, its size
	maxFrame   = 1 << 30
	suffix     = ".spill"
)

//nolint:gochecknoglobals // a table that is never written
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// segment is one file of a log.
type segment struct {
	base    route.Offset // position of its first item; its name
	next    route.Offset // position after its last item that can be read
	items   int64        // that can be read
	end     int64        // bytes up to the end of the last frame that can be read
	damaged bool         // it is set aside instead of removed
}

// segmentName is what the file of a segment is called: positions sort as names do.
func segmentName(base route.Offset) string { return fmt.Sprintf("%020d%s", int64(base), suffix) }

// segmentBase is the opposite; false for other files.
func segmentBase(name string) (route.Offset, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseInt(digits, 10, 64)
	return route.Offset(n), ok && err == nil && n >= 0 && segmentName(route.Offset(n)) == name
}

// headOf encodes the head of a segment.
func headOf(origin string, base route.Offset) []byte {
	b := []byte(magic)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint16(b, uint16(len(origin)))
	b = binary.BigEndian.AppendUint64(b, uint64(base))
	b = append(b, origin...)
	return binary.BigEndian.AppendUint32(b, sum(b))
}

var (
	errCut       = errors.New("the file ends in the middle")
	errHead      = errors.New("not the head of a segment")
	errOrigin    = errors.New("written for another source")
	errVersion   = errors.New("written by another version")
	errFrameHead = errors.New("not the head of a frame")
	errBody      = errors.New("the checksum is wrong")
	errIndex     = errors.New("sizes and positions do not add up")
)

// readHead checks the head of a file of size bytes and returns its length. Errors: errCut, errHead, errVersion, errOrigin, or the disk's.
func readHead(f io.ReaderAt, size int64, origin string, base route.Offset) (int64, error) {
	want := headOf(origin, base)
	if size < int64(len(want)) {
		begun := make([]byte, size)
		if _, err := f.ReadAt(begun, 0); err != nil {
			return 0, err
		}
		if bytes.HasPrefix(want, begun) {
			return 0, errCut
		}
		return 0, errHead
	}
	fixed := make([]byte, headFixed)
	if _, err := f.ReadAt(fixed, 0); err != nil {
		return 0, err
	}
	if string(fixed[:len(magic)]) != magic {
		return 0, errHead
	}
	if v := binary.BigEndian.Uint16(fixed[len(magic):]); v != version {
		return 0, fmt.Errorf("%w: format %d, this program knows %d only", errVersion, v, version)
	}
	length := headFixed + int64(binary.BigEndian.Uint16(fixed[10:])) + 4
	if length > size {
		return 0, errHead
	}
	head := make([]byte, length)
	if _, err := f.ReadAt(head, 0); err != nil {
		return 0, err
	}
	body := head[:length-4]
	switch {
	case sum(body) != binary.BigEndian.Uint32(head[length-4:]), route.Offset(binary.BigEndian.Uint64(head[12:])) != base:
		return 0, errHead
	case !bytes.Equal(head, want):
		return 0, errOrigin
	}
	return length, nil
}

// frame is the head of a transaction on disk.
type frame struct {
	items       int
	size        int64 // of the body
	first, next route.Offset
	sum         uint32 // of the body
}

func (f frame) length() int64 { return frameFixed + f.size }

// appendFrame encodes items, which adjoin and are at least one. It fails if they are too many bytes for a frame.
func appendFrame(b []byte, items []Item) ([]byte, error) {
	size := int64(len(items)) * indexEntry
	for _, i := range items {
		size += int64(len(i.Data))
	}
	if size > maxFrame {
		return nil, fmt.Errorf("%w: a transaction of %d bytes, at most %d go into one", ErrTooLarge, size, maxFrame)
	}
	start := len(b)
	b = slices.Grow(b, int(frameFixed+size))[:start+frameFixed]
	for _, i := range items {
		b = binary.BigEndian.AppendUint64(b, uint64(i.Next))
		b = binary.BigEndian.AppendUint32(b, uint32(len(i.Data)))
	}
	for _, i := range items {
		b = append(b, i.Data...)
	}
	head := b[start:start:len(b)]
	head = binary.BigEndian.AppendUint32(head, uint32(len(items)))
	head = binary.BigEndian.AppendUint32(head, uint32(size))
	head = binary.BigEndian.AppendUint64(head, uint64(items[0].First))
	head = binary.BigEndian.AppendUint64(head, uint64(items[len(items)-1].Next))
	head = binary.BigEndian.AppendUint32(head, sum(b[start+frameFixed:]))
	binary.BigEndian.AppendUint32(head, sum(head))
	return b, nil
}

// readFrame reads the head of the frame at a place of a file that ends at end, and that should begin at position first. Errors: errCut,
// errFrameHead, or the disk's.
func readFrame(f io.ReaderAt, at, end int64, first route.Offset) (frame, error) {
	if end-at < frameFixed {
		return frame{}, errCut
	}
	var head [frameFixed]byte
	if _, err := f.ReadAt(head[:], at); errors.Is(err, io.EOF) {
		return frame{}, errCut // shorter than it was
	} else if err != nil {
		return frame{}, err
	}
	fr := frame{
		items: int(binary.BigEndian.Uint32(head[0:])), size: int64(binary.BigEndian.Uint32(head[4:])),
		first: route.Offset(binary.BigEndian.Uint64(head[8:])), next: route.Offset(binary.BigEndian.Uint64(head[16:])),
		sum: binary.BigEndian.Uint32(head[24:]),
	}
	switch {
	case sum(head[:frameFixed-4]) != binary.BigEndian.Uint32(head[frameFixed-4:]):
		return frame{}, errFrameHead
	case fr.first != first, fr.next <= fr.first, fr.items < 1, fr.size < int64(fr.items)*indexEntry, fr.size > maxFrame:
		return frame{}, errFrameHead
	case fr.length() > end-at:
		return frame{}, errCut
	}
	return fr, nil
}

// readBody reads the items of the frame at a place into body, which is as long as the frame's. Errors: errCut, errBody, errIndex, or the disk's.
func readBody(f io.ReaderAt, at int64, fr frame, body []byte) ([]Item, error) {
	if _, err := f.ReadAt(body, at+frameFixed); errors.Is(err, io.EOF) {
		return nil, errCut
	} else if err != nil {
		return nil, err
	}
	return parseBody(fr, body)
}

// parseBody checks a frame's body and returns its items, which lie in it. Errors: errBody, errIndex.
func parseBody(fr frame, body []byte) ([]Item, error) {
	if sum(body) != fr.sum {
		return nil, errBody
	}
	items := make([]Item, fr.items)
	index, data := body[:fr.items*indexEntry], body[fr.items*indexEntry:]
	first := fr.first
	for i := range items {
		next := route.Offset(binary.BigEndian.Uint64(index[i*indexEntry:]))
		size := int64(binary.BigEndian.Uint32(index[i*indexEntry+8:]))
		if next <= first || size > int64(len(data)) {
			return nil, errIndex
		}
		items[i] = Item{First: first, Next: next, Data: data[:size:size]}
		first, data = next, data[size:]
	}
	if first != fr.next || len(data) > 0 {
		return nil, errIndex
	}
	return items, nil
}

// walk reads the heads of a file's frames and says how far they go. The error says why no further: nil at the end of the file, errCut,
// errFrameHead, what readHead says, or the disk's. With bodies it checks these as well and the end is before the last run of broken ones.
func walk(path, origin string, base route.Offset, bodies bool) (segment, error) {
	s := segment{base: base, next: base}
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	if s.end, err = readHead(f, info.Size(), origin, base); err != nil {
		return s, err
	}
	sound := s
	for s.end < info.Size() {
		fr, err := readFrame(f, s.end, info.Size(), s.next)
		if err != nil {
			return sound, err
		}
		ok := true
		if bodies {
			_, err := readBody(f, s.end, fr, make([]byte, fr.size))
			if err != nil && !isDamage(err) {
				return sound, err
			}
			ok = err == nil
		}
		s.end, s.next, s.items = s.end+fr.length(), fr.next, s.items+int64(fr.items)
		if ok {
			sound = s
		}
	}
	if sound.end < s.end {
		return sound, errBody
	}
	return sound, nil
}

// segments lists the positions at which a folder's segments begin, in order.
func segments(dir string) ([]route.Offset, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var bases []route.Offset
	for _, e := range entries {
		if base, ok := segmentBase(e.Name()); ok && !e.IsDir() {
			bases = append(bases, base)
		}
	}
	return bases, nil
}

// folderBytes is how much the files below a folder take; 0 if there is none.
func folderBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return total, err
}
