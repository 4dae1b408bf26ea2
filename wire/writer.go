package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// writer holds the bytes of one request at a time: pieces of a reused header buffer, and between them batches where they lie.
type writer struct {
	nc       net.Conn
	clientID string
	cork     *bufio.Writer // nil where writev works; else gathers the pieces, so that TLS does not make a record of each
	head     []byte
	cuts     []int    // where in head the batches stand
	pieces   [][]byte // backs out, which loses what is written
	out      net.Buffers
}

func newWriter(nc net.Conn, clientID string) writer {
	w := writer{nc: nc, clientID: clientID}
	if _, plain := nc.(*net.TCPConn); !plain {
		w.cork = bufio.NewWriterSize(nc, readBufferBytes)
	}
	return w
}

// request makes req what flush writes, and gives its size.
func (w *writer) request(f *kmsg.RequestFormatter, req kmsg.Request, corr int32) int64 {
	w.head = f.AppendRequest(w.head[:0], req, corr)
	w.pieces = append(w.pieces[:0], w.head)
	return int64(len(w.head))
}

// produce makes a Produce request what flush writes, and gives its size. The frame equals what kmsg would encode; it is written here
// because kmsg copies the batches.
func (w *writer) produce(p *Produce, version int16, corr int32) (int64, error) {
	flexible := version >= 9
	b := w.head[:0]
	b = append(b, 0, 0, 0, 0, 0, keyProduce) // the size follows
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(corr))
	b = appendString(b, w.clientID, false) // never compact
	if flexible {
		b = append(b, 0, 0) // no tags; transactional id null
	} else {
		b = append(b, 0xff, 0xff)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(p.Acks))
	b = binary.BigEndian.AppendUint32(b, uint32(clampMillis(p.Timeout)))
	b, w.cuts = appendTopics(b, w.cuts[:0], p.Batches, flexible)
	w.head = b
	total := int64(len(b))
	w.pieces = w.pieces[:0]
	from := 0
	for i, cut := range w.cuts {
		records := p.Batches[i].Records
		total += int64(len(records))
		w.pieces = append(w.pieces, b[from:cut], records)
		from = cut
	}
	if from < len(b) {
		w.pieces = append(w.pieces, b[from:])
	}
	if total-4 > math.MaxInt32 {
		w.reset()
		return 0, fmt.Errorf("encode Produce: %d bytes do not fit a frame", total)
	}
	binary.BigEndian.PutUint32(b, uint32(total-4))
	return total, nil
}

// appendTopics encodes all but the batches themselves and notes where in b each belongs.
func appendTopics(b []byte, cuts []int, batches []ProduceBatch, flexible bool) ([]byte, []int) {
	topics := 0
	for i := range batches {
		if i == 0 || batches[i].Topic != batches[i-1].Topic {
			topics++
		}
	}
	b = appendLength(b, topics, flexible)
	for i := 0; i < len(batches); {
		end := i + 1
		for end < len(batches) && batches[end].Topic == batches[i].Topic {
			end++
		}
		b = appendString(b, batches[i].Topic, flexible)
		b = appendLength(b, end-i, flexible)
		for ; i < end; i++ {
			b = binary.BigEndian.AppendUint32(b, uint32(batches[i].Partition))
			b = appendLength(b, len(batches[i].Records), flexible)
			cuts = append(cuts, len(b))
			if flexible {
				b = append(b, 0) // the partition's tags
			}
		}
		if flexible {
			b = append(b, 0) // the topic's tags
		}
	}
	if flexible {
		b = append(b, 0) // the request's tags
	}
	return b, cuts
}

// appendLength writes the length of an array or of bytes.
func appendLength(b []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(b, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

func appendString(b []byte, s string, flexible bool) []byte {
	if flexible {
		b = binary.AppendUvarint(b, uint64(len(s))+1)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	}
	return append(b, s...)
}

// flush writes the request and lets go of its batches, also when it fails. What bounds it is the deadline of the request's answer, which
// closes the socket.
func (w *writer) flush() error {
	defer w.reset()
	if w.cork == nil {
		w.out = w.pieces
		_, err := w.out.WriteTo(w.nc)
		return err
	}
	for _, p := range w.pieces {
		if _, err := w.cork.Write(p); err != nil {
			return err
		}
	}
	return w.cork.Flush()
}

func (w *writer) reset() {
	clear(w.pieces)
	w.pieces, w.out = w.pieces[:0], nil
	if cap(w.head) > keepBufferBytes {
		w.head = nil
	}
}
