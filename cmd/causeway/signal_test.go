package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// launched is causeway in a process of its own.
type launched struct {
	cmd       *exec.Cmd
	out, errs safeBuffer
	done      chan error
}

func launch(t *testing.T, args ...string) *launched {
	t.Helper()
	p := &launched{cmd: exec.CommandContext(t.Context(), os.Args[0], args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	require.NoError(t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *launched) api(t *testing.T) string {
	t.Helper()
	address := regexp.MustCompile(`http://[0-9.:]+`)
	require.Eventually(t, func() bool { return address.MatchString(p.out.String()) }, 30*time.Second, 5*time.Millisecond, "stderr: %s", p.errs.String())
	return address.FindString(p.out.String())
}

func (p *launched) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(40 * time.Second):
		t.Fatalf("the program did not end; stderr: %s", p.errs.String())
		return 0
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	source, target := embedded(t, "orders"), embedded(t)
	fill(t, source, "orders", sampleRecords()...)
	args := []string{"standalone", "--topics", "orders", "--listen", "127.0.0.1:0", "--source", source.ListenAddrs()[0], "--target", target.ListenAddrs()[0]}
	t.Run("terminated: drains, commits, exit 0", func(t *testing.T) {
		t.Parallel()
		p := launch(t, append(args, "--state", filepath.Join(t.TempDir(), "state"))...)
		code, _, stderr := command(t.Context(), "wait", "--topic", "orders", "--timeout", "30s", "--api", p.api(t))
		require.Equal(t, 0, code, stderr)
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 0, p.wait(t), p.errs.String())
		require.Contains(t, p.errs.String(), "draining")
	})
	t.Run("a crash is no wrong usage", func(t *testing.T) { // the runtime's own exit code is 2, after which systemd does not start it again
		t.Parallel()
		p := launch(t, append(args, "--state", filepath.Join(t.TempDir(), "state"))...)
		p.api(t)
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGQUIT))
		require.Equal(t, -1, p.wait(t), "ended by SIGABRT")
	})
	for name, soon := range map[string]bool{"a second signal ends at once": false, "so does one right behind the first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endsBySecondSignal(t, source, args, soon)
		})
	}
}

// endsBySecondSignal has a drain that does not end, and a second signal: in the middle of it, or so soon that it must not fall into the time that the
// first one takes to be noticed.
func endsBySecondSignal(t *testing.T, source *kfake.Cluster, args []string, soon bool) {
	t.Helper()
	// One partition: the late answer of one that held up others would cut the connection, and nothing would be left to wait for.
	topic := "alone" + strconv.FormatBool(soon)
	require.NoError(t, source.CreateTopic(topic, 1, nil))
	fill(t, source, topic, kgo.Record{Value: []byte("one")})
	silent := embedded(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) }) // before the cluster closes
	asked := make(chan struct{}, 100)
	silent.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		silent.KeepControl()
		asked <- struct{}{}
		silent.SleepControl(func() { <-release })
		return nil, nil, false
	})
	p := launch(t, append(slices.Replace(slices.Clone(args), 2, 3, topic), "--target", silent.ListenAddrs()[0], "--state", filepath.Join(t.TempDir(), "state"))...)
	<-asked // something is in flight and is not answered: the drain waits for it
	began := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if !soon {
		require.Eventually(t, func() bool { return strings.Contains(p.errs.String(), "draining") }, 20*time.Second, time.Millisecond)
		began = time.Now()
	}
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	require.Equal(t, -1, p.wait(t), "ended by the signal itself")
	require.Less(t, time.Since(began), 5*time.Second)
}

// eventually polls; unlike require.Eventually it lets the test say what it sees when time is up.
func eventually(ok func() bool, within time.Duration) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return true
		}
	}
	return false
}

// TestKilledUnderLoad is the promise: killed with kill -9 again and again while records flow, each record arrives once and in order.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	source, err := newEmbedded(t.Context(), kfake.NumBrokers(2))
	require.NoError(t, err)
	t.Cleanup(source.Close)
	target, err := newEmbedded(t.Context(), kfake.NumBrokers(2))
	require.NoError(t, err)
	t.Cleanup(target.Close)
	for _, topic := range demoTopics() {
		require.NoError(t, source.CreateTopic(topic.name, topic.partitions, nil))
	}
	g, err := newGenerator(source.ListenAddrs(), 5000)
	require.NoError(t, err)
	t.Cleanup(g.close)
	clusters := []string{"--source", strings.Join(source.ListenAddrs(), ","), "--target", strings.Join(target.ListenAddrs(), ","), "--topics", ".*"}
	args := append([]string{"standalone", "--listen", "127.0.0.1:0", "--state", filepath.Join(t.TempDir(), "state"), "--commit-interval", "500ms"}, clusters...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load errgroup.Group
	load.Go(func() error { return g.run(ctx) })
	copied := func() (sum int64) {
		for _, topic := range demoTopics() {
			for _, info := range target.PartitionInfos(topic.name) {
				sum += info.HighWatermark
			}
		}
		return sum
	}
	for range 4 {
		p := launch(t, args...)
		p.api(t)
		before := copied()
		if !eventually(func() bool { return copied() > before+4000 }, time.Minute) {
			_, stdout, _ := command(t.Context(), "partitions", "list", "--api", p.api(t))
			t.Fatalf("%d records came, %d before\n%s\n%s", copied(), before, stdout, p.errs.String())
		}
		require.NoError(t, p.cmd.Process.Kill())
		p.wait(t)
	}
	stop()
	require.NoError(t, load.Wait())
	p := launch(t, args...)
	code, stdout, stderr := command(t.Context(), "wait", "--timeout", "30s", "--api", p.api(t))
	require.Equal(t, 0, code, stdout+stderr+p.errs.String())
	code, stdout, stderr = command(t.Context(), append([]string{"verify"}, clusters...)...)
	require.Equal(t, 0, code, stdout+stderr)
	require.Contains(t, stdout, "equal: "+count(g.sent.Load())+" records")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.wait(t), p.errs.String())
}
