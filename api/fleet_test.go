package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAWorkerIsShownAsItStands(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		worker        FleetWorker
		state, reason string
	}{
		{FleetWorker{Live: true}, WorkerActive, ""},
		{FleetWorker{Live: true, Standby: true}, WorkerStandby, ""},
		{FleetWorker{Live: true, Draining: true, Standby: true}, WorkerDraining, ""},
		{FleetWorker{Live: true, Silent: 20 * time.Second}, WorkerSilent, "it has not answered for 20s"},
		{FleetWorker{Live: true, Draining: true, Silent: 20 * time.Second}, WorkerDraining, "it has not answered for 20s"},
		{FleetWorker{Draining: true}, WorkerGone, ""},
	} {
		is := workerOf(row.worker)
		require.Equal(t, row.state, is.State)
		require.Equal(t, row.reason, is.Reason)
	}
}
