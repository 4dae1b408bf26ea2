package chaos_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// happening is an event as the API gives it.
type happening struct {
	ID          int64  `json:"id"`
	Type        string `json:"type"`
	Topic       string `json:"topic"`
	Partition   *int32 `json:"partition"`
	FirstOffset int64  `json:"first_offset"`
	LastOffset  int64  `json:"last_offset"`
}

// verdict fails the test unless the target holds what it must, once the feeds have ended and everything has caught up.
func (s *stage) verdict(t *testing.T) {
	t.Helper()
	for _, topic := range []string{plain, transacts} {
		d := kafkatest.Compare(t, s.source().Bootstrap(), s.target().Bootstrap(), topic, topic+".copy")
		t.Log(topic, d.String())
		if !d.Equal() || d.Records == 0 {
			t.Errorf("%s: the copy is not the source: %s", topic, d)
		}
	}
	var list struct {
		Items []happening `json:"items"`
	}
	require.NoError(t, ask(t.Context(), http.MethodGet, s.controllers[0].base+"/api/v1/events?limit=10000", "", &list))
	whole := s.logged(t)
	for _, e := range list.Items {
		if e.Type == "range_skipped" {
			whole.skipped = append(whole.skipped, e)
		}
	}
	whole.skipped = latest(whole.skipped)
	for _, topic := range []string{plain, purged, reborn} {
		copied := s.read(t, topic+".copy")
		records := 0
		for p := range int32(partitions) {
			records += len(copied[p])
			for _, fault := range whole.judge(topic, p, s.feeds[topic].ledger[p], copied[p]) {
				t.Errorf("%s-%d: %s", topic, p, fault)
			}
		}
		t.Logf("%s: %d records of %d lives on the target", topic, records, s.feeds[topic].life+1)
	}
	t.Logf("%d skipped ranges are told; %d times a partition spilled, %d times a disk was full", len(whole.skipped), whole.spilled, whole.full)
	for _, a := range s.actors() {
		t.Logf("%s had at most %d MiB", a.id, a.peak>>20)
	}
	for _, w := range s.workers {
		if w.peak > memory<<20*4/3 {
			t.Errorf("%s had %d MiB of memory", w.id, w.peak>>20)
		}
	}
}

// diary is what the mirror told.
type diary struct {
	skipped   []happening // of type range_skipped
	uncertain []happening // of type duplicates_possible
	reborn    []happening // of type topic_recreated

	spilled, full int // how many are of type spill_started and disk_full
}

// judge compares what a source partition was given with the numbers that the target has, and returns at most a few differences. A record may be
// missing where an event names its offset, and at the end of a life that is not the topic's last. An event may name one that is there if another
// tells that what was on its way is not known: a source that deletes what a killed owner had sent leaves nothing to find that out with.
func (d *diary) judge(topic string, p int32, given []entry, copied []int) (faults []string) {
	const few = 5
	place := make(map[int]int, len(given)) // of a number in given
	for i, e := range given {
		place[e.number] = i
	}
	there := make([]bool, len(given))
	last := -1
	for i, number := range copied {
		at, known := place[number]
		switch {
		case !known:
			faults = append(faults, fmt.Sprintf("target record %d has number %d, which the source never acknowledged", i, number))
		case there[at]:
			faults = append(faults, fmt.Sprintf("target record %d is a duplicate of number %d", i, number))
		case at < last:
			faults = append(faults, fmt.Sprintf("target record %d, number %d, stands behind number %d", i, number, given[last].number))
		case last >= 0 && given[at].life != given[last].life && !about(d.reborn, topic, p):
			faults = append(faults, fmt.Sprintf("nothing tells that the topic was made anew at number %d", number))
		}
		if known {
			there[at] = true
			last = max(last, at)
		}
		if len(faults) >= few {
			return faults
		}
	}
	for i, e := range given {
		told := covers(d.skipped, topic, p, e.offset)
		switch {
		case there[i] && told && !covers(d.uncertain, topic, p, e.offset):
			faults = append(faults, fmt.Sprintf("offset %d is said to be skipped and is there", e.offset))
		case !there[i] && !told && !deletedEnd(given, there, i):
			faults = append(faults, fmt.Sprintf("offset %d, number %d of life %d, is lost", e.offset, e.number, e.life))
		}
		if len(faults) >= few {
			return faults
		}
	}
	return faults
}

// latest leaves of events that name the end of one gap the one that was told last: where more of it turned out to be on the target, that says so.
func latest(all []happening) []happening {
	return slices.DeleteFunc(slices.Clone(all), func(e happening) bool {
		return slices.ContainsFunc(all, func(later happening) bool {
			return later.ID > e.ID && later.LastOffset == e.LastOffset && e.Partition != nil && about([]happening{later}, e.Topic, *e.Partition)
		})
	})
}

func about(all []happening, topic string, p int32) bool {
	return slices.ContainsFunc(all, func(e happening) bool { return e.Topic == topic && e.Partition != nil && *e.Partition == p })
}

// covers says whether one of the events is about an offset.
func covers(all []happening, topic string, p int32, offset int64) bool {
	return slices.ContainsFunc(all, func(e happening) bool {
		return about([]happening{e}, topic, p) && e.FirstOffset <= offset && offset <= e.LastOffset
	})
}

// deletedEnd says whether an entry belongs to the end of a life that was over before it was copied.
func deletedEnd(given []entry, there []bool, i int) bool {
	if given[i].life == given[len(given)-1].life {
		return false
	}
	for j := i + 1; j < len(given) && given[j].life == given[i].life; j++ {
		if there[j] {
			return false
		}
	}
	return true
}

var logged = regexp.MustCompile(`event: type=(\S+) .* topic=(\S+) partition=(\d+)(?: first_offset=(\d+) last_offset=(\d+))?`)

// logged reads the workers' logs for the events that are no errors: they are not kept over the end of a process anywhere else.
func (s *stage) logged(t *testing.T) (d diary) {
	t.Helper()
	for _, w := range s.workers {
		text, err := os.ReadFile(filepath.Join(w.Dir, "out.log"))
		require.NoError(t, err)
		for _, found := range logged.FindAllStringSubmatch(string(text), -1) {
			number := func(i int) int64 {
				n, _ := strconv.ParseInt(found[i], 10, 64) // digits, or nothing
				return n
			}
			p := int32(number(3))
			e := happening{Type: found[1], Topic: found[2], Partition: &p, FirstOffset: number(4), LastOffset: number(5)}
			switch e.Type {
			case "topic_recreated":
				d.reborn = append(d.reborn, e)
			case "duplicates_possible":
				d.uncertain = append(d.uncertain, e)
			case "spill_started":
				d.spilled++
			}
		}
		d.full += strings.Count(string(text), "event: type=disk_full ") // is about a worker, not about a partition
	}
	return d
}

// read returns the numbers of all records of a target topic by partition, in order.
func (s *stage) read(t *testing.T, topic string) map[int32][]int {
	t.Helper()
	cl := s.target().Client(t, kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	require.NoError(t, ends.Error())
	left := 0
	ends.Each(func(o kadm.ListedOffset) { left += int(o.Offset) })
	out := map[int32][]int{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%s: %d records do not come", topic, left)
		fetches.EachRecord(func(r *kgo.Record) {
			number, err := strconv.Atoi(string(r.Value[:12]))
			require.NoError(t, err)
			out[r.Partition] = append(out[r.Partition], number)
			left--
		})
	}
	return out
}

// TestVerdictSeesEachFault: a copy of one partition, given one and two lives of three records each, in each way in which it may be wrong.
func TestVerdictSeesEachFault(t *testing.T) {
	zero := int32(0)
	of := func(first, last int64) []happening {
		return []happening{{Topic: purged, Partition: &zero, FirstOffset: first, LastOffset: last}}
	}
	one := []entry{{0, 10, 0}, {1, 11, 0}, {2, 12, 0}}
	two := append(slices.Clone(one), entry{0, 20, 1}, entry{1, 21, 1}, entry{2, 22, 1})
	for name, c := range map[string]struct {
		given  []entry
		copied []int
		told   diary
		want   string // of the only fault; empty: there is none
	}{
		"whole":             {one, []int{10, 11, 12}, diary{}, ""},
		"lost":              {one, []int{10, 12}, diary{}, "offset 1, number 11 of life 0, is lost"},
		"lost at the end":   {one, []int{10, 11}, diary{}, "offset 2, number 12 of life 0, is lost"},
		"twice":             {one, []int{10, 11, 11, 12}, diary{}, "target record 2 is a duplicate of number 11"},
		"disordered":        {one, []int{10, 12, 11}, diary{}, "target record 2, number 11, stands behind number 12"},
		"foreign":           {one, []int{10, 11, 12, 99}, diary{}, "target record 3 has number 99, which the source never acknowledged"},
		"told":              {one, []int{10, 12}, diary{skipped: of(1, 1)}, ""},
		"told too much":     {one, []int{10, 11}, diary{skipped: of(1, 2)}, "offset 1 is said to be skipped and is there"},
		"told with a doubt": {one, []int{10, 11}, diary{skipped: of(1, 2), uncertain: of(1, 2)}, ""},
		"anew":              {two, []int{10, 11, 20, 21, 22}, diary{reborn: of(0, 0)}, ""},
		"anew, untold":      {two, []int{10, 20, 21, 22}, diary{}, "nothing tells that the topic was made anew at number 20"},
		"anew, with a hole": {two, []int{10, 12, 20, 21, 22}, diary{reborn: of(0, 0)}, "offset 1, number 11 of life 0, is lost"},
		"anew, not to end":  {two, []int{10, 20, 21}, diary{reborn: of(0, 0)}, "offset 2, number 22 of life 1, is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			require.Equal(t, want, c.told.judge(purged, 0, c.given, c.copied))
		})
	}
}
