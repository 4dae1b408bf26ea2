package purgatory

// line is who watches a key, in the order of arrival. It is there while anybody is.
type line[K comparable] struct {
	key         K
	first, last *watch[K]
	len         int
	fired       bool // among the purgatory's fired keys
}

// watch is an operation's place in the line of one key.
type watch[K comparable] struct {
	entry      *entry[K]
	line       *line[K]
	prev, next *watch[K]
}

// push puts an operation at the end, with a place that is its own.
func (l *line[K]) push(w *watch[K], e *entry[K]) {
	w.entry, w.line, w.prev = e, l, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.len++
}

func (l *line[K]) remove(w *watch[K]) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	l.len--
}
