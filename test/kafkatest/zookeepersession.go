package kafkatest

import (
	"fmt"
	"strings"
	"testing"
)

// HasSession says whether the server still knows a session, by its id.
func (z *ZooKeeper) HasSession(t testing.TB, id int64) bool {
	t.Helper()
	dump, err := z.ask(t.Context(), "dump")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(dump, fmt.Sprintf("0x%x", id))
}
