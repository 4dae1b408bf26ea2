package zk

import (
	"fmt"
	"testing"

	zookeeper "github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/offsets"
)

func TestEventsAfterAMarkAreThoseThatAreNew(t *testing.T) {
	t.Parallel()
	place := newPlace()
	s := open(t, config(t, place))
	save := func(n int) {
		require.NoError(t, s.SaveEvent(t.Context(), fmt.Appendf(nil, `{"id":%d}`, n)))
	}
	after := func(mark string) (found []string, next string) {
		texts, next, err := s.EventsAfter(t.Context(), mark)
		require.NoError(t, err)
		for _, text := range texts {
			found = append(found, string(text))
		}
		return found, next
	}
	found, mark := after("")
	require.Empty(t, found)
	require.Empty(t, mark)
	save(1)
	save(2)
	found, mark = after(mark)
	require.Equal(t, []string{`{"id":1}`, `{"id":2}`}, found)
	found, mark = after(mark)
	require.Empty(t, found)
	save(3)
	found, mark = after(mark)
	require.Equal(t, []string{`{"id":3}`}, found)

	o := other(t, place)
	folder := s.at.events()
	names, _, err := o.conn.Children(folder)
	require.NoError(t, err)
	require.Len(t, names, 3)
	require.Less(t, len(names), offsets.MaxEvents)
	for _, name := range names {
		require.NoError(t, o.conn.Delete(folder+"/"+name, -1))
	}
	require.NoError(t, o.conn.Delete(folder, -1)) // as an operator does who clears up: names begin at 0 again
	_, err = o.conn.Create(folder, nil, 0, zookeeper.WorldACL(zookeeper.PermAll))
	require.NoError(t, err)
	save(4)
	found, _ = after(mark)
	require.Equal(t, []string{`{"id":4}`}, found)
}
