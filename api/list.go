package api

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultLimit = 100
	maxLimit     = 100_000 // more than a worker has: each page costs a list of all
)

// page is what a client asked of a list.
type page struct {
	limit  int
	after  string
	sort   string
	down   bool
	filter string
}

func parsePage(q url.Values) (page, error) {
	p := page{limit: defaultLimit, after: q.Get("after"), filter: strings.ToLower(q.Get("filter"))}
	p.sort, p.down = strings.CutPrefix(q.Get("sort"), "-")
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			return p, fmt.Errorf("limit %q: must be a number from 1 to %d", text, maxLimit)
		}
		p.limit = n
	}
	return p, repeated(q)
}

// repeated refuses a query in which a name stands twice: which one was meant is not known.
func repeated(q url.Values) error {
	for name, values := range q {
		if len(values) > 1 {
			return fmt.Errorf("%s stands %d times, may stand once", name, len(values))
		}
	}
	return nil
}

// lister knows how one kind of item is listed.
type lister[T any] struct {
	key   func(*T) string              // unique; its order is the default order
	text  func(*T) []string            // what filter looks into
	sorts map[string]func(a, b *T) int // by JSON name
}

// list cuts one page out of items. A filter keeps the items of which one text contains it, without regard to case.
func (l lister[T]) list(items []T, p page) (List[T], error) {
	order := func(_, _ *T) int { return 0 }
	if p.sort != "" {
		var known bool
		if order, known = l.sorts[p.sort]; !known {
			return List[T]{}, fmt.Errorf("sort %q: must be one of %s", p.sort, strings.Join(l.sortNames(), ", "))
		}
	}
	kept := make([]keyed[T], 0, len(items))
	for i := range items {
		if item := &items[i]; l.matches(item, p.filter) {
			kept = append(kept, keyed[T]{item, l.key(item)})
		}
	}
	slices.SortStableFunc(kept, func(a, b keyed[T]) int {
		c := order(a.item, b.item)
		if p.down {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.key, b.key))
	})
	rest, err := after(kept, p)
	if err != nil {
		return List[T]{}, err
	}
	n := min(p.limit, len(rest))
	out := List[T]{Items: make([]T, n)}
	for i, k := range rest[:n] {
		out.Items[i] = *k.item
	}
	if n < len(rest) {
		out.Next = rest[n-1].key
	}
	return out, nil
}

// keyed is an item with its key, which is made once: a list of ten thousand is sorted with a hundred thousand comparisons.
type keyed[T any] struct {
	item *T
	key  string
}

// after drops what stands up to and including the item that `after` names. In the default order the item need not exist any more.
func after[T any](items []keyed[T], p page) ([]keyed[T], error) {
	if p.after == "" {
		return items, nil
	}
	if p.sort == "" {
		at := slices.IndexFunc(items, func(k keyed[T]) bool { return k.key > p.after })
		if at < 0 {
			return nil, nil
		}
		return items[at:], nil
	}
	at := slices.IndexFunc(items, func(k keyed[T]) bool { return k.key == p.after })
	if at < 0 {
		return nil, fmt.Errorf("after %q: no such item in this list; begin again", p.after)
	}
	return items[at+1:], nil
}

func (l lister[T]) matches(item *T, filter string) bool {
	if filter == "" {
		return true
	}
	return slices.ContainsFunc(l.text(item), func(s string) bool { return strings.Contains(strings.ToLower(s), filter) })
}

func (l lister[T]) sortNames() []string {
	names := make([]string, 0, len(l.sorts))
	for name := range l.sorts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func topicLister() lister[Topic] {
	return lister[Topic]{
		key:  func(t *Topic) string { return t.Topic },
		text: func(t *Topic) []string { return append([]string{t.Topic, t.TargetTopic}, keys(t.States)...) },
		sorts: map[string]func(a, b *Topic) int{
			"topic":              func(a, b *Topic) int { return cmp.Compare(a.Topic, b.Topic) },
			"lag_records":        func(a, b *Topic) int { return cmp.Compare(a.LagRecords, b.LagRecords) },
			"lag_seconds":        func(a, b *Topic) int { return cmp.Compare(a.LagSeconds, b.LagSeconds) },
			"records_per_second": func(a, b *Topic) int { return cmp.Compare(a.RecordsPerSecond, b.RecordsPerSecond) },
			"bytes_per_second":   func(a, b *Topic) int { return cmp.Compare(a.BytesPerSecond, b.BytesPerSecond) },
		},
	}
}

func partitionLister() lister[Partition] {
	return lister[Partition]{
		// Padded so that the order of keys is the order of numbers.
		key:  func(p *Partition) string { return p.Topic + "/" + strconv.FormatInt(1e10+int64(p.Partition), 10)[1:] },
		text: func(p *Partition) []string { return []string{p.id().String(), p.TargetTopic, p.State} },
		sorts: map[string]func(a, b *Partition) int{
			"topic":              func(a, b *Partition) int { return cmp.Compare(a.Topic, b.Topic) },
			"state":              func(a, b *Partition) int { return cmp.Compare(a.State, b.State) },
			"lag_records":        func(a, b *Partition) int { return cmp.Compare(a.LagRecords, b.LagRecords) },
			"lag_bytes":          func(a, b *Partition) int { return cmp.Compare(a.LagBytes, b.LagBytes) },
			"lag_seconds":        func(a, b *Partition) int { return cmp.Compare(a.LagSeconds, b.LagSeconds) },
			"records_per_second": func(a, b *Partition) int { return cmp.Compare(a.RecordsPerSecond, b.RecordsPerSecond) },
			"bytes_per_second":   func(a, b *Partition) int { return cmp.Compare(a.BytesPerSecond, b.BytesPerSecond) },
		},
	}
}

func excludedLister() lister[Excluded] {
	return lister[Excluded]{
		key:  func(e *Excluded) string { return e.Topic },
		text: func(e *Excluded) []string { return []string{e.Topic, e.Reason} },
		sorts: map[string]func(a, b *Excluded) int{
			"topic":  func(a, b *Excluded) int { return cmp.Compare(a.Topic, b.Topic) },
			"reason": func(a, b *Excluded) int { return cmp.Compare(a.Reason, b.Reason) },
		},
	}
}

func keys(m map[string]int) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}
