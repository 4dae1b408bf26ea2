package chart_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// matches says that labels have all of a selector.
func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// shutdownSeconds is worker.shutdown_timeout of the native file that a config map holds.
func shutdownSeconds(t *testing.T, m *core.ConfigMap) int64 {
	t.Helper()
	var file struct {
		Worker struct {
			ShutdownTimeout string `json:"shutdown_timeout"`
		} `json:"worker"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(m.Data["causeway.yaml"]), &file))
	d, err := time.ParseDuration(file.Worker.ShutdownTimeout)
	require.NoError(t, err)
	return int64(d.Seconds())
}

// requireService wants the headless service that gives a set's pods their names, also before they are ready.
func requireService(t *testing.T, all []any, name string, labels map[string]string) {
	t.Helper()
	for _, s := range of[core.Service](all) {
		if s.Name == name {
			require.Equal(t, core.ClusterIPNone, s.Spec.ClusterIP)
			require.True(t, s.Spec.PublishNotReadyAddresses)
			require.True(t, matches(s.Spec.Selector, labels))
			return
		}
	}
	t.Fatalf("there is no service %s", name)
}
