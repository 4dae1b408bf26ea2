package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// What may be wrong with compressed bytes, where the codec's library does not say it.
var (
	errTooLarge = errors.New("decompresses to more than the bound")
	errSnappy   = errors.New("snappy: block length does not fit the bytes")
	errLz4      = errors.New("lz4: not a frame, or cut short")
)

// decompressor keeps the decoders that need memory of their own, so that they are made once. The zero value is ready.
type decompressor struct {
	source  bytes.Reader
	gzip    *gzip.Reader
	zstd    *zstd.Decoder
	zstdMax int
}

// decompress puts the bytes of src into dst, whose memory is used again, and no more than limit of them.
func (d *decompressor) decompress(dst []byte, codec Codec, src []byte, limit int) ([]byte, error) {
	dst = dst[:0]
	switch codec {
	case Gzip:
		return d.gunzip(dst, src, limit)
	case Snappy:
		return unsnappy(dst, src, limit)
	case Lz4:
		return unlz4(dst, src, limit)
	case Zstd:
		return d.unzstd(dst, src, limit)
	default:
		return nil, fmt.Errorf("decompress %s: no such codec", codec)
	}
}

func (d *decompressor) gunzip(dst, src []byte, limit int) ([]byte, error) {
	d.source.Reset(src)
	var err error
	if d.gzip == nil {
		d.gzip, err = gzip.NewReader(&d.source)
	} else {
		err = d.gzip.Reset(&d.source)
	}
	if err != nil {
		return nil, err
	}
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(max(len(dst), 4*len(src)), limit-len(dst))+1)
		}
		n, err := d.gzip.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst) > limit {
			return nil, errTooLarge
		}
		if errors.Is(err, io.EOF) {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// xerial is how the stream of snappy-java begins, which the Java client writes: two int32 versions follow, then blocks with their length as int32. Other clients write one bare block.
const xerial, xerialHeader = "\x82SNAPPY\x00", 16

func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, []byte(xerial)) {
		return unsnappyBlock(dst, src, limit)
	}
	for len(src) > 0 {
		if bytes.HasPrefix(src, []byte(xerial)) && len(src) >= xerialHeader { // also in the middle: streams may be joined
			src = src[xerialHeader:]
			continue
		}
		if len(src) < 4 {
			return nil, errSnappy
		}
		size := int64(binary.BigEndian.Uint32(src))
		if src = src[4:]; size > int64(len(src)) {
			return nil, errSnappy
		}
		var err error
		if dst, err = unsnappyBlock(dst, src[:size], limit); err != nil {
			return nil, err
		}
		src = src[size:]
	}
	return dst, nil
}

// unsnappyBlock uses s2, which reads snappy's blocks faster than the original.
func unsnappyBlock(dst, block []byte, limit int) ([]byte, error) {
	size, err := s2.DecodedLen(block)
	if err != nil {
		return nil, err
	}
	if size > limit-len(dst) {
		return nil, errTooLarge
	}
	dst = slices.Grow(dst, size)
	out, err := s2.Decode(dst[len(dst):len(dst)+size], block)
	if err != nil {
		return nil, err
	}
	return dst[:len(dst)+len(out)], nil
}

// An lz4 frame: magic, flags, block size, optional content size and dictionary id, header checksum; blocks with their length, little endian, whose top bit means stored; a zero ends them.
const (
	lz4Magic        = 0x184D2204
	lz4Independent  = 0x20
	lz4BlockSums    = 0x10
	lz4ContentSize  = 0x08
	lz4DictionaryID = 0x01
	lz4Stored       = 1 << 31
	lz4Window       = 64 << 10

	lz4LeastRoom = 4 << 10 // for a block at first,
	lz4Growth    = 4       // and by how much it grows while it is not enough
)

// unlz4 reads a frame straight into dst. The library's reader would copy through blocks of its own and, for format 0, refuse the header checksum, which Kafka's clients got wrong
// there (KAFKA-3160). Checksums are not looked at: the batch's CRC has covered these bytes.
func unlz4(dst, src []byte, limit int) ([]byte, error) {
	frame, src, err := lz4Header(src)
	if err != nil {
		return nil, err
	}
	for {
		if len(src) < 4 {
			return nil, errLz4
		}
		word := binary.LittleEndian.Uint32(src)
		size := int64(word &^ lz4Stored)
		src = src[4:]
		if word == 0 {
			return dst, nil
		}
		if size > int64(len(src)) {
			return nil, errLz4
		}
		room := limit - len(dst)
		block := lz4Block{stored: word&lz4Stored != 0, linked: frame.flags&lz4Independent == 0, room: min(frame.blockMax, room), scarce: room < frame.blockMax}
		if dst, err = unlz4Block(dst, src[:size], block); err != nil {
			return nil, err
		}
		src = src[size:]
		if frame.flags&lz4BlockSums != 0 {
			if len(src) < 4 {
				return nil, errLz4
			}
			src = src[4:]
		}
	}
}

// lz4Frame is what a frame's header says.
type lz4Frame struct {
	flags    byte
	blockMax int // the largest size of a block when decompressed
}

// lz4Header reads the header and gives what follows it.
func lz4Header(src []byte) (f lz4Frame, rest []byte, err error) {
	if len(src) < 7 || binary.LittleEndian.Uint32(src) != lz4Magic {
		return f, nil, errLz4
	}
	f.flags = src[4]
	size := 7
	if f.flags&lz4ContentSize != 0 {
		size += 8
	}
	if f.flags&lz4DictionaryID != 0 {
		size += 4
	}
	code := src[5] >> 4 & 7
	if code < 4 || len(src) < size {
		return f, nil, errLz4
	}
	f.blockMax = 1 << (8 + 2*code)
	return f, src[size:], nil
}

// lz4Block says how a block is to be read: stored as it is; linked to the output before it; with room for so many bytes, which is scarce when the bound leaves less than a block may have.
type lz4Block struct {
	stored, linked, scarce bool
	room                   int
}

func unlz4Block(dst, block []byte, how lz4Block) ([]byte, error) {
	if how.stored {
		if len(block) > how.room {
			return nil, errTooLarge
		}
		return append(dst, block...), nil
	}
	// Clients declare blocks of 4 MiB for batches of a few bytes: so much memory for each of them would cost more than everything else.
	for room := max(lz4LeastRoom, lz4Growth*len(block), cap(dst)-len(dst)); ; room *= lz4Growth {
		room = min(room, how.room)
		dst = slices.Grow(dst, room)
		out, before := dst[len(dst):len(dst)+room], dst[:0]
		if how.linked {
			before = dst[max(0, len(dst)-lz4Window):]
		}
		n, err := lz4.UncompressBlockWithDict(block, out, before)
		switch {
		case err == nil:
			return dst[:len(dst)+n], nil
		case room < how.room: // the library does not tell a lack of room from damage
		case how.scarce:
			return nil, errTooLarge // most likely
		default:
			return nil, err
		}
	}
}

func (d *decompressor) unzstd(dst, src []byte, limit int) ([]byte, error) {
	if d.zstd == nil || d.zstdMax != limit {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
		if err != nil {
			return nil, err
		}
		d.zstd, d.zstdMax = decoder, limit
	}
	dst, err := d.zstd.DecodeAll(src, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) { // the window is memory too
		return nil, errTooLarge
	}
	return dst, err
}
