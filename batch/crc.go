package batch

import "hash/crc32"

//nolint:gochecknoglobals // hash/crc32 makes the table once for the process and knows its hardware path by this very pointer; it is never written.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CheckCRC computes the checksum of the whole batch and compares it with the stored one. It is the only check that reads the payload.
func (b Batch) CheckCRC() error {
	var got uint32
	if b.legacy() {
		got = crc32.ChecksumIEEE(b[magicAt:])
	} else {
		got = crc32.Checksum(b[attrsAt:], castagnoli)
	}
	if want := b.CRC(); got != want {
		return corrupt(b, "crc", want, "does not match the bytes")
	}
	return nil
}

// shiftCRC gives the effect that n zero bytes have on a CRC-32C register: c times x^(8n) modulo the polynomial. Since a CRC is linear, this carries a difference in the header
// over a payload that is not read.
func shiftCRC(c uint32, n int) uint32 {
	// x^(8·2^k) for k = 0, 1, 2 …: each is the square of the one before. A length has at most 31 bits.
	powers := [31]uint32{
		0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7,
		0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc,
		0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
		0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000,
	}
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			c = mulCRC(c, powers[k])
		}
	}
	return c
}

// mulCRC multiplies two polynomials modulo CRC-32C's, in its reflected form: bit 31 is x⁰.
func mulCRC(a, b uint32) uint32 {
	const polynomial = 0x82F63B78
	var product uint32
	for range 32 {
		product ^= b & uint32(int32(a)>>31)
		a <<= 1
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}
