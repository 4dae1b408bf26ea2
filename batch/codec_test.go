package batch

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestCompress lets franz-go decompress what this package compresses, for sizes around those of blocks and for bytes that do and do not get smaller; one compressor for all.
func TestCompress(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var c compressor
	var d decompressor
	var scratch []byte
	for _, codec := range codecs() {
		for _, size := range []int{1, 4, 5, 12, 13, 100, lz4FrameBlock - 1, lz4FrameBlock, lz4FrameBlock + 1, 3*lz4FrameBlock + 7} {
			noise := make([]byte, size)
			for i := range noise {
				noise[i] = byte(random.Uint32())
			}
			for _, src := range [][]byte{make([]byte, size), noise, jsonLike(random, size+64)[:size], append(noise[:size/2:size/2], make([]byte, size-size/2)...)} {
				out, err := c.compress(codec, src)
				require.NoError(t, err)
				back, err := kgo.DefaultDecompressor().Decompress(out, kgo.CompressionCodecType(codec))
				require.NoError(t, err, "%s %d", codec, size)
				require.True(t, bytes.Equal(src, back), "%s %d", codec, size)
				if codec == None {
					continue
				}
				scratch, err = d.decompress(scratch, codec, out, max(size, 1<<16))
				require.NoError(t, err)
				require.True(t, bytes.Equal(src, scratch), "%s %d", codec, size)
			}
		}
	}
}

// TestLz4Frames reads every kind of frame that other clients may write.
func TestLz4Frames(t *testing.T) {
	t.Parallel()
	src := jsonLike(rand.New(rand.NewPCG(3, 4)), 300_000)
	for _, row := range []struct {
		name    string
		options []lz4.Option
	}{
		{"plain", nil},
		{"blocks of 64 KiB", []lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb)}},
		{"blocks of 1 MiB", []lz4.Option{lz4.BlockSizeOption(lz4.Block1Mb)}},
		{"block checksums", []lz4.Option{lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true)}},
		{"no content checksum", []lz4.Option{lz4.ChecksumOption(false)}},
		{"content size", []lz4.Option{lz4.SizeOption(uint64(len(src)))}},
		{"high compression", []lz4.Option{lz4.CompressionLevelOption(lz4.Level5)}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := lz4.NewWriter(&out)
			require.NoError(t, w.Apply(row.options...))
			_, err := w.Write(src)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			back, err := unlz4(nil, out.Bytes(), len(src))
			require.NoError(t, err)
			require.True(t, bytes.Equal(src, back))
			_, err = unlz4(nil, out.Bytes(), len(src)-1)
			require.Error(t, err)
			for size := range min(out.Len(), 100) {
				_, err := unlz4(nil, out.Bytes()[:size], len(src))
				require.Error(t, err)
			}
		})
	}
}

// TestLz4Linked reads blocks that refer to the output of those before, as the C library writes them by default.
func TestLz4Linked(t *testing.T) {
	t.Parallel()
	frame := []byte("\x04\x22\x4d\x18\x40\x40\x00")
	blocks := []string{
		"\x40abcd" + "", // literals only
		"\x04\x04\x00" + "\x50efghi",
	}
	for _, b := range blocks {
		frame = append(binary.LittleEndian.AppendUint32(frame, uint32(len(b))), b...)
	}
	frame = append(frame, 0, 0, 0, 0)
	out, err := unlz4(nil, frame, 1000)
	require.NoError(t, err)
	require.Equal(t, "abcdabcdabcdefghi", string(out))

	frame[4] |= lz4Independent
	_, err = unlz4(nil, frame, 1000)
	require.Error(t, err, "an independent block must not look back")
}

// TestXerial reads the stream of snappy-java: several blocks, streams joined, and those cut short.
func TestXerial(t *testing.T) {
	t.Parallel()
	header := xerial + "\x00\x00\x00\x01\x00\x00\x00\x01"
	stream := []byte(header)
	for _, text := range []string{"one ", "two ", "three"} {
		block := s2.EncodeSnappy(nil, []byte(text))
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(block))), block...)
	}
	out, err := unsnappy(nil, stream, 13)
	require.NoError(t, err)
	require.Equal(t, "one two three", string(out))
	out, err = unsnappy(nil, append(stream, stream...), 26)
	require.NoError(t, err)
	require.Equal(t, "one two threeone two three", string(out))
	_, err = unsnappy(nil, stream, 12)
	require.ErrorIs(t, err, errTooLarge)
	out, err = unsnappy(nil, []byte(header), 12)
	require.NoError(t, err)
	require.Empty(t, out)
	for _, size := range []int{7, 9, 17, 21, len(stream) - 1} {
		_, err = unsnappy(nil, stream[:size], 13)
		require.Error(t, err, size)
	}
}

// TestMaxDecoded: a few bytes must not claim all memory. The bound itself is allowed.
func TestMaxDecoded(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	bomb := dense(10, None, 1, 0)
	bomb.records[0].Value = make([]byte, size)
	for _, codec := range codecs()[1:] {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			d := bomb
			d.codec = codec
			b := d.encode(t)
			require.Less(t, len(b), size/10)
			reader := Reader{MaxDecoded: size / 2}
			err := reader.Reset(b)
			requireCorrupt(t, err, "records")
			require.ErrorIs(t, err, errTooLarge)
			require.LessOrEqual(t, cap(reader.scratch), size)
			_, err = (&Rewriter{MaxDecoded: size / 2}).Rewrite([]Batch{b}, Options{})
			require.ErrorIs(t, err, errTooLarge)

			reader.MaxDecoded = size + 100
			require.Len(t, read(t, &reader, b)[0].Value, size)
			small := dense(10, codec, 1, 100)
			require.Equal(t, small.records, read(t, &reader, small.encode(t)))
			require.LessOrEqual(t, cap(reader.scratch), keptScratch, "what a rare large batch needed is given back")
		})
	}
}

// TestDamagedPayload: whatever stands in the payload, there is an error or there are records, never a panic.
func TestDamagedPayload(t *testing.T) {
	t.Parallel()
	for _, codec := range codecs() {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			whole := dense(10, codec, 5, 60).encode(t)
			reader := Reader{MaxDecoded: 1 << 20}
			failed := 0
			for at := HeaderSize; at < len(whole); at++ {
				for _, bit := range []byte{1, 0x80} {
					b := append(Batch{}, whole...)
					b[at] ^= bit
					if drain(&reader, b) != nil {
						failed++
					}
				}
			}
			require.Positive(t, failed)
			for size := HeaderSize; size < len(whole)-1; size++ {
				b := append(Batch{}, whole[:size]...)
				put32(b, lengthAt, int32(size-prefixSize))
				if codec != Lz4 && codec != Gzip { // whose trailers are not needed
					require.Error(t, drain(&reader, b), size)
				} else {
					_ = drain(&reader, b)
				}
			}
		})
	}
}

// drain reads a batch and gives the first error that is not its end.
func drain(r *Reader, b Batch) error {
	_, _, err := (&Rewriter{reader: *r, MaxDecoded: r.MaxDecoded}).Scan(b, func(*Record) (Verdict, error) { return Keep, nil })
	return err
}

// A client that declares blocks of 4 MiB, as some do for every batch, made each reader of a few bytes take 4 MiB.
func TestSmallBatchOfLargeBlocksTakesLittleMemory(t *testing.T) {
	var out bytes.Buffer
	w := lz4.NewWriter(&out)
	require.NoError(t, w.Apply(lz4.BlockSizeOption(lz4.Block4Mb)))
	src := bytes.Repeat([]byte("a record "), 100)
	_, err := w.Write(src)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		back, err := unlz4(nil, out.Bytes(), DefaultMaxDecoded)
		require.NoError(t, err)
		require.Equal(t, src, back)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/times, uint64(64<<10), "bytes for each")
}
