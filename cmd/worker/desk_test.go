package main

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/connector"
	"github.com/causeway-mirror/causeway/helix"
	"github.com/causeway-mirror/causeway/operator"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

func (r *recorder) Configure(topic string, t operator.Topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings[topic] = t
}

func (r *recorder) Has(p route.Partition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[p]
}

func (r *recorder) Retry(p route.Partition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, p.String()+" retry")
	return true
}

// Reset plays the connector: it notes, and stores. A partition is in epoch 7/0 until it is reset.
func (r *recorder) Reset(ctx context.Context, p route.Partition, reset connector.Reset) error {
	from := operator.Epoch{ProducerID: 7}
	r.mu.Lock()
	cut, done := r.cut, r.reset[p]
	r.mu.Unlock()
	if reset.From != nil && *reset.From == from && done {
		return nil // it is in epoch 7/1
	}
	if at, ok := reset.To.Offset(); ok && at > 100 {
		return &connector.RangeError{To: at, End: 100}
	}
	if reset.From == nil {
		if err := reset.Note(ctx, from); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.reset[p] = append(r.done, p.String()+" "+reset.To.String()), true
	if cut > 0 {
		r.cut--
		return errors.New("cut off after it was stored")
	}
	return nil
}

// did says whether exactly these commands were carried out, in that order.
func (r *recorder) did(want ...string) func() bool {
	return r.look(func(r *recorder) bool {
		if len(r.done) != len(want) {
			return false
		}
		for i := range want {
			if r.done[i] != want[i] {
				return false
			}
		}
		return true
	})
}

// ask writes what an operator asks, as the controller does.
func (st *stage) ask(t *testing.T, write func(*helix.Record), parts ...string) {
	t.Helper()
	require.NoError(t, st.admin.UpdateProperty(t.Context(), func(r *helix.Record) error { write(r); return nil }, append([]string{"causeway"}, parts...)...))
}

func (st *stage) command(t *testing.T, c operator.Command, topic, partition string) {
	t.Helper()
	st.ask(t, func(r *helix.Record) { c.Write(r.Simple) }, "commands", topic, partition)
}

// commands counts what is still to be done.
func (st *stage) commands(t *testing.T) (n int) {
	t.Helper()
	folder := helix.Cluster(st.cluster).Property("causeway", "commands")
	topics, err := st.session.Children(t.Context(), folder, nil)
	if err != nil {
		require.ErrorIs(t, err, helix.ErrNotFound)
	}
	for _, topic := range topics {
		names, err := st.session.Children(t.Context(), folder+"/"+topic, nil)
		if err == nil {
			n += len(names)
		}
	}
	return n
}

func to(t *testing.T, text string) operator.Command {
	t.Helper()
	p, err := operator.ParsePlace(text)
	require.NoError(t, err)
	return operator.Command{To: &p}
}

func TestCommandsAreCarriedOutOnceByWhoRunsThePartition(t *testing.T) {
	t.Parallel()
	st := newStage(t, "desk-commands")
	st.lead(t, kafkatest.SharedZooKeeper(t).Addr())
	st.command(t, to(t, "earliest"), "orders", "0") // before anybody runs it
	st.command(t, operator.Command{}, "elsewhere", "3")
	st.ask(t, func(r *helix.Record) { r.Simple["command"] = "explode" }, "commands", "orders", "2")
	st.assign(t, "orders", 3)
	require.Eventually(t, st.did("orders-0 earliest"), soon, poll)
	require.Eventually(t, func() bool { return st.commands(t) == 2 }, soon, poll, "it is removed; what is not ours, or can't be read, stays")

	st.command(t, operator.Command{}, "orders", "1")
	require.Eventually(t, st.did("orders-0 earliest", "orders-1 retry"), soon, poll)
	require.Eventually(t, func() bool { return st.commands(t) == 2 }, soon, poll)

	// out of range: not done, and not asked for ever
	st.command(t, to(t, "101"), "orders", "1")
	require.Eventually(t, func() bool { return st.commands(t) == 2 }, soon, poll)
	require.True(t, st.did("orders-0 earliest", "orders-1 retry")())

	// cut off between the reset and the removal of its command
	st.mu.Lock()
	st.cut = 1
	st.mu.Unlock()
	st.command(t, to(t, "5"), "orders", "1")
	require.Eventually(t, func() bool { return st.commands(t) == 2 }, soon, poll)
	require.True(t, st.did("orders-0 earliest", "orders-1 retry", "orders-1 5")(), "not twice")

	st.ask(t, func(r *helix.Record) { operator.Command{}.Write(r.Simple) }, "commands", "orders", "2") // mended
	require.Eventually(t, st.did("orders-0 earliest", "orders-1 retry", "orders-1 5", "orders-2 retry"), soon, poll)
}

func TestSettingsAreKnownBeforeAPartitionBegins(t *testing.T) {
	t.Parallel()
	st := newStage(t, "desk-settings")
	st.lead(t, kafkatest.SharedZooKeeper(t).Addr())
	paused := operator.Topic{Settings: operator.Settings{Paused: true}}
	paused.Set(1, operator.Settings{Limits: operator.Limits{BytesPerSecond: 1000}})
	st.ask(t, func(r *helix.Record) { r.Simple["replicas"] = "1"; paused.Write(r.Simple, r.Map) }, "topics", "orders")
	holds := func(topic string, want operator.Topic) func() bool {
		return st.look(func(r *recorder) bool { return r.settings[topic].Equal(want) })
	}
	st.assign(t, "orders", 2)
	require.Eventually(t, st.runs(2), soon, poll)
	require.True(t, holds("orders", paused)(), "it ran before it was known that it is paused")

	st.ask(t, func(r *helix.Record) { operator.Topic{}.Write(r.Simple, r.Map) }, "topics", "orders")
	require.Eventually(t, holds("orders", operator.Topic{}), soon, poll)
	st.ask(t, func(r *helix.Record) { paused.Write(r.Simple, r.Map) }, "topics", "orders")
	require.Eventually(t, holds("orders", paused), soon, poll)
	st.ask(t, func(r *helix.Record) { r.Simple["paused"] = "what" }, "topics", "orders")
	st.ask(t, func(r *helix.Record) { paused.Write(r.Simple, r.Map) }, "topics", "later")
	require.Eventually(t, holds("later", paused), soon, poll)
	require.True(t, holds("orders", paused)(), "what can't be read changes nothing")

	// set while the worker is away
	st.proxy.Refuse()
	require.Eventually(t, st.look(func(r *recorder) bool { return r.suspended }), soon, poll)
	require.NoError(t, st.admin.RemoveProperty(t.Context(), "causeway", "topics"))
	require.NoError(t, st.proxy.Heal())
	require.Eventually(t, holds("later", operator.Topic{}), soon, poll)
	require.Eventually(t, holds("orders", operator.Topic{}), soon, poll)
}

// A topic that was paused while a worker was away was copied for a moment when that had joined again.
func TestSettingsOfASessionThatIsOverLetNoPartitionBegin(t *testing.T) {
	t.Parallel()
	st := newStage(t, "desk-again")
	d := newDesk(helix.Cluster(st.cluster), st.recorder, hclog.NewNullLogger())
	known := func() bool {
		select {
		case <-d.settled():
			return true
		default:
			return false
		}
	}
	for range 2 {
		require.False(t, known())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.serve(ctx, st.session) }() // owned by the test, which waits for done
		require.Eventually(t, known, soon, poll)
		cancel()
		<-done
	}
}
