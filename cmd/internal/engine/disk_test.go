package engine

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestRoomOfTheStateFolderIsTold(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux is asked")
	}
	require.Positive(t, testutil.ToFloat64(NewDisk("@a@b@1", t.TempDir())))
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewDisk("@a@b@1", filepath.Join(t.TempDir(), "none")))
	found, err := reg.Gather()
	require.NoError(t, err)
	require.Empty(t, found, "of a folder that is not there nothing is told")
}
