package conf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ValueError is a text that is not the value that it should be.
type ValueError struct {
	Reason string // what it should be
	Text   string
}

// Error gives both.
func (e *ValueError) Error() string { return fmt.Sprintf("%s, got %q", e.Reason, e.Text) }

// Bytes is a size, written as 64KiB, 256MiB, 10GB or a plain number of bytes. It is never negative.
type Bytes int64

type unit struct {
	name string
	size int64
}

// units are tried in order; the binary ones first, so that String finds the largest that divides.
func units() []unit {
	return []unit{
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"kB", 1e3},
		{"B", 1},
	}
}

// UnmarshalText reads a whole number with or without a unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, size := strings.TrimSpace(string(text)), int64(1)
	for _, u := range units() {
		if head, ok := strings.CutSuffix(number, u.name); ok {
			number, size = strings.TrimSpace(head), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && n > 0, err == nil && n > math.MaxInt64/size:
		return &ValueError{"is too large", string(text)}
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return &ValueError{"want a size such as 64KiB or 256MiB", string(text)}
	case n < 0:
		return &ValueError{"must not be negative", string(text)}
	}
	*b = Bytes(n * size)
	return nil
}

// String writes the size in the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range units()[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText is what UnmarshalText reads.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// Set makes Bytes a command-line flag.
func (b *Bytes) Set(text string) error { return b.UnmarshalText([]byte(text)) }

// Type names the flag's kind in a usage text.
func (*Bytes) Type() string { return "size" }

// Duration is a time span, written as 5s, 200ms, 1h30m. It is never negative.
type Duration time.Duration

// UnmarshalText reads what time.ParseDuration does.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		return &ValueError{"want a duration such as 200ms, 5s or 1h30m", string(text)}
	case span < 0:
		return &ValueError{"must not be negative", string(text)}
	}
	*d = Duration(span)
	return nil
}

// Duration gives the span as the standard library has it.
func (d Duration) Duration() time.Duration { return time.Duration(d) }

// String writes the span without parts that are zero: 5m, not 5m0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText is what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Set makes Duration a command-line flag.
func (d *Duration) Set(text string) error { return d.UnmarshalText([]byte(text)) }

// Type names the flag's kind in a usage text.
func (*Duration) Type() string { return "duration" }
