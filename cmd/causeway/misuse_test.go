package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatIsNoWayToAskIsNamed: no request is made.
func TestWhatIsNoWayToAskIsNamed(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:1"
	for _, row := range []struct {
		args []string
		says string
	}{
		{[]string{"offsets", "translate"}, "--group, or --topic and --offset: must be given"},
		{[]string{"offsets", "translate", "--topic", "orders"}, "--offset: must be given"},
		{[]string{"offsets", "translate", "--offset", "5"}, "--topic: must be given"},
		{[]string{"offsets", "translate", "--group", "g", "--topic", "orders"}, "--topic: does not go with --group"},
		{[]string{"offsets", "translate", "--group", "g", "--partition", "1"}, "--partition: does not go with --group"},
		{[]string{"offsets", "export", "-o", "json"}, `--output "json": is the name of a file here, and JSON it always is; ./json if it is meant`},
		{[]string{"backup", "--output", "yaml"}, `--output "yaml": is the name of a file here`},
		{[]string{"topics", "pause", ""}, `TOPIC "": is no name`},
		{[]string{"topics", "pause", ".."}, `TOPIC "..": is no name`},
		{[]string{"workers", "drain", "."}, `ID ".": is no name`},
		{[]string{"partitions", "retry", "--topic", "orders", "--partition", "99999999999"}, `--partition "99999999999": is out of range`},
	} {
		code, stdout, stderr := command(t.Context(), append(row.args, "--api", nobody)...)
		require.Equal(t, exitUsage, code, "%q: %s", row.args, stderr)
		require.Contains(t, stderr, row.says, "%q", row.args)
		require.Empty(t, stdout)
	}
}

// TestAGroupWithoutOffsetsIsAFailure: a name that was mistyped looks the same, and a script would go on.
func TestAGroupWithoutOffsetsIsAFailure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[],"next":""}`)
	}))
	t.Cleanup(server.Close)
	code, stdout, stderr := command(t.Context(), "offsets", "translate", "--group", "biling", "-o", "json", "--api", server.URL)
	require.Equal(t, exitFailure, code)
	require.Equal(t, "[]\n", stdout)
	require.Equal(t, "causeway: --group \"biling\": has committed no offset in a partition that is mirrored here\n", stderr)
}

func TestSeveralFaultsAreOneRow(t *testing.T) {
	t.Parallel()
	var screen bytes.Buffer
	table := newTable(&screen)
	table.row("state", "degraded: broker 1: refused\nbroker 2: refused")
	require.NoError(t, table.w.Flush())
	require.Equal(t, "state  degraded: broker 1: refused; broker 2: refused\n", screen.String())
}
