package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compressor keeps the encoders and the memory that they write to. The zero value is ready.
type compressor struct {
	out  []byte
	sink bytes.Buffer // what gzip writes to
	gzip *gzip.Writer
	lz4  *lz4.Compressor
	zstd *zstd.Encoder
}

// compress gives the compressed bytes, which are valid until the next call; for None they are src itself.
func (c *compressor) compress(codec Codec, src []byte) ([]byte, error) {
	var err error
	switch codec {
	case None:
		return src, nil
	case Gzip:
		err = c.gzipAll(src)
	case Snappy: // one bare block, as librdkafka writes it: readers of the xerial stream take that too
		if s2.MaxEncodedLen(len(src)) < 0 {
			return nil, fmt.Errorf("compress %d bytes: too many for snappy", len(src))
		}
		c.out = s2.EncodeSnappy(c.out[:cap(c.out)], src)
	case Lz4:
		err = c.lz4Frame(src)
	case Zstd:
		if c.zstd == nil {
			// No checksum: the batch has one.
			if c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false)); err != nil {
				return nil, err
			}
		}
		c.out = c.zstd.EncodeAll(src, c.out[:0])
	default:
		return nil, fmt.Errorf("compress %s: no such codec", codec)
	}
	return c.out, err
}

func (c *compressor) gzipAll(src []byte) error {
	c.sink.Reset()
	if c.gzip == nil {
		c.gzip = gzip.NewWriter(&c.sink)
	} else {
		c.gzip.Reset(&c.sink)
	}
	if _, err := c.gzip.Write(src); err != nil {
		return err
	}
	err := c.gzip.Close()
	c.out = c.sink.Bytes()
	return err
}

// lz4FrameStart is the header of a frame of independent blocks of 64 KiB without content checksum, its own checksum included: what the Java client writes and the one kind that all
// clients read.
const lz4FrameStart, lz4FrameBlock = "\x04\x22\x4d\x18\x60\x40\x82", 64 << 10

// lz4Frame writes a frame block by block, without the copies that the library's writer makes.
func (c *compressor) lz4Frame(src []byte) error {
	if c.lz4 == nil {
		c.lz4 = new(lz4.Compressor)
	}
	c.out = append(c.out[:0], lz4FrameStart...)
	out := c.out
	for block := range slices.Chunk(src, lz4FrameBlock) {
		out = slices.Grow(out, 4+len(block))
		at := len(out) + 4
		n, err := c.lz4.CompressBlock(block, out[at:at+len(block)])
		if err != nil {
			return err
		}
		size := uint32(n)
		if n == 0 || n >= len(block) { // it does not get smaller
			n, size = len(block), uint32(len(block))|lz4Stored
			copy(out[at:at+n], block)
		}
		out = binary.LittleEndian.AppendUint32(out, size)[:at+n]
	}
	out = append(out, 0, 0, 0, 0)
	c.out = out
	return nil
}
