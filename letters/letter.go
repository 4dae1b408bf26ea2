package letters

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mirror/causeway/batch"
	"github.com/causeway-mirror/causeway/route"
)

// Headers of a dead letter, behind those of the record. Numbers are decimal.
const (
	headerCluster   = "causeway.source.cluster"
	headerTopic     = "causeway.source.topic"
	headerPartition = "causeway.source.partition"
	headerOffset    = "causeway.source.offset"
	// headerTimestamp is in ms since 1970. The dead letter's own is when it became one, since the old one may be what was refused.
	headerTimestamp = "causeway.source.timestamp"
	headerTarget    = "causeway.target.topic"
	headerNumber    = "causeway.target.partition"
	headerReason    = "causeway.reason"
)

// ours says whether Make adds a header of that key.
func ours(key string) bool {
	switch key {
	case headerCluster, headerTopic, headerPartition, headerOffset, headerTimestamp, headerTarget, headerNumber, headerReason:
		return true
	}
	return false
}

// placeholder stands for the source topic in the name of a dead-letter topic.
const placeholder = "{topic}"

// Topic is the dead-letter topic of a source topic, by the pattern of the route.
func Topic(pattern, source string) string { return strings.ReplaceAll(pattern, placeholder, source) }

// Origin is where a dead letter comes from.
type Origin struct {
	Cluster string // the source's name
	Source  route.Partition
	Offset  route.Offset
	Target  route.Partition // that refused it
	Reason  string
}

// Make is a batch of the record that stands alone in a batch, with where it comes from.
func Make(record batch.Batch, from Origin) (batch.Batch, error) {
	return alone(record, nil, func(r *batch.Record) {
		r.Headers = append(r.Headers[:len(r.Headers):len(r.Headers)],
			batch.Header{Key: headerCluster, Value: []byte(from.Cluster)},
			batch.Header{Key: headerTopic, Value: []byte(from.Source.Topic)},
			batch.Header{Key: headerPartition, Value: decimal(int64(from.Source.Partition))},
			batch.Header{Key: headerOffset, Value: decimal(int64(from.Offset))},
			batch.Header{Key: headerTimestamp, Value: decimal(r.Timestamp)},
			batch.Header{Key: headerTarget, Value: []byte(from.Target.Topic)},
			batch.Header{Key: headerNumber, Value: decimal(int64(from.Target.Partition))},
			batch.Header{Key: headerReason, Value: []byte(from.Reason)},
		)
		r.Timestamp = time.Now().UnixMilli()
	})
}

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// alone is a batch of one record of another batch, changed; which is nil where there is no other record.
func alone(b batch.Batch, which *batch.Record, change func(*batch.Record)) (batch.Batch, error) {
	var w batch.Rewriter
	pieces, err := w.Rewrite([]batch.Batch{b}, batch.Options{Map: func(r *batch.Record) (batch.Verdict, error) {
		if which != nil && r.Offset != which.Offset {
			return batch.Drop, nil
		}
		change(r)
		return batch.Changed, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("rewrite a record: %w", err)
	}
	if len(pieces) != 1 {
		return nil, fmt.Errorf("rewrite a record: it became %d batches", len(pieces)) //nolint:err113 // can't be decided on
	}
	return pieces[0].Batch, nil
}

// letter is what the headers of a dead letter say.
type letter struct {
	source    string
	partition int32        // of the source; -1 where it is not said
	offset    route.Offset // of the source; NoOffset where it is not said
	reason    string
	target    route.Partition
	timestamp int64 // the record's own, ms since 1970
	own       int   // how many headers are the record's own
}

// open reads a record's headers; false if it is no dead letter.
func open(r *batch.Record) (l letter, ok bool) {
	says := map[string][]byte{}
	l.own = len(r.Headers)
	for l.own > 0 && ours(r.Headers[l.own-1].Key) {
		h := r.Headers[l.own-1]
		if _, again := says[h.Key]; again { // the record was a dead letter of its own before
			break
		}
		says[h.Key] = h.Value
		l.own--
	}
	number, named := says[headerNumber]
	if !named { // older letters don't have it: it goes to the partition of the source's number, as nearly all do
		number = says[headerPartition]
	}
	partition, err := strconv.ParseInt(string(number), 10, 32)
	stamp, err2 := strconv.ParseInt(string(says[headerTimestamp]), 10, 64)
	l.source, l.timestamp, l.reason = string(says[headerTopic]), stamp, string(says[headerReason])
	l.partition, l.offset = -1, route.NoOffset
	if n, err := strconv.ParseInt(string(says[headerPartition]), 10, 32); err == nil {
		l.partition = int32(n)
	}
	if n, err := strconv.ParseInt(string(says[headerOffset]), 10, 64); err == nil {
		l.offset = route.Offset(n)
	}
	l.target = route.Partition{Topic: string(says[headerTarget]), Partition: int32(partition)}
	return l, err == nil && err2 == nil && partition >= 0 && l.source != "" && l.target.Topic != ""
}
