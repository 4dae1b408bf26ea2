package offsets

import "github.com/causeway-mirror/causeway/route"

// Sequences live on a circle of 2³¹: 2³¹-1 is followed by 0 (KIP-98).

// Plus is the sequence n records after seq.
func Plus(seq, n int32) int32 { return int32((int64(seq) + int64(n)) & 0x7fffffff) }

// Ahead is how many records `to` lies ahead of `from`; negative if it lies behind. Right for distances below 2³⁰.
func Ahead(from, to int32) int64 {
	d := (int64(to) - int64(from)) & 0x7fffffff
	if d >= 1<<30 {
		d -= 1 << 31
	}
	return d
}

// Question is what must be asked about a partition's target before anything may be sent to it.
type Question int8

// The questions.
const (
	// NoQuestion: nothing is to be asked now.
	NoQuestion Question = iota
	// AskProducer: what does the leader have of our producer id (DescribeProducers, KIP-664), and where does its log end.
	AskProducer
	// AskLog: read the log's batch headers from Inquiry.From to its end and look for our producer id and epoch.
	AskLog
)

// Inquiry is a question with what is needed to answer it.
type Inquiry struct {
	Question      Question
	ProducerID    int64
	ProducerEpoch int16
	From          route.Offset // target offset to read from, for AskLog
}

// Mark tells one record from others without its content.
type Mark struct {
	Digest    uint64 // of key, value and headers; never 0, which is no mark
	Timestamp int64  // in ms, as the log shows it
}

// Hint is an answer to an Inquiry. It is a hint and no more: what a replica says of its own log, replicated or not, may be gone or
// overtaken a moment later. Only an acknowledgement with acks=all proves anything.
type Hint struct {
	Known     bool  // the broker has an entry for our producer id
	Epoch     int16 // of that entry
	Last      int32 // last sequence of that entry
	Timestamp int64 // of the entry's last batch, in ms; -1 when unknown
	// Forgotten says that the broker itself has no entry (its producer state expired, or it can't be asked for it) and only the log showed
	// what is known: a batch that is sent again may be stored again.
	Forgotten bool
	// First is the base sequence of the batch that ends at Last; -1 unless the log was read and shows it.
	First int32
	// LastRecord is the record at Last, so that it can be compared with the one that was counted to; the zero Mark unless First is known and
	// the record can be read.
	LastRecord Mark
	// After is the target offset that follows the record at Last; only where First is known.
	After route.Offset

	Start, End route.Offset // of the target's log up to its high watermark; NoOffset when not asked
	Read       bool         // the log itself was read (AskLog) from ReadFrom to End
	ReadFrom   route.Offset
	// Replaced says that the record at the inquiry's From is there and is not ours.
	Replaced bool

	TopicID route.TopicID // of the target topic as it is now; zero when the broker gives none
}
