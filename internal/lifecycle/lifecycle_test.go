package lifecycle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// diary notes what happened in which order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// component notes its start, the end of its run and its stop.
func (d *diary) component(name string) Component {
	return Component{
		Name:  name,
		Start: func(context.Context) error { d.note("start " + name); return nil },
		Run: func(ctx context.Context) error {
			<-ctx.Done()
			d.note("end " + name)
			return ctx.Err()
		},
		Stop: func(context.Context) error { d.note("stop " + name); return nil },
	}
}

var errBoom = errors.New("boom")

func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := Group{Components: []Component{d.component("a"), d.component("b"), d.component("c")}, StopTimeout: time.Minute}
		require.NoError(t, g.Run(ctx))
		require.Equal(t, []string{"start a", "start b", "start c", "end c", "stop c", "end b", "stop b", "end a", "stop a"}, d.lines)
	})
}

func TestFailedStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		bad := d.component("b")
		bad.Start = func(context.Context) error { return errBoom }
		g := Group{Components: []Component{d.component("a"), bad, d.component("c")}, StopTimeout: time.Minute}
		err := g.Run(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.EqualError(t, err, "start b: boom")
		require.Equal(t, []string{"start a", "end a", "stop a"}, d.lines)
	})
}

func TestFirstFailureWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		bad, worse := d.component("b"), d.component("c")
		bad.Run = func(context.Context) error { time.Sleep(time.Second); return errBoom }
		worse.Run = func(ctx context.Context) error { <-ctx.Done(); return errors.New("as a consequence") }
		worse.Stop = func(context.Context) error { return errors.New("can't close") }
		g := Group{Components: []Component{d.component("a"), bad, worse}, StopTimeout: time.Minute}
		err := g.Run(t.Context())
		require.ErrorIs(t, err, errBoom)
		require.EqualError(t, err, "run b: boom\nrun c: as a consequence\nstop c: can't close")
		require.Equal(t, []string{"start a", "start b", "start c", "stop b", "end a", "stop a"}, d.lines)
	})
}

func TestOneThatIsDoneEndsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		done := d.component("b")
		done.Run = func(context.Context) error { time.Sleep(time.Second); return nil }
		g := Group{Components: []Component{d.component("a"), done, {Name: "empty"}}, StopTimeout: time.Minute}
		require.NoError(t, g.Run(t.Context()))
		require.Equal(t, []string{"start a", "start b", "stop b", "end a", "stop a"}, d.lines)
	})
}

func TestStopDuringStartIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		slow := d.component("b")
		slow.Start = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		g := Group{Components: []Component{d.component("a"), slow}, StopTimeout: time.Minute}
		require.NoError(t, g.Run(ctx))
		require.Equal(t, []string{"start a", "end a", "stop a"}, d.lines)
	})
}

func TestStuckComponentIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		free := make(chan struct{})
		stuck := d.component("b")
		stuck.Run = func(context.Context) error { <-free; return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := Group{Components: []Component{d.component("a"), stuck}, StopTimeout: 10 * time.Second}.Run(ctx)
		require.ErrorIs(t, err, ErrStuck)
		require.EqualError(t, err, "stop b: did not stop in time")
		require.Equal(t, 11*time.Second, time.Since(began))
		close(free)
		synctest.Wait()
		require.Equal(t, []string{"start a", "start b", "end a"}, d.lines, "nothing that the stuck one may use is freed")
	})
}
