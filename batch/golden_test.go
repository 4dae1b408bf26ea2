package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/route"
)

// goldenRecord is a line of golden.json, written as Golden.java writes it.
type goldenRecord struct {
	Offset    route.Offset `json:"offset"`
	Timestamp int64        `json:"timestamp"`
	Key       []byte       `json:"key"`
	Value     []byte       `json:"value"`
	Headers   [][2][]byte  `json:"headers"`
}

type goldenBatch struct {
	Magic         int8         `json:"magic"`
	LastOffset    route.Offset `json:"lastOffset"`
	MaxTimestamp  int64        `json:"maxTimestamp"`
	Codec         string       `json:"codec"`
	AppendTime    bool         `json:"appendTime"`
	Transactional bool         `json:"transactional"`
	Control       bool         `json:"control"`
	DeleteHorizon bool         `json:"deleteHorizon"`
	ProducerID    int64        `json:"producerId"`
	ProducerEpoch int16        `json:"producerEpoch"`
	BaseSequence  int32        `json:"baseSequence"`
	LeaderEpoch   int32        `json:"leaderEpoch"`
	CRC           uint32       `json:"crc"`

	Count   int            `json:"count"`
	Digest  string         `json:"digest"`
	Records []goldenRecord `json:"records"` // only when they are few
}

type golden struct {
	Name    string        `json:"name"`
	Batches []goldenBatch `json:"batches"`
}

// goldens reads the set: what the Java client wrote, and what it says is in there.
func goldens(t testing.TB) []golden {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", "golden.json"))
	require.NoError(t, err)
	var set []golden
	require.NoError(t, json.Unmarshal(text, &set))
	return set
}

func (g golden) bytes(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", g.Name+".bin"))
	require.NoError(t, err)
	return b
}

// headerOf puts what the package reads from a header into the form of the golden set.
func headerOf(b Batch) goldenBatch {
	return goldenBatch{
		Magic: b.Magic(), LastOffset: b.LastOffset(), MaxTimestamp: b.MaxTimestamp(), Codec: b.Codec().String(), AppendTime: b.AppendTime(), Transactional: b.Transactional(),
		Control: b.Control(), DeleteHorizon: b.HasDeleteHorizon(), ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
		LeaderEpoch: b.LeaderEpoch(), CRC: b.CRC(),
	}
}

// toGolden gives a record as a consumer of the batch sees it.
func toGolden(b Batch, r Record) goldenRecord {
	g := goldenRecord{Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Headers: [][2][]byte{}}
	if b.AppendTime() {
		g.Timestamp = b.MaxTimestamp()
	}
	for _, h := range r.Headers {
		g.Headers = append(g.Headers, [2][]byte{[]byte(h.Key), h.Value})
	}
	return g
}

func digest(t testing.TB, records []goldenRecord) string {
	t.Helper()
	sum := sha256.New()
	for _, r := range records {
		line, err := json.Marshal(r)
		require.NoError(t, err)
		sum.Write(append(line, '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// TestGoldenRead reads what the Java client wrote.
func TestGoldenRead(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			var reader Reader
			rest := g.bytes(t)
			for _, want := range g.Batches {
				b, next, err := Next(rest)
				require.NoError(t, err)
				rest = next
				require.NoError(t, b.Check())
				require.NoError(t, b.CheckCRC())
				got := headerOf(b)
				var records []goldenRecord
				for _, r := range read(t, &reader, b) {
					records = append(records, toGolden(b, r))
				}
				got.Count, got.Digest = len(records), digest(t, records)
				if len(want.Records) > 0 {
					require.Equal(t, want.Records, records)
				}
				want.Records = nil
				require.Equal(t, want, got)
			}
			_, _, err := Next(rest)
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// TestGoldenRewrite rewrites what the Java client wrote, to every codec, and lets franz-go's consumer read both: format 2 out, the same records, nothing else changed.
func TestGoldenRewrite(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			records := g.bytes(t)
			in := cut(t, records)
			if in[0].Control() || strings.HasSuffix(g.Name, "-empty") {
				pieces, err := new(Rewriter).Rewrite(in, Options{})
				require.NoError(t, err)
				require.Empty(t, pieces)
				return
			}
			// franz-go refuses the header checksum that the Java client writes into lz4 frames of format 0; the same records are there with gzip.
			want := dumbRead(t, golden{Name: strings.Replace(g.Name, "v0-lz4", "v0-gzip", 1)}.bytes(t), 0)
			var w Rewriter
			for _, codec := range codecs() {
				pieces, err := w.Rewrite(in, Options{Codec: &codec, AppendTime: true})
				require.NoError(t, err)
				require.Len(t, pieces, 1)
				require.Equal(t, want[0].Offset, pieces[0].First)
				require.Equal(t, in[len(in)-1].NextOffset(), pieces[0].Next)
				require.True(t, pieces[0].Batch.Dense())
				require.Equal(t, codec, pieces[0].Batch.Codec())
				requireSameRecords(t, want, dumbRead(t, pieces[0].Batch, 0))
			}
		})
	}
}

// TestGoldenControl tells abort markers from commit markers and from those that are neither.
func TestGoldenControl(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		b := cut(t, g.bytes(t))[0]
		require.Equal(t, g.Name == "v2-none-abort", b.Abort(), g.Name)
	}
}

// cut gives all batches of a partition's records.
func cut(t testing.TB, records []byte) []Batch {
	t.Helper()
	var batches []Batch
	for {
		b, rest, err := Next(records)
		if errors.Is(err, io.EOF) {
			return batches
		}
		require.NoError(t, err)
		batches, records = append(batches, b), rest
	}
}

// requireSameRecords compares all but the offsets, which must be dense from 0 in got.
func requireSameRecords(t testing.TB, want, got []Record) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		expected := want[i]
		expected.Offset = route.Offset(i)
		require.Equal(t, expected, got[i])
	}
}
