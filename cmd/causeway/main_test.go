package main

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

// asProgram in the environment makes the test binary the program itself, for tests that send signals.
const asProgram = "CAUSEWAY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testkit.Main(m)
}

// command runs the program in process.
func command(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

func id10(n int64) string { return strconv.FormatInt(n, 10) }
