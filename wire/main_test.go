package wire

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// quick is for tests in which something is dialled, asked or authenticated again.
func quick() Config {
	cfg := DefaultConfig()
	cfg.ProbeTimeout = 2 * time.Second
	cfg.WriteGrace = 200 * time.Millisecond
	cfg.RenewalGap = 10 * time.Millisecond
	cfg.RedialBackoff = 10 * time.Millisecond
	cfg.RedialLimit = 50 * time.Millisecond
	return cfg
}

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	kc, err := kfake.NewCluster(opts...)
	require.NoError(t, err)
	t.Cleanup(kc.Close)
	return kc
}

func newClient(t testing.TB, cl cluster.Config, cfg Config) *Client {
	t.Helper()
	if cl.Name == "" {
		cl.Name = "test"
	}
	c, err := New(cl, cfg, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func dialBroker(t testing.TB, c *Client, broker int32) *Conn {
	t.Helper()
	conn, err := c.Dial(t.Context(), broker)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func newPool(budget int64) *slab.Pool { return newPoolUnpoisoned(budget).Poison() }

func newPoolUnpoisoned(budget int64) *slab.Pool { return slab.NewPool(slab.NewBudget(budget), budget) }

// someBatch is a batch of n records with values of size bytes.
func someBatch(n, size int) []byte {
	var records []byte
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(i), Value: make([]byte, size)}
		for j := range r.Value {
			r.Value[j] = byte(i + j)
		}
		r.Length = int32(len(r.AppendTo(nil)) - 1)
		for have := len(r.AppendTo(nil)); ; have = len(r.AppendTo(nil)) { // the length's own varint counts not
			if want := have - varintSize(r.Length); int(r.Length) == want {
				break
			}
			r.Length = int32(have - varintSize(r.Length))
		}
		records = r.AppendTo(records)
	}
	b := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, LastOffsetDelta: int32(n - 1), FirstTimestamp: 1000, MaxTimestamp: 1000,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: records,
	}
	b.Length = int32(49 + len(records))
	return sealed(b.AppendTo(nil))
}

// sealed sets the checksum.
func sealed(out []byte) []byte {
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

func varintSize(n int32) int { return len(binary.AppendVarint(nil, int64(n))) }

// produce sends and waits.
func produce(t testing.TB, c *Conn, p *Produce) (*kmsg.ProduceResponse, error) {
	t.Helper()
	type answer struct {
		resp *kmsg.ProduceResponse
		err  error
	}
	got := make(chan answer, 1)
	if err := c.Produce(p, func(r *kmsg.ProduceResponse, err error) { got <- answer{r, err} }); err != nil {
		return nil, err
	}
	a := <-got
	return a.resp, a.err
}

// pipe copies both ways until one side ends.
func pipe(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, p := range [][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(p[0], p[1])
			done <- struct{}{}
		}()
	}
	<-done
	_, _ = a.Close(), b.Close()
	<-done
}
