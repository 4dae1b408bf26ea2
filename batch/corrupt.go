package batch

import (
	"encoding/binary"
	"fmt"

	"github.com/causeway-mirror/causeway/route"
)

// CorruptError says which part of a batch cannot be right. Fetching the batch again may help; reading on after it does not.
type CorruptError struct {
	Offset route.Offset // Offset is the batch's base offset as its header has it; NoOffset when there are not enough bytes to tell.
	Field  string       // Field is the name of the field in the protocol's documentation, or the part of the batch.
	Value  any          // Value is what stands there; nil when there is no single value.
	Reason string       // Reason says why it cannot be right.
	Err    error        // Err is what a codec said; may be nil.
}

// Error names the field, its value and the reason.
func (e *CorruptError) Error() string {
	text := fmt.Sprintf("corrupt batch at offset %d: %s", e.Offset, e.Field)
	if e.Value != nil {
		text += fmt.Sprintf(" %v", e.Value)
	}
	text += ": " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives the codec's error.
func (e *CorruptError) Unwrap() error { return e.Err }

// corrupt makes the error for a batch of which at least the first bytes are at hand.
func corrupt(b []byte, field string, value any, reason string) *CorruptError {
	offset := route.NoOffset
	if len(b) >= lengthAt {
		offset = route.Offset(binary.BigEndian.Uint64(b))
	}
	return &CorruptError{Offset: offset, Field: field, Value: value, Reason: reason}
}
