package batch

import "github.com/causeway-mirror/causeway/route"

// Verdict is what is to happen to a record.
type Verdict int8

// The verdicts. Changed must be said when any field of the record is another than before: a kept record is copied as it stood.
const (
	Keep Verdict = iota
	Changed
	Drop
)

// Options says what a rewrite is to do.
type Options struct {
	From       route.Offset                   // From is where to begin: records below it are left out.
	Codec      *Codec                         // Codec of the output; nil keeps that of the first input batch.
	MaxBytes   int                            // MaxBytes bounds an output batch, in bytes on the wire; 0 is no bound.
	AppendTime bool                           // AppendTime gives the records of a batch with append time that time, so that the target's readers see what the source's see.
	Map        func(*Record) (Verdict, error) // Map decides on each record and may change it; nil keeps all.
}

// Piece is one output batch of a rewrite.
type Piece struct {
	Batch     Batch
	First     route.Offset // First is the source offset of the first record in it.
	Next      route.Offset // Next is the source offset after all that the piece covers, left-out records included: where to go on once it is stored.
	Oversized bool         // Oversized says that it is one record that does not fit MaxBytes.
}

// Rewriter makes new batches of the records of others. Not for concurrent use.
type Rewriter struct {
	reader Reader
}

// Rewrite makes as few batches as MaxBytes allows of the records of all input batches, in order.
func (w *Rewriter) Rewrite(in []Batch, o Options) (pieces []Piece, err error) { return nil, nil }

// Scan only looks.
func (w *Rewriter) Scan(b Batch, m func(*Record) (Verdict, error)) (changed bool, kept int32, err error) {
	return false, 0, nil
}
