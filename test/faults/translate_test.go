package faults_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// translated is a source offset on the target, as the API gives it.
type translated struct {
	Topic        string `json:"topic"`
	TargetOffset int64  `json:"target_offset"`
	Exact        bool   `json:"exact"`
	Reason       string `json:"reason"`
}

// translate asks for translations, by a query.
func (m *mirrorer) translate(t *testing.T, query string) (all []translated) {
	t.Helper()
	var list struct {
		Items []translated `json:"items"`
	}
	code, body := get(t, m.api(t)+"/api/v1/offsets/translate?"+query)
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	return list.Items
}

// committed waits until the position of a topic's only partition is stored.
func (m *mirrorer) committed(t *testing.T, topic string, at int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		p := m.places(t, topic)
		return len(p) == 1 && p[0].Committed >= at
	}, 30*time.Second, 50*time.Millisecond, topic)
}

// TestOffsetsAreTranslated: a reader of the target that goes on at what an offset is translated to has every record from that offset on, and no earlier
// one where it is exact; also beside another writer, among aborted records, and for offsets of before a new epoch.
func TestOffsetsAreTranslated(t *testing.T) {
	t.Parallel()
	k := kafkatest.Shared(t, kafkatest.Kafka4)
	const plain, holed, group = "translated.plain", "translated.holed", "translated-readers"
	m := newMirrorer(t, "mirror", between(k.Bootstrap(), k.Bootstrap(), plain+","+holed, "--rename", "{topic}.copy", "--commit-interval", "300ms")...)
	k.CreateTopic(t, plain, 1, nil)
	k.CreateTopic(t, holed, 1, nil)
	load(t, k, plain, 0, 100)
	transact(t, k, holed, ranges([2]int{0, 50}), kgo.TryCommit)     // 0 to 49, and a marker
	transact(t, k, holed, ranges([2]int{1000, 1010}), kgo.TryAbort) // 51 to 60, and a marker
	transact(t, k, holed, ranges([2]int{50, 70}), kgo.TryCommit)    // 62 to 81, and a marker
	m.start(t)
	m.caughtUp(t, plain)
	load(t, k, plain+".copy", 5000, 7) // somebody else's
	load(t, k, plain, 100, 200)
	m.caughtUp(t, plain)
	m.caughtUp(t, holed)
	m.committed(t, plain, 300)
	m.committed(t, holed, 83)
	for topic, rows := range map[string]map[int64]int64{
		plain: {0: 0, 57: 57, 99: 99, 100: 107, 255: 262, 299: 306, 300: 307},
		holed: {0: 0, 49: 49, 50: 50, 55: 50, 62: 50, 80: 68, 82: 70, 83: 70},
	} {
		for at, want := range rows {
			got := m.translate(t, fmt.Sprintf("topic=%s&offset=%d", topic, at))
			require.Equal(t, []translated{{topic, want, true, ""}}, got, "%s at %d", topic, at)
		}
	}
	require.Equal(t, []translated{{plain, 307, false, ""}}, m.translate(t, "topic="+plain+"&offset=400"))

	var offsets kadm.Offsets
	offsets.AddOffset(plain, 0, 150, -1)
	offsets.AddOffset(holed, 0, 63, -1)
	require.NoError(t, kadm.NewClient(k.Client(t)).CommitAllOffsets(t.Context(), group, offsets))
	require.Equal(t, []translated{{holed, 51, true, ""}, {plain, 157, true, ""}}, m.translate(t, "group="+group))
	shown, err := exec.CommandContext(t.Context(), program, "offsets", "translate", "--group", group, "--api", m.api(t)).CombinedOutput()
	require.NoError(t, err, string(shown))
	require.Regexp(t, `translated\.plain-0 +150 +translated\.plain\.copy-0 +157 +exact\n`, string(shown))

	m.reset(t, plain, "250") // what follows is there twice, in a new epoch
	m.awaitEvent(t, "checkpoint_overridden", plain, 30*time.Second)
	m.caughtUp(t, plain)
	m.committed(t, plain, 300)
	require.EqualValues(t, 357, recordsOf(t, k, plain+".copy"))
	require.Equal(t, []translated{{plain, 337, true, ""}}, m.translate(t, "topic="+plain+"&offset=280"))
	require.Equal(t, []translated{{plain, 157, false, ""}}, m.translate(t, "topic="+plain+"&offset=150"))
	var before kadm.Offsets
	before.AddOffset(plain, 0, 20, -1)
	_, err = kadm.NewClient(k.Client(t)).DeleteRecords(t.Context(), before)
	require.NoError(t, err)
	require.Contains(t, m.translate(t, "topic="+plain+"&offset=5")[0].Reason, "its first offset is 20")
	m.stop(t)
}
