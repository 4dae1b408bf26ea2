package batch

import "github.com/causeway-mirror/causeway/route"

// minRecordSize is the length in bytes of the smallest record of format 2: each of its seven fields takes one byte at least.
const minRecordSize = 7

// Record is one record of a batch, as a view: see Reader.Next for how long it lives. Its byte slices may be replaced by others, but their bytes must not be written to: they may
// be those of a batch that passes on raw.
type Record struct {
	Offset    route.Offset // Offset in the source's log.
	Timestamp int64        // Timestamp in milliseconds as the producer gave it, also when the batch has an append time; -1 when there is none.
	Key       []byte       // Key is nil when null.
	Value     []byte       // Value is nil when null.
	Headers   []Header     // Headers in their order; keys may repeat.
}

// Header is one of a record's headers. Key points into the same memory as the record and lives as long (strings.Clone keeps it).
type Header struct {
	Key   string
	Value []byte // Value is nil when null.
}
