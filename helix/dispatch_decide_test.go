package helix

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// scene is a snapshot for tests, written as an operator would say it.
type scene struct{ *snapshot }

// newScene has live instances in sessions that are named after them.
func newScene(live ...string) scene {
	w := scene{newSnapshot()}
	for _, name := range live {
		w.setLive(name, &liveNode{session: "s-" + name, batches: true})
	}
	return w
}

// ideal assigns partitions: "0:a=ONLINE 1:b=ONLINE,c=ONLINE".
func (w scene) ideal(text string, fields ...string) scene {
	is := NewIdealState("t", 2, 1)
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		if is.Record.Simple[key] = value; value == "" {
			delete(is.Record.Simple, key)
		}
	}
	for word := range strings.FieldsSeq(text) {
		partition, replicas, _ := strings.Cut(word, ":")
		is.Record.Map[partition] = map[string]string{}
		for replica := range strings.SplitSeq(replicas, ",") {
			if instance, state, ok := strings.Cut(replica, "="); ok {
				is.Record.Map[partition][instance] = state
			}
		}
	}
	w.setIdeal("t", newIdeal(is.Record, 0))
	return w
}

// has says what an instance reports: "0=ONLINE 1=ERROR".
func (w scene) has(instance, text string) scene {
	h := &heldStates{states: map[string]State{}, factory: DefaultFactory}
	for word := range strings.FieldsSeq(text) {
		partition, state, _ := strings.Cut(word, "=")
		h.states[partition] = State(state)
	}
	w.setHeld("t", instance, h)
	return w
}

// config disables partitions of an instance, or with "*" the instance.
func (w scene) config(instance string, partitions ...string) scene {
	in := Instance{Name: instance, Enabled: !slices.Contains(partitions, "*"), Disabled: map[string][]string{"t": partitions}}
	w.setConfig(instance, newInstanceNode(instance, in.record()))
	return w
}

// sent puts a message into an instance's queue.
func (w scene) sent(instance, session string, from, to State, partitions ...string) scene {
	m := &Message{Type: msgTransition, Target: instance, TargetSession: session, Resource: "t", Partitions: partitions, From: from, To: to}
	w.setQueued(instance, fmt.Sprint("m", len(w.queues[instance])), m, false)
	return w
}

func (w scene) decided(overlap bool) []string {
	var lines []string
	for _, t := range w.decide("t", overlap) {
		line := fmt.Sprintf("%s %s %s>%s", t.instance, t.partition, t.from, t.to)
		if t.batch {
			line += " batch"
		}
		lines = append(lines, line)
	}
	return lines
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		world scene
		want  []string
	}{
		{"nothing", newScene("a"), nil},
		{"a new topic", newScene("a", "b").ideal("0:a=ONLINE 1:b=ONLINE"), []string{"a 0 OFFLINE>ONLINE", "b 1 OFFLINE>ONLINE"}},
		{"partitions are ordered as numbers", newScene("a").ideal("2:a=ONLINE 10:a=ONLINE"), []string{"a 2 OFFLINE>ONLINE", "a 10 OFFLINE>ONLINE"}},
		{"all is well", newScene("a").ideal("0:a=ONLINE").has("a", "0=ONLINE"), nil},
		{"who is not alive gets nothing", newScene("a").ideal("0:b=ONLINE"), nil},
		{"lower case in an ideal state", newScene("a").ideal("0:a=online"), []string{"a 0 OFFLINE>ONLINE"}},
		{"a blacklisted partition", newScene("a").ideal("0:a=OFFLINE").has("a", "0=ONLINE"), []string{"a 0 ONLINE>OFFLINE"}},
		{"a blacklisted partition that nobody had", newScene("a").ideal("0:a=OFFLINE"), nil},
		{"a partition that is to be dropped and never was there", newScene("a").ideal("0:a=DROPPED"), nil},
		{
			"a move: the old owner first", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE"), []string{"a 0 ONLINE>OFFLINE"},
		},
		{
			"a move: the old owner's message is still there",
			newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=OFFLINE").sent("a", "s-a", Online, Offline, "0"), nil,
		},
		{
			"a move: the old owner is OFFLINE", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=OFFLINE"),
			[]string{"a 0 OFFLINE>DROPPED", "b 0 OFFLINE>ONLINE"},
		},
		{
			"a move: the old owner is dead", newScene("b").ideal("0:b=ONLINE"), []string{"b 0 OFFLINE>ONLINE"},
		},
		{
			"a move: the old owner is in ERROR", newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ERROR"),
			[]string{"a 0 ERROR>DROPPED", "b 0 OFFLINE>ONLINE"},
		},
		{"whatever is underway must end", newScene("a").ideal("0:a=OFFLINE").has("a", "0=ONLINE").sent("a", "s-a", Offline, Online, "0"), nil},
		{
			"a message of a batch covers each of its partitions",
			newScene("a").ideal("0:a=ONLINE 1:a=ONLINE 2:a=ONLINE").sent("a", "s-a", Offline, Online, "0", "2"),
			[]string{"a 1 OFFLINE>ONLINE"},
		},
		{
			"messages of an earlier session do not count", newScene("a").ideal("0:a=ONLINE").sent("a", "old", Offline, Online, "0"),
			[]string{"a 0 OFFLINE>ONLINE"},
		},
		{"a resource that is gone", newScene("a").has("a", "0=ONLINE 1=OFFLINE 2=ERROR"), []string{
			"a 2 ERROR>DROPPED", "a 1 OFFLINE>DROPPED", "a 0 ONLINE>OFFLINE",
		}},
		{"a resource that is gone, on a disabled instance", newScene("a").has("a", "0=OFFLINE").config("a", "*"), []string{"a 0 OFFLINE>DROPPED"}},
		{"a disabled instance", newScene("a").ideal("0:a=ONLINE 1:a=ONLINE").has("a", "0=ONLINE").config("a", "*"), []string{"a 0 ONLINE>OFFLINE"}},
		{"a disabled instance's ERROR", newScene("a").ideal("0:a=ONLINE").has("a", "0=ERROR").config("a", "*"), nil},
		{"a disabled partition", newScene("a").ideal("0:a=ONLINE 1:a=ONLINE").has("a", "0=ONLINE 1=ONLINE").config("a", "1"), []string{"a 1 ONLINE>OFFLINE"}},
		{"what was taken away from a disabled instance stays OFFLINE", newScene("a").ideal("").has("a", "0=OFFLINE").config("a", "*"), nil},
		{"a disabled resource", newScene("a").ideal("0:a=ONLINE", "HELIX_ENABLED=false").has("a", "0=ONLINE"), []string{"a 0 ONLINE>OFFLINE"}},
		{"an ERROR stays until somebody resets it", newScene("a").ideal("0:a=ONLINE").has("a", "0=ERROR"), nil},
		{"an ERROR that is not assigned any more", newScene("a").ideal("").has("a", "0=ERROR"), []string{"a 0 ERROR>DROPPED"}},
		{
			"two replicas", newScene("a", "b").ideal("0:a=ONLINE,b=ONLINE", "REPLICAS=2"), []string{"a 0 OFFLINE>ONLINE", "b 0 OFFLINE>ONLINE"},
		},
		{"one replica of two that are assigned", newScene("a", "b").ideal("0:a=ONLINE,b=ONLINE"), []string{"a 0 OFFLINE>ONLINE"}},
		{"no replica", newScene("a").ideal("0:a=ONLINE", "REPLICAS=0"), nil},
		{"replicas not said: those of the first partition", newScene("a", "b").ideal("0:a=ONLINE,b=ONLINE 1:a=ONLINE", "REPLICAS="), []string{
			"a 0 OFFLINE>ONLINE", "a 1 OFFLINE>ONLINE", "b 0 OFFLINE>ONLINE",
		}},
		{"a replica for each live instance", newScene("a", "b").ideal("0:a=ONLINE,b=ONLINE", "REPLICAS=ANY_LIVEINSTANCE"), []string{
			"a 0 OFFLINE>ONLINE", "b 0 OFFLINE>ONLINE",
		}},
		{"another mode", newScene("a").ideal("0:a=ONLINE", "REBALANCE_MODE=SEMI_AUTO").has("a", "1=ONLINE"), nil},
		{"another model", newScene("a").ideal("0:a=ONLINE", "STATE_MODEL_DEF_REF=MasterSlave").has("a", "1=ONLINE"), nil},
		{
			"a federated partition", newScene("a").ideal("@src@dst@0:a=ONLINE"), []string{"a @src@dst@0 OFFLINE>ONLINE"},
		},
		{
			"batches, but never of drops", newScene("a").ideal("0:a=ONLINE 1:a=ONLINE", "BATCH_MESSAGE_MODE=true").has("a", "2=OFFLINE 3=OFFLINE 4=ONLINE 5=ONLINE"),
			[]string{
				"a 2 OFFLINE>DROPPED", "a 3 OFFLINE>DROPPED", "a 0 OFFLINE>ONLINE batch", "a 1 OFFLINE>ONLINE batch",
				"a 4 ONLINE>OFFLINE batch", "a 5 ONLINE>OFFLINE batch",
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, row.world.decided(false))
		})
	}
}

// TestDecideWithOverlap: the new owner does not wait for the old one.
func TestDecideWithOverlap(t *testing.T) {
	t.Parallel()
	w := newScene("a", "b").ideal("0:b=ONLINE").has("a", "0=ONLINE")
	require.Equal(t, []string{"a 0 ONLINE>OFFLINE", "b 0 OFFLINE>ONLINE"}, w.decided(true))
}

func TestBatchesNeedAVersionThatKnowsThem(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"0.6.8": true, "0.6.1": true, "helix-0.6.8": true, "1.4.3": true, "2.0.2-SNAPSHOT": true, "0.6.0": false, "0.5.28": false, "": false, "0.6": false,
		"0.7.x": true, "0.10.0": true,
	} {
		r := NewRecord("a")
		r.Simple[keyHelixVersion] = version
		require.Equal(t, want, newLive(r, Stat{Owner: "1"}).batches, version)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	w := newScene("a", "b").ideal("0:a=ONLINE 1:b=ONLINE").has("a", "0=ONLINE").has("b", "1=ERROR")
	v := w.view("t", nil)
	require.Equal(t, map[string]map[string]string{"0": {"a": "ONLINE"}, "1": {"b": "ERROR"}}, v.Map)
	require.Equal(t, map[string]string{
		"BUCKET_SIZE": "0", "IDEAL_STATE_MODE": "CUSTOMIZED", "MAX_PARTITIONS_PER_INSTANCE": "2", "NUM_PARTITIONS": "2",
		"REBALANCE_MODE": "CUSTOMIZED", "REPLICAS": "1", "STATE_MODEL_DEF_REF": "OnlineOffline", "STATE_MODEL_FACTORY_NAME": "DEFAULT",
	}, v.Simple)

	w.setLive("a", nil)
	require.Equal(t, map[string]map[string]string{"1": {"b": "ERROR"}}, w.view("t", v).Map, "only what lives")
	w.setIdeal("t", nil)
	require.Equal(t, v.Simple, w.view("t", v).Simple, "fields survive the ideal state")
	w.setHeld("t", "b", nil)
	require.Nil(t, w.view("t", v), "gone when nobody has anything of it")

	require.Nil(t, newScene("a").ideal("0:a=ONLINE", "EXTERNAL_VIEW_DISABLED=true").has("a", "0=ONLINE").view("t", nil))
	require.Empty(t, newScene().ideal("0:a=ONLINE").view("t", nil).Map, "a new resource has an empty one")
	require.Same(t, v, newScene().ideal("0:a=ONLINE", "REBALANCE_MODE=FULL_AUTO").view("t", v), "not ours")
}

func TestHopelessMessages(t *testing.T) {
	t.Parallel()
	w := newScene("a").has("a", "0=ONLINE 1=OFFLINE").sent("a", "s-a", Offline, Online, "0").sent("a", "s-a", Offline, Online, "0", "1").
		sent("a", "old", Offline, Online, "1").sent("a", "s-a", Offline, Online, "2").sent("b", "s-b", Online, Offline, "0")
	var got []bool
	for i := range 4 {
		got = append(got, w.hopeless("a", w.queues["a"][fmt.Sprint("m", i)]))
	}
	require.Equal(t, []bool{true, false, true, false}, got)
	require.False(t, w.hopeless("b", w.queues["b"]["m0"]), "a dead instance's queue is of no concern")
}

// TestOnlyWhatIsConcernedIsLookedAt: a change marks the resources that it concerns and no others.
func TestOnlyWhatIsConcernedIsLookedAt(t *testing.T) {
	t.Parallel()
	w := newScene("a", "b")
	for i := range 100 {
		is := NewIdealState(fmt.Sprint("t", i), 1, 1)
		is.Assign("0", map[bool]string{true: "a", false: "b"}[i < 3], Online)
		w.setIdeal(is.Resource(), newIdeal(is.Record, 0))
	}
	marked := func(change func()) int {
		clear(w.dirty)
		change()
		return len(w.dirty)
	}
	require.Equal(t, 1, marked(func() { w.setHeld("t5", "b", &heldStates{}) }))
	require.Equal(t, 3, marked(func() { w.setLive("a", nil) }))
	require.Equal(t, 0, marked(func() { w.setLive("c", &liveNode{session: "1"}) }))
	require.Equal(t, 97, marked(func() { w.setConfig("b", nil) }))
	require.Equal(t, 0, marked(func() { w.setLive("b", &liveNode{session: "s-b", batches: true}) }), "nothing new")
	w.setQueued("b", "m", &Message{Resource: "t7", Partitions: []string{"0"}}, false)
	require.Equal(t, 1, marked(func() { w.setQueued("b", "m", nil, true) }))
	require.Empty(t, w.pending)
}

// TestHandOverNeverHasTwoOwners plays a cluster: ideal states change, participants work off their queues in any order, report, die and come
// back; the snapshot sees their reports and their queues at different times. A partition is never ONLINE twice, and when nothing changes
// any more, everything is where it should be.
func TestHandOverNeverHasTwoOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPlay(rapid.IntRange(2, 4).Draw(t, "instances"), rapid.IntRange(1, 4).Draw(t, "partitions"))
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			p.step(rapid.IntRange(0, 9).Draw(t, "what"), rapid.IntRange(0, 1000).Draw(t, "which"), rapid.IntRange(0, 1000).Draw(t, "where"))
			require.Empty(t, p.twice())
		}
		for name := range p.members {
			p.revive(name)
		}
		for range 100 {
			p.observe(nil)
			p.decide()
			for name := range p.members {
				p.work(name, 0)
			}
			require.Empty(t, p.twice())
		}
		p.observe(nil)
		require.Empty(t, p.decide(), "it settles")
		for partition, replicas := range p.assigned {
			for name, state := range replicas {
				have, ok := p.members[name].real[partition]
				require.Equal(t, state, string(map[bool]State{true: have, false: Offline}[ok]))
			}
		}
		for name, m := range p.members {
			for partition := range m.real {
				require.Contains(t, p.assigned[partition], name, "what is not assigned is dropped")
			}
		}
	})
}

// play is a cluster of one resource in memory.
type play struct {
	world    scene
	members  map[string]*playMember
	assigned map[string]map[string]string
	names    []string
	ids      int
}

// playMember is a participant: what it really has, its queue, and its session.
type playMember struct {
	session int
	real    map[string]State
	queue   map[string]*Message
}

func newPlay(instances, partitions int) *play {
	p := &play{world: newScene(), members: map[string]*playMember{}, assigned: map[string]map[string]string{}}
	for i := range instances {
		name := fmt.Sprint("w", i)
		p.names = append(p.names, name)
		p.members[name] = &playMember{real: map[string]State{}, queue: map[string]*Message{}}
		p.revive(name)
	}
	for i := range partitions {
		p.assigned[strconv.Itoa(i)] = map[string]string{"w0": string(Online)}
	}
	p.observe(nil)
	return p
}

// revive begins a session: everything is OFFLINE in it.
func (p *play) revive(name string) {
	m := p.members[name]
	if m.session > 0 {
		return
	}
	p.ids++
	m.session = p.ids
	for partition := range m.real {
		m.real[partition] = Offline
	}
}

func (p *play) step(what, which, where int) {
	name, partition := p.names[which%len(p.names)], strconv.Itoa(where%len(p.assigned))
	switch what {
	case 0, 1:
		state := Online
		if which%7 == 0 {
			state = Offline
		}
		p.assigned[partition] = map[string]string{name: string(state)}
	case 2:
		if where%3 == 0 { // dies: what it had stops before its session is over
			p.members[name].session, p.members[name].real = 0, map[string]State{}
		} else {
			p.revive(name)
		}
	case 3, 4, 5:
		p.work(name, where)
	case 6, 7:
		p.observe(&name)
	default:
		p.decide()
	}
}

// work carries out one message and removes it.
func (p *play) work(name string, where int) {
	m := p.members[name]
	ids := slices.Sorted(maps.Keys(m.queue))
	if m.session == 0 || len(ids) == 0 {
		return
	}
	id := ids[where%len(ids)]
	message := m.queue[id]
	delete(m.queue, id)
	if message.TargetSession != strconv.Itoa(m.session) {
		return
	}
	for _, partition := range message.Partitions {
		current, ok := m.real[partition]
		if !ok {
			current = Offline
		}
		switch {
		case current != message.From:
		case message.To == Dropped:
			delete(m.real, partition)
		default:
			m.real[partition] = message.To
		}
	}
}

// observe brings the snapshot up to date: of one member only, or of everything.
func (p *play) observe(only *string) {
	for name, m := range p.members {
		if only != nil && *only != name {
			continue
		}
		if m.session == 0 {
			p.world.setLive(name, nil)
			continue
		}
		p.world.setLive(name, &liveNode{session: strconv.Itoa(m.session), batches: true})
		p.world.setHeld("t", name, &heldStates{states: maps.Clone(m.real), factory: DefaultFactory})
		for id := range p.world.queues[name] {
			if m.queue[id] == nil {
				p.world.setQueued(name, id, nil, true)
			}
		}
		for id, message := range m.queue {
			p.world.setQueued(name, id, message, false)
		}
	}
	if only == nil {
		is := NewIdealState("t", len(p.assigned), 1)
		maps.Copy(is.Record.Map, p.assigned)
		p.world.setIdeal("t", newIdeal(is.Record.Clone(), 0))
	}
}

// decide sends what the snapshot says.
func (p *play) decide() []transition {
	all := p.world.decide("t", false)
	for _, t := range all {
		p.ids++
		id := fmt.Sprintf("m%06d", p.ids)
		message := &Message{
			Type: msgTransition, Target: t.instance, TargetSession: t.session, Resource: "t", Partitions: []string{t.partition}, From: t.from, To: t.to,
		}
		p.members[t.instance].queue[id] = message
		p.world.setQueued(t.instance, id, message, false)
	}
	return all
}

// twice gives the partitions that are ONLINE at more than one member.
func (p *play) twice() []string {
	owners := map[string]int{}
	for _, m := range p.members {
		for partition, state := range m.real {
			if state == Online {
				owners[partition]++
			}
		}
	}
	var all []string
	for partition, n := range owners {
		if n > 1 {
			all = append(all, partition)
		}
	}
	return all
}
