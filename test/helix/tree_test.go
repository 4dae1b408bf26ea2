package helix_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// znRecord is Helix's record as it is on the wire, decoded strictly: members that are missing or null stay nil.
type znRecord struct {
	ID     string                       `json:"id"`
	Simple map[string]string            `json:"simpleFields"`
	List   map[string][]string          `json:"listFields"`
	Map    map[string]map[string]string `json:"mapFields"`
}

// newRecord is an empty record with a name.
func newRecord(id string) *znRecord {
	return &znRecord{ID: id, Simple: map[string]string{}, List: map[string][]string{}, Map: map[string]map[string]string{}}
}

// tree is a cluster's znodes, seen by a client that knows nothing of Helix. Paths are given in parts below the cluster.
type tree struct {
	t       *testing.T
	conn    *zk.Conn
	cluster string
}

func openTree(t *testing.T, addr, cluster string) *tree {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(mute{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return &tree{t: t, conn: conn, cluster: cluster}
}

type mute struct{}

// Printf prints nothing: what goes wrong on the way comes back as an error.
func (mute) Printf(string, ...any) {}

func (tr *tree) path(parts ...string) string {
	return path.Join(append([]string{"/", tr.cluster}, parts...)...)
}

// children is the sorted names below a node; nil if there are none or no such node.
func (tr *tree) children(parts ...string) []string {
	tr.t.Helper()
	names, _, err := tr.conn.Children(tr.path(parts...))
	if errors.Is(err, zk.ErrNoNode) || len(names) == 0 {
		return nil
	}
	require.NoError(tr.t, err)
	slices.Sort(names)
	return names
}

func (tr *tree) exists(parts ...string) bool {
	tr.t.Helper()
	ok, _, err := tr.conn.Exists(tr.path(parts...))
	require.NoError(tr.t, err)
	return ok
}

// record reads a node; nil if there is none or it is empty.
func (tr *tree) record(parts ...string) *znRecord {
	tr.t.Helper()
	r, _ := tr.stat(parts...)
	return r
}

// stat is record with the node's numbers.
func (tr *tree) stat(parts ...string) (*znRecord, *zk.Stat) {
	tr.t.Helper()
	data, stat, err := tr.conn.Get(tr.path(parts...))
	if errors.Is(err, zk.ErrNoNode) || len(data) == 0 {
		return nil, stat
	}
	require.NoError(tr.t, err)
	r := &znRecord{}
	require.NoError(tr.t, json.Unmarshal(data, r), "%s: %s", tr.path(parts...), data)
	return r, stat
}

// bytes reads a node as it is.
func (tr *tree) bytes(parts ...string) []byte {
	tr.t.Helper()
	data, _, err := tr.conn.Get(tr.path(parts...))
	require.NoError(tr.t, err)
	return data
}

// put creates a node with a record, or replaces what is there.
func (tr *tree) put(r *znRecord, parts ...string) {
	tr.t.Helper()
	data, err := json.Marshal(r)
	require.NoError(tr.t, err)
	tr.putBytes(data, parts...)
}

func (tr *tree) putBytes(data []byte, parts ...string) {
	tr.t.Helper()
	_, err := tr.conn.Create(tr.path(parts...), data, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		_, err = tr.conn.Set(tr.path(parts...), data, -1)
	}
	require.NoError(tr.t, err)
}

func (tr *tree) remove(parts ...string) {
	tr.t.Helper()
	require.NoError(tr.t, tr.conn.Delete(tr.path(parts...), -1))
}

// session is the session id of an instance's live node, as the node's owner tells it; "" if it is not live.
func (tr *tree) session(instance string) string {
	tr.t.Helper()
	ok, stat, err := tr.conn.Exists(tr.path("LIVEINSTANCES", instance))
	require.NoError(tr.t, err)
	if !ok {
		return ""
	}
	return hexID(stat.EphemeralOwner)
}

// states is the current states of a resource in an instance's live session, by partition; empty if it has none.
func (tr *tree) states(instance, resource string) map[string]string {
	tr.t.Helper()
	states := map[string]string{}
	if r := tr.record("INSTANCES", instance, "CURRENTSTATES", tr.session(instance), resource); r != nil {
		for partition, entry := range r.Map {
			states[partition] = entry["CURRENT_STATE"]
		}
	}
	return states
}

// line is states like "0=ONLINE 1=ERROR".
func (tr *tree) line(instance, resource string) string {
	tr.t.Helper()
	states := tr.states(instance, resource)
	var fields []string
	for _, partition := range slices.Sorted(maps.Keys(states)) {
		fields = append(fields, partition+"="+states[partition])
	}
	return strings.Join(fields, " ")
}

// transition is a message that a controller might send.
func (tr *tree) transition(id, instance, partition, from, to string) *znRecord {
	tr.t.Helper()
	m := newRecord(id)
	m.Simple = map[string]string{
		"MSG_ID": id, "MSG_TYPE": "STATE_TRANSITION", "MSG_STATE": "new", "CREATE_TIMESTAMP": strconv.FormatInt(time.Now().UnixMilli(), 10),
		"FROM_STATE": from, "TO_STATE": to, "RESOURCE_NAME": topicA, "PARTITION_NAME": partition, "STATE_MODEL_DEF": "OnlineOffline",
		"STATE_MODEL_FACTORY_NAME": "DEFAULT", "SRC_NAME": ctrl, "TGT_NAME": instance, "TGT_SESSION_ID": tr.session(instance),
	}
	return m
}

// dump is the whole cluster for a failed test.
func (tr *tree) dump() string {
	var b strings.Builder
	tr.dumpBelow(&b, tr.path())
	return b.String()
}

func (tr *tree) dumpBelow(b *strings.Builder, node string) {
	data, _, err := tr.conn.Get(node)
	if err != nil {
		fmt.Fprintf(b, "%s: %v\n", node, err)
		return
	}
	fmt.Fprintf(b, "%s %.600s\n", node, strings.Join(strings.Fields(string(data)), " "))
	names, _, err := tr.conn.Children(node)
	if err != nil || strings.HasSuffix(node, "/STATEMODELDEFS") {
		return
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), 20)] {
		tr.dumpBelow(b, path.Join(node, name))
	}
}

// hexID is a session's id as Helix writes it: hexadecimal, without a sign.
func hexID(id int64) string { return strconv.FormatUint(uint64(id), 16) }

func equal(x, y any) bool { return reflect.DeepEqual(x, y) }
