package mirror

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/offsets"
	"github.com/causeway-mirror/causeway/route"
)

// made is how a batch of numbered records is to look.
type made struct {
	base       route.Offset
	numbers    []int  // one record each; its value is the number
	deltas     []int  // offsets from base; nil: dense
	appendTime bool   // attribute bit 3
	pad        int    // bytes added to each value
	epoch      int32  // of the leader that appended it
	codec      string // "" or "zstd"
	producer   int64  // its id; 0: none
}

// bytes encodes the batch as a v2 batch (KIP-98).
func (m made) bytes() batch.Batch {
	var records []byte
	last := len(m.numbers) - 1
	for i, n := range m.numbers {
		delta := i
		if m.deltas != nil {
			delta = m.deltas[i]
			last = delta
		}
		value := append([]byte(strconv.Itoa(n)+" "), make([]byte, m.pad)...)
		r := []byte{0, 0} // attributes, timestamp delta
		r = binary.AppendVarint(r, int64(delta))
		r = binary.AppendVarint(r, -1) // no key
		r = binary.AppendVarint(r, int64(len(value)))
		r = append(r, value...)
		r = append(r, 0) // no headers
		records = append(binary.AppendVarint(records, int64(len(r))), r...)
	}
	b := make([]byte, batch.HeaderSize, batch.HeaderSize+len(records))
	be := binary.BigEndian
	be.PutUint64(b, uint64(m.base))
	be.PutUint32(b[8:], uint32(batch.HeaderSize-12+len(records)))
	be.PutUint32(b[12:], uint32(m.epoch))
	b[16] = 2
	if m.appendTime {
		b[22] |= 1 << 3
	}
	be.PutUint32(b[23:], uint32(last))
	be.PutUint64(b[27:], 1000)
	be.PutUint64(b[35:], 2000)
	for i := 43; i < 57; i++ {
		b[i] = 0xff // no producer
	}
	if m.producer != 0 {
		be.PutUint64(b[43:], uint64(m.producer))
	}
	be.PutUint32(b[57:], uint32(len(m.numbers)))
	b = append(b, records...)
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	if m.codec == "zstd" {
		return recode(b, batch.Zstd, m.base)
	}
	return b
}

// recode compresses a batch; its offsets begin at base again.
func recode(b batch.Batch, codec batch.Codec, base route.Offset) batch.Batch {
	var w batch.Rewriter
	pieces, err := w.Rewrite([]batch.Batch{b}, batch.Options{Codec: &codec})
	if err != nil || len(pieces) != 1 {
		panic("BUG: recode")
	}
	binary.BigEndian.PutUint64(pieces[0].Batch, uint64(base))
	return pieces[0].Batch
}

// markOf is what the log shows of the record with a number, if it was made without pad.
func markOf(number int) offsets.Mark {
	r := batch.Record{Value: []byte(strconv.Itoa(number) + " ")}
	return offsets.Mark{Digest: r.Digest(), Timestamp: 1000}
}

// numbersOf decodes what a batch holds.
func numbersOf(t testing.TB, b batch.Batch) (numbers []int) {
	t.Helper()
	require.NoError(t, b.Check())
	require.NoError(t, b.CheckCRC())
	var r batch.Reader
	require.NoError(t, r.Reset(b))
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return numbers
		}
		require.NoError(t, err)
		numbers = append(numbers, numberOf(t, rec))
	}
}

func numberOf(t testing.TB, rec *batch.Record) int {
	t.Helper()
	for i, c := range rec.Value {
		if c == ' ' {
			n, err := strconv.Atoi(string(rec.Value[:i]))
			require.NoError(t, err)
			return n
		}
	}
	require.Fail(t, "no number", "%q", rec.Value)
	return 0
}
