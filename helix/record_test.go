package helix

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// golden reads a record as a Java peer wrote it.
func golden(t *testing.T, name string) *Record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	r, err := DecodeRecord(data)
	require.NoError(t, err)
	return r
}

func TestRecordsOfJavaPeersAreReadAndWrittenAgainAsTheyWere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		r, err := DecodeRecord(data)
		require.NoError(t, err, file)
		again, err := r.Encode()
		require.NoError(t, err, file)
		require.JSONEq(t, strings.ReplaceAll(string(data), `,"TRIGGERED_BY":null`, ""), string(again), file)
	}
}

func TestOurRecordsAreThoseOfJavaPeers(t *testing.T) {
	t.Parallel()
	is := NewIdealState("topicA", 2, 1)
	is.Assign("0", "host1_9001", Online)
	is.Assign("1", "host2_9002", Online)
	require.Equal(t, golden(t, "idealstate"), is.Record)
	require.Equal(t, golden(t, "statemodel"), stateModelRecord())
	in := Instance{
		Name: "host1_9001", Host: "host1", Port: "9001", Enabled: true, Tags: []string{"blacklisted"},
		Disabled: map[string][]string{"topicA": {"1", "3"}},
	}
	require.Equal(t, golden(t, "participant"), in.record())
	require.Equal(t, in, parseInstance("host1_9001", golden(t, "participant")))

	read := golden(t, "message")
	m := parseMessage(read.ID, read)
	require.Empty(t, m.faults())
	m.Status = msgNew
	want := read.Clone()
	want.Simple[keyMsgState] = msgNew
	for _, key := range []string{keyEventName, "READ_TIMESTAMP", "EXE_SESSION_ID"} {
		delete(want.Simple, key)
	}
	require.Equal(t, want, m.record())
	m.Batch, m.Partitions, m.Timeout = true, []string{"0", "1"}, time.Second
	require.Equal(t, m, parseMessage(m.ID, m.record()))
}

func TestEncodeNeverWritesNull(t *testing.T) {
	t.Parallel()
	data, err := (&Record{ID: "a<b", List: map[string][]string{"l": nil}, Map: map[string]map[string]string{"m": nil}}).Encode()
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"a<b","simpleFields":{},"listFields":{"l":[]},"mapFields":{"m":{}}}`, string(data))
	require.Less(t, bytes.Index(data, []byte(`"id"`)), bytes.Index(data, []byte(`"simpleFields"`)))
	_, err = NewRecord("").Encode()
	require.ErrorIs(t, err, ErrMalformed)
}

func TestDecodeTakesWhatSomePeerTakes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, data string
		want       *Record // nil: wantErr
		wantErr    error
	}{
		{"members missing", `{"id":"a"}`, NewRecord("a"), nil},
		{"null members", `{"id":"a","simpleFields":null,"listFields":null,"mapFields":null}`, NewRecord("a"), nil},
		{"unknown members", `{"id":"a","x":{"y":[1]},"simpleFields":{}}`, NewRecord("a"), nil},
		{
			"numbers, booleans, nulls", `{"id":7,"simpleFields":{"n":1,"b":true,"gone":null},"listFields":{"l":[1,null]},"mapFields":{"m":{"k":2.5,"gone":null},"e":null}}`,
			&Record{
				ID: "7", Simple: map[string]string{"n": "1", "b": "true"}, List: map[string][]string{"l": {"1", ""}},
				Map: map[string]map[string]string{"m": {"k": "2.5"}, "e": {}},
			}, nil,
		},
		{"empty id", `{"id":"","simpleFields":{}}`, NewRecord(""), nil},
		{"something behind", `{"id":"a"} garbage`, NewRecord("a"), nil},
		{"payload", `{"id":"a","rawPayload":"aGk="}`, &Record{ID: "a", Simple: map[string]string{}, List: map[string][]string{}, Map: map[string]map[string]string{}, Raw: []byte("hi")}, nil},
		{"nothing", ``, nil, ErrEmpty},
		{"space", ` `, nil, ErrMalformed},
		{"null", `null`, nil, ErrMalformed},
		{"array", `[]`, nil, ErrMalformed},
		{"no id", `{"simpleFields":{}}`, nil, ErrMalformed},
		{"null id", `{"id":null}`, nil, ErrMalformed},
		{"truncated", `{"id":"a","simpleFields":{"k":"v`, nil, ErrMalformed},
		{"nested value", `{"id":"a","simpleFields":{"k":{}}}`, nil, ErrMalformed},
		{"list for a map", `{"id":"a","mapFields":{"k":[]}}`, nil, ErrMalformed},
		{"no gzip", "\x1f\x8bxx", nil, ErrMalformed},
		{"payload not base64", `{"id":"a","rawPayload":"?"}`, nil, ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := DecodeRecord([]byte(tc.data))
			require.ErrorIs(t, err, tc.wantErr)
			require.Equal(t, tc.want, r)
		})
	}
}

func TestLargeRecordsAreCompressedOrRefused(t *testing.T) {
	t.Parallel()
	r := NewRecord("large")
	for i := range 20_000 {
		r.Map[strconv.Itoa(i)] = map[string]string{keyCurrentState: "ONLINE", keyInfo: "", keyStartTime: "1795991780876"}
	}
	data, err := r.Encode()
	require.NoError(t, err)
	require.Less(t, len(data), maxRecordBytes)
	again, err := DecodeRecord(data)
	require.NoError(t, err)
	require.True(t, r.Equal(again))
	_, err = DecodeRecord(data[:len(data)/2])
	require.ErrorIs(t, err, ErrMalformed)

	small := NewRecord("small")
	small.Simple[keyCompress] = "TRUE"
	data, err = small.Encode()
	require.NoError(t, err)
	require.Equal(t, []byte{0x1f, 0x8b}, data[:2])

	noise := rand.New(rand.NewPCG(1, 2))
	for i := range 30_000 {
		r.Simple[strconv.Itoa(i)] = strconv.FormatUint(noise.Uint64(), 36) + strconv.FormatUint(noise.Uint64(), 36) + strconv.FormatUint(noise.Uint64(), 36) +
			strconv.FormatUint(noise.Uint64(), 36)
	}
	_, err = r.Encode()
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestRecordsSurviveTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.String()
		r := &Record{
			ID:     rapid.StringN(1, 10, -1).Draw(t, "id"),
			Simple: rapid.MapOf(word, word).Draw(t, "simple"),
			List:   rapid.MapOf(word, rapid.SliceOf(word)).Draw(t, "list"),
			Map:    rapid.MapOf(word, rapid.MapOf(word, word)).Draw(t, "map"),
		}
		before := r.Clone()
		data, err := r.Encode()
		require.NoError(t, err)
		require.NotContains(t, string(data), "null,")
		again, err := DecodeRecord(data)
		require.NoError(t, err)
		require.True(t, r.Equal(again), "%s", data)
		require.True(t, r.Equal(before), "encoding changes nothing")
		var generic struct {
			Simple map[string]string `json:"simpleFields"`
		}
		require.NoError(t, json.Unmarshal(data, &generic), "another decoder")
		if r.Simple[keyCompress] == "" {
			require.True(t, maps.Equal(generic.Simple, r.Simple))
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(compress(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRecord(data)
		if err != nil {
			require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrEmpty), err)
			return
		}
		parseMessage("name", r).faults()
		parseInstance("name", r)
		if r.ID == "" {
			return
		}
		again, err := r.Encode()
		if errors.Is(err, ErrTooLarge) {
			return
		}
		require.NoError(t, err)
		back, err := DecodeRecord(again)
		require.NoError(t, err)
		if !bytes.ContainsRune(data, '\uFFFD') && bytes.Equal([]byte(strings.ToValidUTF8(string(data), "")), data) {
			require.True(t, r.Equal(back))
		}
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		address string
		servers []string
		chroot  string
		wantErr string
	}{
		{"zk1:2181,zk2:2182/a/b", []string{"zk1:2181", "zk2:2182"}, "/a/b", ""},
		{"zk1, zk2/", []string{"zk1:2181", "zk2:2181"}, "", ""},
		{"[::1]:2181", []string{"[::1]:2181"}, "", ""},
		{"[::1]", []string{"[::1]:2181"}, "", ""},
		{"", nil, "", `zookeeper: "": must be host:port, several with commas between, and at most one path at the end`},
		{"zk1:2181/a//b", nil, "", `zookeeper: "zk1:2181/a//b": the path must consist of names`},
		{"zk1:2181,,zk2", nil, "", `zookeeper: "zk1:2181,,zk2": must be host:port, several with commas between, and at most one path at the end`},
	} {
		servers, chroot, err := parseAddress(tc.address)
		if tc.wantErr != "" {
			require.EqualError(t, err, tc.wantErr)
			continue
		}
		require.NoError(t, err, tc.address)
		require.Equal(t, tc.servers, servers)
		require.Equal(t, tc.chroot, chroot)
	}
	cfg := ParticipantConfig{Config: Config{ZooKeeper: "zk", Cluster: "a/b"}, Instance: "", CommitDelay: time.Hour, TakeoverGrace: -1, RetryLeast: -1, RetryMost: -2}
	require.EqualError(t, cfg.Validate(), strings.Join([]string{
		`cluster: "a/b": must be the name of one znode`, `session_timeout: 0s: must be 1s to 10m`, `instance: "": must be the name of one znode`,
		`transition_concurrency: 0: must be at least 1`, `state_commit_delay: 1h0m0s: must be 0s to 1s`, `takeover_grace: -1ns: must not be negative`,
		`retry_least: -1ns: must be at least 1ms, or 0s for never`, `retry_most: -2ns: must be at least retry_least, which is -1ns`,
	}, "\n"))
	cfg = DefaultParticipantConfig()
	cfg.ZooKeeper, cfg.Cluster, cfg.Instance = "zk", "mirrors", "a_1"
	require.NoError(t, cfg.Validate())
}
