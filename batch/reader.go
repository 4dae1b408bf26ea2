package batch

import "io"

// Reader decodes batches of all formats, one after the other. Not for concurrent use.
type Reader struct {
	rec Record
}

// Reset starts a batch.
func (r *Reader) Reset(b Batch) error { return b.Check() }

// Next gives the next record; io.EOF at the end.
func (r *Reader) Next() (*Record, error) { return nil, io.EOF }
