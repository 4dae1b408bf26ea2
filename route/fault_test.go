package route

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaultNamesItsCodeOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, code, cause, want string }{
		{"cause with the code", "MESSAGE_TOO_LARGE", "MESSAGE_TOO_LARGE: it is too large.", "MESSAGE_TOO_LARGE: it is too large."},
		{"code alone", "LINK", "LINK", "LINK"},
		{"cause without the code", "LINK", "reset by peer", "LINK: reset by peer"},
		{"code as the beginning of a word", "LINK", "LINKED: x", "LINK: LINKED: x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, (&Fault{Code: row.code, Err: errors.New(row.cause)}).Error()) //nolint:err113 // any cause
		})
	}
	require.Equal(t, "LINK", (&Fault{Code: "LINK"}).Error())
}
