package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// requestHead is what is read first of a request: its length (4 bytes), key (2), version (2), correlation id (4) and the length of its client id (2),
// which all requests have that pass.
const requestHead = 14

// RequestError is a request that may not pass.
type RequestError struct {
	Key, Version int16
	Reason       string
}

// Error names the request and what is wrong with it.
func (e *RequestError) Error() string {
	return fmt.Sprintf("%s (key %d) version %d: %s", kmsg.NameForKey(e.Key), e.Key, e.Version, e.Reason)
}

// judge says what was asked by a request of which the head was read. A *RequestError may not pass.
func judge(head []byte, may map[int16]span) (asked, error) {
	a := asked{
		key: int16(binary.BigEndian.Uint16(head[4:])), version: int16(binary.BigEndian.Uint16(head[6:])),
		correlation: int32(binary.BigEndian.Uint32(head[8:])),
	}
	s, ok := may[a.key]
	switch {
	case !ok:
		return a, &RequestError{a.key, a.version, "is not one of those that pass"}
	case a.key == keyAPIVersions && a.version > s.most:
		a.version, a.tooNew = 0, true
	case a.version < s.least || a.version > s.most:
		return a, &RequestError{a.key, a.version, fmt.Sprintf("only versions %d to %d pass", s.least, s.most)}
	}
	return a, nil
}

// frame asks for version 0 in place of a version that is too new.
func (a asked) frame() []byte {
	f := binary.BigEndian.AppendUint32(nil, requestHead-4)
	f = binary.BigEndian.AppendUint16(f, uint16(a.key))
	f = binary.BigEndian.AppendUint16(f, uint16(a.version))
	f = binary.BigEndian.AppendUint32(f, uint32(a.correlation))
	return binary.BigEndian.AppendUint16(f, math.MaxUint16) // no client id
}

// produceHead is within how many bytes a Produce request must say what acknowledgement it wants: behind the client and the transaction.
const produceHead = 8 << 10

var errShort = errors.New("it ends too early")

// answered says whether a Produce request wants an answer: with acks=0 there is none. b is the request from the length of its client id on, or its
// first bytes.
func (a asked) answered(b []byte) (bool, error) {
	flexible := kmsg.ProduceRequest{Version: a.version}
	if err := skipString(&b); err != nil { // the client id is never compact
		return false, err
	}
	if flexible.IsFlexible() {
		if err := errors.Join(skipTags(&b), skipCompact(&b)); err != nil {
			return false, err
		}
	} else if a.version >= 3 { // transactional id
		if err := skipString(&b); err != nil {
			return false, err
		}
	}
	if len(b) < 2 {
		return false, errShort
	}
	return binary.BigEndian.Uint16(b) != 0, nil
}

func skipString(b *[]byte) error {
	if len(*b) < 2 {
		return errShort
	}
	n := max(0, int(int16(binary.BigEndian.Uint16(*b))))
	if len(*b) < 2+n {
		return errShort
	}
	*b = (*b)[2+n:]
	return nil
}

func skipCompact(b *[]byte) error {
	n, err := uvarint(b)
	if err != nil {
		return err
	}
	if n > 0 {
		n-- // 0 is null, 1 is empty
	}
	return skip(b, n)
}

func skipTags(b *[]byte) error {
	tags, err := uvarint(b)
	for ; err == nil && tags > 0; tags-- {
		var size uint64
		if _, err = uvarint(b); err != nil {
			break
		}
		if size, err = uvarint(b); err == nil {
			err = skip(b, size)
		}
	}
	return err
}

func skip(b *[]byte, n uint64) error {
	if n > uint64(len(*b)) {
		return errShort
	}
	*b = (*b)[n:]
	return nil
}

func uvarint(b *[]byte) (uint64, error) {
	v, n := binary.Uvarint(*b)
	if n <= 0 {
		return 0, errShort
	}
	*b = (*b)[n:]
	return v, nil
}
