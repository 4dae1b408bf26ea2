package ui_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/kafkad"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// browser skips where there is no browser, or fails if there must be one. It gives the browser's path.
func browser(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("no browser is started in short mode")
	}
	path, err := exec.LookPath("chromium")
	if err == nil {
		_, err = exec.LookPath("node")
	}
	if err == nil {
		_, err = os.Stat("../../ui/node_modules/playwright-core/package.json")
	}
	if err == nil {
		return path
	}
	if os.Getenv("CAUSEWAY_REQUIRE_BROWSER") == "1" {
		t.Fatalf("a browser is required (CAUSEWAY_REQUIRE_BROWSER=1; Chromium, Node and, below ui, npm ci): %v", err)
	}
	fmt.Fprintf(os.Stderr, "!!! SKIPPING %s, WHICH NEEDS CHROMIUM, NODE AND npm ci BELOW ui: %v\n", t.Name(), err)
	t.Skipf("no browser: %v", err)
	return ""
}

// TestThePageInABrowser has one Chromium look at each page of each site; browser.mjs says what is looked for, and prints a line for each.
func TestThePageInABrowser(t *testing.T) {
	path := browser(t)
	changed, shown := newCrew(8, 6, true), newCrew(8, 6, true)
	sites := map[string]string{
		"DEMO":    demo(t),
		"CLUSTER": serve(t, changed, "controller", leads{changed}, "s3cret"),
		"TROUBLE": serve(t, shown, "controller", leads{shown}, ""),
		"STANDBY": serve(t, newCrew(0, 0, false), "controller", standby{}, ""),
		"WORKER":  serve(t, newCrew(2, 3, false), "worker", nil, ""),
		"MANY":    serve(t, newCrew(2000, 10, false), "standalone", nil, ""),
	}
	look := exec.CommandContext(t.Context(), "node", "browser.mjs")
	look.Env = append(os.Environ(), "CHROMIUM="+path)
	for name, url := range sites {
		look.Env = append(look.Env, name+"="+url)
	}
	look.Stderr = os.Stderr
	out, err := look.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, look.Start())
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, fault, told := strings.Cut(lines.Text(), "\t")
		if !told {
			t.Log(lines.Text())
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) { require.Empty(t, strings.ReplaceAll(fault, "\\n", "\n")) })
	}
	require.NoError(t, look.Wait())
	require.Positive(t, seen)
}

// BenchmarkTopicsOfALargeCluster opens the list of 2,000 topics with 20,000 partitions: milliseconds until something is painted, until the topics are
// there, and from the press on a button until the next ones are.
func BenchmarkTopicsOfALargeCluster(b *testing.B) {
	path := browser(b)
	site := serve(b, newCrew(2000, 10, false), "standalone", nil, "")
	look := exec.CommandContext(b.Context(), "node", "paint.mjs")
	look.Env = append(os.Environ(), "CHROMIUM="+path, "SITE="+site, "ROUNDS="+strconv.Itoa(b.N))
	look.Stderr = os.Stderr
	out, err := look.Output()
	require.NoError(b, err)
	var sum [3]float64
	for line := range strings.Lines(string(out)) {
		var one [3]float64
		_, err := fmt.Sscan(line, &one[0], &one[1], &one[2])
		require.NoError(b, err, line)
		for i, ms := range one {
			sum[i] += ms
		}
	}
	for i, unit := range []string{"paint-ms/op", "topics-ms/op", "next-page-ms/op"} {
		b.ReportMetric(sum[i]/float64(b.N), unit)
	}
}

// demo runs causeway demo and gives its address.
func demo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "causeway")
	require.NoError(t, testkit.Build(t.Context(), "causeway", program))
	ports, err := kafkad.FreePorts(1)
	require.NoError(t, err)
	p := exec.CommandContext(t.Context(), program, "demo", "--rate", "200", "--listen", kafkad.Loopback(ports[0])) // ended at the end of the test
	p.Dir, p.WaitDelay = dir, 30*time.Second
	p.Cancel = func() error { return p.Process.Signal(os.Interrupt) } // it takes its clusters' folder away
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Wait() }) // its verdict is not asked for
	url := "http://" + kafkad.Loopback(ports[0])
	answers(t, url)
	return url
}
