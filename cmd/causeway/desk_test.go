package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
)

// deskMirror is a mirror of orders-0 and orders-1 that notes what it is told.
type deskMirror struct {
	fakeMirror

	settings map[string]operator.Topic
	verdict  error
	slow     bool // resets take until their context ends
}

func newDeskMirror() *deskMirror {
	m := &deskMirror{settings: map[string]operator.Topic{}}
	m.state.Partitions = []api.Partition{{Topic: "orders"}, {Topic: "orders", Partition: 1}}
	return m
}

func (m *deskMirror) Configure(topic string, t operator.Topic) { m.settings[topic] = t }
func (*deskMirror) Retry(p route.Partition) bool               { return p.Topic == "orders" && p.Partition < 2 }

func (m *deskMirror) Reset(ctx context.Context, _ route.Partition, _ connector.Reset) error {
	if m.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.verdict
}

func orders(p int32) route.Partition { return route.Partition{Topic: "orders", Partition: p} }

func TestSettingsSurviveTheProcess(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	m := newDeskMirror()
	d, err := openDesk(dir, m, hclog.NewNullLogger())
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, settingsFile))
	require.NoError(t, d.PauseTopic(ctx, "orders", true))
	require.NoError(t, d.PausePartition(ctx, orders(1), true))
	require.NoError(t, d.LimitTopic(ctx, "orders", operator.Limits{BytesPerSecond: 1000}))
	require.NoError(t, d.LimitPartition(ctx, orders(0), operator.Limits{RecordsPerSecond: 0.5}))
	want := operator.Topic{
		Settings: operator.Settings{Paused: true, Limits: operator.Limits{BytesPerSecond: 1000}},
		Partitions: map[int32]operator.Settings{
			0: {Limits: operator.Limits{RecordsPerSecond: 0.5}}, 1: {Paused: true},
		},
	}
	require.Equal(t, want, m.settings["orders"])
	text, err := os.ReadFile(filepath.Join(dir, settingsFile))
	require.NoError(t, err)
	require.JSONEq(t, `{"v":1,"topics":{"orders":{"paused":true,"limits":{"records_per_second":0,"bytes_per_second":1000},"partitions":{
		"0":{"paused":false,"limits":{"records_per_second":0.5,"bytes_per_second":0}},
		"1":{"paused":true,"limits":{"records_per_second":0,"bytes_per_second":0}}}}}}`, string(text))

	m = newDeskMirror()
	d, err = openDesk(dir, m, hclog.NewNullLogger())
	require.NoError(t, err)
	require.Equal(t, want, m.settings["orders"], "known before anything is mirrored")
	require.NoError(t, d.PauseTopic(ctx, "orders", false))
	require.True(t, m.settings["orders"].Stopped(1), "what was paused by itself stays so")
	require.False(t, m.settings["orders"].Stopped(0))

	for _, err := range []error{
		d.PauseTopic(ctx, "nowhere", true), d.LimitTopic(ctx, "nowhere", operator.Limits{}), d.PausePartition(ctx, orders(2), true),
		d.LimitPartition(ctx, orders(2), operator.Limits{}), d.Retry(ctx, orders(2)), d.Reset(ctx, orders(2), operator.Place{}),
	} {
		require.ErrorIs(t, err, api.ErrNotFound)
	}
	require.NoError(t, d.Retry(ctx, orders(1)))
}

func TestSettingsThatCannotBeReadStopTheStart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"v":1,"topics":{"orders":{"paused":tr`:                                      "unexpected EOF",
		`{"v":2,"topics":{}}`:                                                         "v: 2: must be 1",
		`{"v":1,"topics":{"orders":{"stopped":true}}}`:                                `unknown field "stopped"`,
		`{"v":1,"topics":{"orders":{"limits":{"records_per_second":-1}}}}`:            "topic orders: records_per_second: -1: must not be negative",
		`{"v":1,"topics":{"orders":{"partitions":{"-4":{"paused":true}}}}}`:           "partition: -4: must not be negative",
		`{"v":1,"topics":{"orders":{"partitions":{"0":{"limits":{"bytes":1}}}}}}`:     `unknown field "bytes"`,
		`{"v":1,"topics":{"orders":{"partitions":{"zero":{"paused":true}}}}}`:         "zero",
		`{"v":1,"topics":{"orders":{"limits":{"records_per_second":"1","bytes":1}}}}`: "records_per_second",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte(text), 0o600))
		m := newDeskMirror()
		_, err := openDesk(dir, m, hclog.NewNullLogger())
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, filepath.Join(dir, settingsFile))
		require.Empty(t, m.settings)
	}
}

func TestSettingsThatCannotBeStoredAreNotApplied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newDeskMirror()
	d, err := openDesk(dir, m, hclog.NewNullLogger())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, settingsFile), 0o700))
	require.ErrorContains(t, d.PauseTopic(t.Context(), "orders", true), "store settings")
	require.Empty(t, m.settings)
}

func TestResetIsAnsweredWhenItIsDoneRefusedOrTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newDeskMirror()
		d, err := openDesk(t.TempDir(), m, hclog.NewNullLogger())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.run(ctx) }() // owned by the test, which waits for done
		require.NoError(t, d.Reset(ctx, orders(0), operator.Place{}))
		for verdict, want := range map[error]error{
			&connector.RangeError{To: 5}: api.ErrInvalid, connector.ErrBusy: api.ErrAlready, connector.ErrElsewhere: api.ErrNotFound,
		} {
			m.verdict = verdict
			require.ErrorIs(t, d.Reset(ctx, orders(0), operator.Place{}), want)
		}
		m.slow = true
		began := time.Now()
		require.NoError(t, d.Reset(ctx, orders(0), operator.Place{}), "it goes on")
		require.Equal(t, resetPatience, time.Since(began))
		cancel()
		<-done
		require.ErrorIs(t, d.Reset(t.Context(), orders(0), operator.Place{}), errEnding)
	})
}
