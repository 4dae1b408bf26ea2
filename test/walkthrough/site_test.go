package walkthrough_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/causeway-mirror/causeway/internal/testkit"
	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	// patience is how long a state that is read may take to come about: processes start, sessions end, and all on few cores.
	patience = 60 * time.Second
	often    = 50 * time.Millisecond
)

// site is the machines of which a document tells.
type site struct {
	document

	dir      string            // of the binaries and of the programs' folders
	hosts    []string          // pairs for strings.NewReplacer: what the document says, what is here
	programs map[string]string // path by name, of those that were built
}

func newSite(t *testing.T, name string, hosts ...string) *site {
	t.Helper()
	return &site{document: readDocument(t, name), dir: t.ArtifactDir(), hosts: hosts, programs: map[string]string{}}
}

// section takes the blocks below a heading out of the document, so that what nobody took is noticed.
func (s *site) section(t *testing.T, heading string, blocks int) []block {
	t.Helper()
	found := s.blocks[heading]
	require.Len(t, found, blocks, "blocks of commands below %q", heading)
	delete(s.blocks, heading)
	return found
}

// write writes the document's files into a program's folder. more are further replacements, which come first.
func (s *site) write(t *testing.T, program string, more ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(s.dir, program)
	require.NoError(t, os.MkdirAll(dir, 0o750))
	for name, text := range s.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(s.here(text, more...)), 0o600))
	}
	return dir
}

// here replaces what is different on this machine.
func (s *site) here(text string, more ...string) string {
	return strings.NewReplacer(append(more, s.hosts...)...).Replace(text)
}

// binary builds a program at its first call.
func (s *site) binary(t *testing.T, name string) string {
	t.Helper()
	if at := s.programs[name]; at != "" {
		return at
	}
	at := filepath.Join(t.TempDir(), name)
	require.NoError(t, testkit.Build(t.Context(), name, at))
	s.programs[name] = at
	return at
}

// start runs a command line that starts a program which stays. It is stopped with the test, and must end as one that was told to.
func (s *site) start(t *testing.T, name string, c command, more ...string) *kafkatest.Program {
	t.Helper()
	args := strings.Split(s.here(strings.Join(c.words[1:], "\x00"), more...), "\x00")
	run := kafkatest.NewProgram(name, s.write(t, name, more...), append([]string{s.binary(t, c.words[0])}, args...)...)
	require.NoError(t, run.Start())
	t.Cleanup(func() {
		err := run.Stop()
		if t.Failed() {
			t.Log("--- "+name, "\n", run.Log())
		}
		require.NoError(t, err)
		require.Zero(t, run.ExitCode(), "exit code of %s", name)
	})
	return run
}

// do runs the commands of a block that end by themselves: calls, which must get the answer that the document tells, and causeway's own.
func (s *site) do(t *testing.T, b block) {
	t.Helper()
	for _, c := range b {
		if c.words[0] != "curl" {
			s.ends(t, c)
			continue
		}
		s.call(t, c)
	}
}

// ends runs a program that ends by itself, and prints what the document tells.
func (s *site) ends(t *testing.T, c command) {
	t.Helper()
	args := strings.Split(s.here(strings.Join(c.words[1:], "\x00")), "\x00")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, s.binary(t, c.words[0]), args...)
	run.Dir = s.dir // files that a command writes are those that the next one reads
	out, err := run.CombinedOutput()
	require.NoError(t, err, "%v: %s", c.words, out)
	require.True(t, strings.HasPrefix(string(out), c.body), "%v printed %s", c.words, out)
}

// call makes a call as curl does.
func (s *site) call(t *testing.T, c command) {
	t.Helper()
	require.NotZero(t, c.status, "the document does not tell what %v is answered", c.words)
	method, address, body := "", "", ""
	for i := 1; i < len(c.words); i++ {
		switch c.words[i] {
		case "-X":
			i++
			method = c.words[i]
		case "-d":
			i++
			body = c.words[i]
		default:
			require.Empty(t, address, "what is %s?", c.words[i])
			address = c.words[i]
		}
	}
	if method == "" {
		method = http.MethodGet
		require.Empty(t, body, "a body is for a write: %v", c.words)
	}
	deadline := time.Now().Add(patience)
	for {
		status, got := fetch(t, method, s.here(address), body)
		if status == c.status && strings.HasPrefix(got, c.body) {
			return
		}
		if method != http.MethodGet || time.Now().After(deadline) {
			require.Equal(t, [2]any{c.status, c.body}, [2]any{status, got}, "%v", c.words)
			require.FailNow(t, "the answer does not begin so", "%v: %s", c.words, got)
		}
		<-time.After(often)
	}
}

// fetch makes one call; a server that is not there yet is status 0.
func fetch(t *testing.T, method, address, body string) (status int, text string) {
	t.Helper()
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Accept", "*/*")
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl says of what -d gives
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(read)
}

// records counts a topic's.
func records(t *testing.T, kafka *kafkatest.Cluster, topic string) int64 {
	t.Helper()
	ends, err := kadm.NewClient(kafka.Client(t)).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	sum := int64(0)
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}
