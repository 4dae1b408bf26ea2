package main

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// requestBytes bounds a produce request: the broker's default limit is a little more.
const requestBytes = 1_000_000

// lane is one partition on its way.
type lane struct {
	span

	partition int32
	outlet    *outlet
	bytes     atomic.Int64 // held
	queue     [][]byte     // guarded by outlet.mu
	sequence  int32        // guarded by outlet.mu
}

// split cuts a fetched record set into its whole batches and moves the position behind them.
func (l *lane) split(set []byte) [][]byte {
	var batches [][]byte
	for len(set) >= batchHeader {
		n := atLeaderEpoch + int(binary.BigEndian.Uint32(set[atLength:]))
		if n > len(set) { // cut off by the fetch's limit
			break
		}
		l.next = int64(binary.BigEndian.Uint64(set)) + int64(binary.BigEndian.Uint32(set[atLastDelta:])) + 1
		batches = append(batches, set[:n:n])
		set = set[n:]
	}
	return batches
}

// outlet is what waits for one target broker.
type outlet struct {
	mu     sync.Mutex
	cond   *sync.Cond
	lanes  []*lane // guarded by mu
	first  int     // guarded by mu; where the next request begins
	ready  int     // guarded by mu; batches in all lanes
	closed bool    // guarded by mu
}

// taken is a batch that is to be sent.
type taken struct {
	partition int32
	sequence  int32
	batch     []byte
}

func newOutlet() *outlet {
	o := &outlet{}
	o.cond = sync.NewCond(&o.mu)
	return o
}

func (o *outlet) lane(partition int32, s span) *lane {
	l := &lane{span: s, partition: partition, outlet: o}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lanes = append(o.lanes, l)
	return l
}

func (o *outlet) put(l *lane, batches [][]byte) {
	n := 0
	for _, b := range batches {
		n += len(b)
	}
	l.bytes.Add(int64(n))
	o.mu.Lock()
	defer o.mu.Unlock()
	l.queue = append(l.queue, batches...)
	o.ready += len(batches)
	o.cond.Signal()
}

// close says that nothing comes any more.
func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.cond.Signal()
}

// take waits for batches and returns the next request's, at most one of each lane; nil when there are none and none will come.
func (o *outlet) take() []taken {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.ready == 0 && !o.closed {
		o.cond.Wait()
	}
	var batches []taken
	size := 0
	for i := range o.lanes {
		l := o.lanes[(o.first+i)%len(o.lanes)]
		if len(l.queue) == 0 {
			continue
		}
		b := l.queue[0]
		if size > 0 && size+len(b) > requestBytes {
			o.first += i
			break
		}
		l.queue = l.queue[1:]
		o.ready--
		l.bytes.Add(-int64(len(b)))
		batches = append(batches, taken{l.partition, l.sequence, b})
		l.sequence += count(b)
		size += len(b)
	}
	return batches
}
