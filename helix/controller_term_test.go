package helix

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// offlineTerm is a term without ZooKeeper: what it reads is given to apply.
func offlineTerm() *Term {
	cfg := DefaultControllerConfig()
	cfg.Cluster, cfg.Name = "C", "ctrl"
	c := NewController(cfg, ControllerDeps{Log: hclog.NewNullLogger(), Registerer: newRegistry()})
	return newTerm(c, nil, Guard{})
}

// found is what reading a record gives; its node is of the session that it names.
func found(path string, r *Record) reading {
	return reading{point: point{path: path}, exists: true, record: r, stat: Stat{Owner: r.Simple[keySessionID]}}
}

// listed is what reading a folder gives.
func listed(path string, names ...string) reading {
	return reading{point: point{path: path, folder: true}, exists: true, names: names}
}

func liveRecord(name, session string) *Record {
	r := NewRecord(name)
	r.Simple[keySessionID] = session
	return r
}

// TestAMessageThatWentHasItsStateReadAgain: when a message is gone, the state that was read before it may be older than the message's end. Taken
// for true, it would give a partition that has just gone ONLINE a second owner.
func TestAMessageThatWentHasItsStateReadAgain(t *testing.T) {
	t.Parallel()
	term := offlineTerm()
	require.Equal(t, []point{{"/C/LIVEINSTANCES/a", false}}, term.apply([]reading{listed("/C/LIVEINSTANCES", "a")}))
	require.Equal(t, []point{{"/C/INSTANCES/a/CURRENTSTATES/1f", true}, {"/C/INSTANCES/a/MESSAGES", true}},
		term.apply([]reading{found("/C/LIVEINSTANCES/a", liveRecord("a", "1f"))}))
	m := newTransition(Message{Target: "a", TargetSession: "1f", Resource: "topic", From: Offline, To: Online}, "0")
	term.dispatch.note([]*Message{m}, nil)
	require.Empty(t, term.apply([]reading{listed("/C/INSTANCES/a/MESSAGES", m.ID)}), "our own are not read")
	require.Equal(t, []point{{"/C/INSTANCES/a/CURRENTSTATES/1f/topic", false}}, term.apply([]reading{listed("/C/INSTANCES/a/MESSAGES")}))
}

// TestSessionThatIsOver: what is still read of an instance's last session does not count.
func TestSessionThatIsOver(t *testing.T) {
	t.Parallel()
	term := offlineTerm()
	states := func(session string) *Record {
		r := NewRecord("topic")
		r.Simple[keySessionID], r.Simple[keyStateModel] = session, OnlineOffline
		r.Map["0"] = map[string]string{keyCurrentState: string(Online)}
		return r
	}
	term.apply([]reading{found("/C/LIVEINSTANCES/a", liveRecord("a", "1")), found("/C/INSTANCES/a/CURRENTSTATES/1/topic", states("1"))})
	require.Equal(t, []string{"topic"}, term.Resources())
	term.apply([]reading{found("/C/LIVEINSTANCES/a", liveRecord("a", "2"))})
	require.Empty(t, term.Resources())
	term.apply([]reading{found("/C/INSTANCES/a/CURRENTSTATES/1/topic", states("1")), found("/C/INSTANCES/a/CURRENTSTATES/2/topic", states("1"))})
	require.Empty(t, term.Resources())
	term.apply([]reading{found("/C/INSTANCES/a/CURRENTSTATES/2/topic", states("2"))})
	require.Equal(t, []string{"topic"}, term.Resources())
}

// TestAnythingMayBeRead: whatever stands in the znodes, nothing panics, and what is sent is complete.
func TestAnythingMayBeRead(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{
		"", "a", "b", "topic", "0", "1", "ONLINE", "offline", "ERROR", "DROPPED", "NOPE", "true", "-1", "99999999999999999999", OnlineOffline,
		modeCustomized, msgTransition, "1f", anySession, "é\x00", keyCurrentState, "0,1", "x/y",
	})
	keys := rapid.SampledFrom([]string{
		keySessionID, keyStateModel, keyStateModelRef, keyRebalanceMode, keyReplicas, keyEnabled, keyDisabledPartition, keyBatchMode, keyMsgType, keyTarget,
		keyTargetSession, keyResource, keyPartition, keyFrom, keyTo, keyHelixVersion, keyFactory, keyExternalViewOff, "OFFLINE-ONLINE_TIMEOUT", "0", "1",
	})
	maps := rapid.MapOfN(keys, words, 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		term := offlineTerm()
		for range rapid.IntRange(1, 40).Draw(t, "readings") {
			instance, resource := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "instance"), rapid.SampledFrom([]string{"topic", "t2"}).Draw(t, "resource")
			path := rapid.SampledFrom([]string{
				"/C/LIVEINSTANCES/" + instance, "/C/CONFIGS/PARTICIPANT/" + instance, "/C/IDEALSTATES/" + resource, "/C/EXTERNALVIEW/" + resource,
				"/C/INSTANCES/" + instance + "/CURRENTSTATES/1f/" + resource, "/C/INSTANCES/" + instance + "/MESSAGES/m1", "/C/CONTROLLER/PAUSE",
				"/C/CONTROLLER/MESSAGES/m2", "/C/CONTROLLER/MAINTENANCE",
			}).Draw(t, "path")
			r := found(path, &Record{
				ID: words.Draw(t, "id"), Simple: maps.Draw(t, "simple"), List: rapid.MapOfN(keys, rapid.SliceOfN(words, 0, 3), 0, 3).Draw(t, "list"),
				Map: rapid.MapOfN(keys, maps, 0, 3).Draw(t, "map"),
			})
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				r.record = nil
			case 1:
				r.record, r.exists = nil, false
			case 2:
				p := r.parent()
				if p.path == "/C/CONTROLLER" {
					continue
				}
				r = listed(p.path, path[strings.LastIndexByte(path, '/')+1:])
			}
			term.apply([]reading{r})
		}
		for _, resource := range append(term.snap.resources(), "unknown") {
			for _, m := range term.dispatch.compose(term.snap.decide(resource, false)) {
				require.Empty(t, m.faults())
				data, err := m.record().Encode()
				require.NoError(t, err)
				require.True(t, json.Valid(data))
			}
			if view := term.snap.view(resource, term.views.written[resource]); view != nil {
				_, err := view.Encode()
				if view.ID != "" {
					require.NoError(t, err)
				}
			}
			term.Resource(resource)
		}
		for instance, queue := range term.snap.queues {
			for _, m := range queue {
				if m != nil {
					term.snap.hopeless(instance, m)
				}
			}
		}
		require.NotEmpty(t, fmt.Sprint(term.Instances()))
	})
}
