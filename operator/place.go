package operator

import (
	"strconv"
	"time"

	"github.com/causeway-mirror/causeway/route"
)

// Place is a place in a partition's log, as people name it: its beginning, its end, an offset, or the first record that is as new as a time.
type Place struct {
	kind   placeKind
	offset route.Offset
	at     time.Time
}

type placeKind int8

const (
	placeEarliest placeKind = iota
	placeLatest
	placeOffset
	placeTime
)

// Names of the two places that every log has.
const (
	Earliest = "earliest"
	Latest   = "latest"
)

// ParsePlace reads a place: earliest, latest, an offset, or a time of RFC 3339. *InvalidError with the key `to`.
func ParsePlace(text string) (Place, error) {
	switch text {
	case Earliest:
		return Place{kind: placeEarliest}, nil
	case Latest:
		return Place{kind: placeLatest}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 {
			return Place{}, &InvalidError{Key: "to", Value: text, Reason: "an offset must not be negative"}
		}
		return Place{kind: placeOffset, offset: route.Offset(n)}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return Place{}, &InvalidError{Key: "to", Value: text, Reason: "must be earliest, latest, an offset, or a time such as 2006-01-02T15:04:05Z"}
	}
	return Place{kind: placeTime, at: at}, nil
}

// String is what ParsePlace reads.
func (p Place) String() string {
	switch p.kind {
	case placeLatest:
		return Latest
	case placeOffset:
		return strconv.FormatInt(int64(p.offset), 10)
	case placeTime:
		return p.at.Format(time.RFC3339Nano)
	case placeEarliest:
	}
	return Earliest
}

// Offset is the place's offset, if it was named by one.
func (p Place) Offset() (at route.Offset, ok bool) { return p.offset, p.kind == placeOffset }

// Timestamp is what ListOffsets is asked for: -2 for the beginning, -1 for the end, else milliseconds since 1970. Where the place is an offset
// it is the beginning.
func (p Place) Timestamp() int64 {
	const earliest, latest = -2, -1
	switch p.kind {
	case placeLatest:
		return latest
	case placeTime:
		return max(p.at.UnixMilli(), 0) // nothing is older, and what is below is no time to a broker
	case placeEarliest, placeOffset:
	}
	return earliest
}
