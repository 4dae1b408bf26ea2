package batch

import "strconv"

// Codec is how a batch's records are compressed.
type Codec int8

// The codecs of the protocol, with the numbers that it gives them. Zstd came with KIP-110 and needs format 2.
const (
	None Codec = iota
	Gzip
	Snappy
	Lz4
	Zstd
)

// String gives the name that Kafka's configuration uses.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case Lz4:
		return "lz4"
	case Zstd:
		return "zstd"
	default:
		return "codec " + strconv.Itoa(int(c))
	}
}
