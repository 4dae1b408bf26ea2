package main

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// command runs the program in process.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func id10(n int64) string { return strconv.FormatInt(n, 10) }
