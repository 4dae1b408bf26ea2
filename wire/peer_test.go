package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// peer is the broker's end of a connection, played by the test.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// connected gives a connection over real TCP that speaks every version, and its other end.
func connected(t testing.TB, cfg Config) (*Conn, *peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	other, err := l.Accept()
	require.NoError(t, err)
	c := newConn(nc, 1, l.Addr().String(), "id", cfg)
	c.versions.learn(everyVersion())
	t.Cleanup(c.Close)
	t.Cleanup(func() { _ = other.Close() })
	return c, &peer{Conn: other, in: bufio.NewReaderSize(other, 1<<16)}
}

// piped is connected without a socket, for a synctest bubble: there time stands still while anybody computes, so that no slow machine makes an
// answer late.
func piped(t testing.TB, cfg Config) (*Conn, *peer) {
	t.Helper()
	nc, other := net.Pipe()
	c := newConn(nc, 1, "pipe", "id", cfg)
	c.versions.learn(everyVersion())
	t.Cleanup(c.Close)
	t.Cleanup(func() { _ = other.Close() })
	return c, &peer{Conn: other, in: bufio.NewReaderSize(other, 1<<16)}
}

func everyVersion() []kmsg.ApiVersionsResponseApiKey {
	var keys []kmsg.ApiVersionsResponseApiKey
	for k := range int16(kmsg.MaxKey + 1) {
		keys = append(keys, kmsg.ApiVersionsResponseApiKey{ApiKey: k, MaxVersion: 99})
	}
	return keys
}

// frame is one request as it came.
type frame struct {
	key, version int16
	corr         int32
	all          []byte // with the size
}

// receive reads one request.
func (p *peer) receive() (frame, error) {
	var size [4]byte
	if _, err := io.ReadFull(p.in, size[:]); err != nil {
		return frame{}, err
	}
	f := frame{all: append(size[:], make([]byte, binary.BigEndian.Uint32(size[:]))...)}
	if _, err := io.ReadFull(p.in, f.all[4:]); err != nil {
		return frame{}, err
	}
	f.key = int16(binary.BigEndian.Uint16(f.all[4:]))
	f.version = int16(binary.BigEndian.Uint16(f.all[6:]))
	f.corr = int32(binary.BigEndian.Uint32(f.all[8:]))
	return f, nil
}

// answer encodes a response.
func answer(corr int32, resp kmsg.Response) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, uint32(corr))
	if resp.IsFlexible() && resp.Key() != keyAPIVersions {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// reply answers a request with what fill makes of its response.
func (p *peer) reply(f frame, fill func(kmsg.Response)) error {
	resp := kmsg.ResponseForKey(f.key)
	resp.SetVersion(f.version)
	if fill != nil {
		fill(resp)
	}
	_, err := p.Write(answer(f.corr, resp))
	return err
}

// serve answers every request until the connection ends.
func (p *peer) serve(fill func(kmsg.Response)) {
	for {
		f, err := p.receive()
		if err != nil || p.reply(f, fill) != nil {
			return
		}
	}
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 1<<16) }

func newCork(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, readBufferBytes) }
