package main

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// appendTime is the value of kgo's timestamp type for LogAppendTime: the broker's clock, not the producer's.
const appendTime = 1

// difference says in what two records differ; "" means in nothing that a mirror must keep. The target's own clock (LogAppendTime) replaces
// every timestamp, so then timestamps are no difference.
func difference(a, b *kgo.Record) string {
	switch {
	case !same(a.Key, b.Key):
		return "key differs: source " + show(a.Key) + ", target " + show(b.Key)
	case !same(a.Value, b.Value):
		return "value differs: source " + show(a.Value) + ", target " + show(b.Value)
	case !a.Timestamp.Equal(b.Timestamp) && b.Attrs.TimestampType() != appendTime:
		return "timestamp differs: source " + stamp(a.Timestamp) + ", target " + stamp(b.Timestamp)
	case len(a.Headers) != len(b.Headers):
		return fmt.Sprintf("number of headers differs: source %d, target %d", len(a.Headers), len(b.Headers))
	}
	for i, h := range a.Headers { // order counts, and equal keys may stand more than once
		if g := b.Headers[i]; h.Key != g.Key || !same(h.Value, g.Value) {
			return fmt.Sprintf("header %d differs: source %q=%s, target %q=%s", i, h.Key, show(h.Value), g.Key, show(g.Value))
		}
	}
	return ""
}

// same compares bytes and null-ness: an empty value is not a tombstone.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// show quotes the beginning of a field.
func show(b []byte) string {
	const most = 64
	switch {
	case b == nil:
		return "null"
	case len(b) > most:
		return strconv.Quote(string(b[:most])) + fmt.Sprintf("… (%d bytes)", len(b))
	default:
		return strconv.Quote(string(b))
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// handled is what the mirror's handler makes of a source record: the record to expect on the target, or none.
func handled(r *kgo.Record, judge func(*batch.Record) (batch.Verdict, error)) (expected *kgo.Record, keep bool, err error) {
	if judge == nil {
		return r, true, nil
	}
	in := &batch.Record{Offset: route.Offset(r.Offset), Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		in.Headers = append(in.Headers, batch.Header{Key: h.Key, Value: h.Value})
	}
	verdict, err := judge(in)
	if err != nil || verdict == batch.Drop {
		return nil, false, err
	}
	out := *r
	out.Timestamp, out.Key, out.Value, out.Headers = time.UnixMilli(in.Timestamp), in.Key, in.Value, nil
	for _, h := range in.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return &out, true, nil
}
