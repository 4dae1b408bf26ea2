package program

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/classic"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	p := Program{Name: "causeway-test", Version: "1.0", Revision: "abc", Options: func() []classic.Option { return nil }}
	for name, row := range map[string]struct {
		args     []string
		work     func() error
		code     int
		out, err string
	}{
		"version":  {[]string{"--version"}, nil, OK, "causeway-test 1.0 abc go", ""},
		"usage":    {[]string{"-help"}, nil, OK, "usage: causeway-test", ""},
		"an end":   {[]string{"-x"}, func() error { return nil }, OK, "", ""},
		"failures": {[]string{"-x"}, func() error { return errors.Join(errors.New("a"), errors.New("b")) }, Failure, "", "causeway-test: a\ncauseway-test: b\n"},
		"misuse":   {[]string{"-x"}, func() error { return fmt.Errorf("-x: no: %w", ErrUsage) }, Usage, "", "causeway-test: -x: no: try -help\n"},
		"a fault":  {[]string{"-x"}, func() error { return fmt.Errorf("%w: stuck", ErrFault) }, Fault, "", "causeway-test: internal fault: stuck\n"},
		"a panic":  {[]string{"-x"}, func() error { panic("BUG: oh") }, Fault, "", "causeway-test: internal fault: BUG: oh\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			require.Equal(t, row.code, p.Run(row.args, &out, &errs, row.work))
			require.Contains(t, out.String(), row.out)
			require.Contains(t, errs.String(), row.err)
		})
	}
}
