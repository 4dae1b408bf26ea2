package peers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

// purged is C6: of 1,000 records 100 were copied, and the source deletes those up to 600 while the mirror is away.
func purged(t *testing.T, s *site) {
	t.Helper()
	s.create(t, 1, nil, "t")
	s.produce(t, "t", 0, 100)
	s.start(t)
	require.True(t, s.settle(t, "t", 100))
	s.stop(t)
	s.produce(t, "t", 100, 900)
	deleted, err := kadm.NewClient(s.source.Client(t)).DeleteRecords(t.Context(), kadm.Offsets{s.topic("t"): {0: {Topic: s.topic("t"), At: 600}}})
	require.NoError(t, err)
	require.NoError(t, deleted.Error())
	s.start(t)
	s.must(s.settle(t, "t", 500), "what is left at the source does not arrive")
	want := texts([][]*kgo.Record{append(s.records(0, 100), s.records(600, 400)...)}, true)
	s.weigh(t, "t", want, true)
	if s.kind == causeway {
		s.Event = s.event(t, "source_truncated", s.topic("t"))
		s.must(s.event(t, "range_skipped", s.topic("t")) != "", "no event about what was skipped")
	} else {
		s.Event = s.told(`(?i)(?:offset|position).*out of range.*` + s.topic("t") + `|` + s.topic("t") + `-0.*out of range`)
	}
	s.must(s.Event != "", "nothing tells of the 500 records")
	_, partitions := s.api(t, "/api/v1/partitions?limit=1000")
	tasks := ""
	if s.kind == mirrorMaker {
		tasks = s.tasks(t)
		s.note("tasks by JMX: %s", tasks)
	}
	s.must(strings.Contains(partitions, "offsets 100 to 599 were skipped") || strings.Contains(tasks, "failed"), "the state does not show it")
}

// recreated is C14: a topic is deleted and made anew while the mirror is away, shorter or longer than it was.
func recreated(t *testing.T, s *site) {
	t.Helper()
	fresh := map[string]int{"short": 200, "long": 800}
	s.create(t, 1, nil, "short", "long")
	for topic := range fresh {
		s.produce(t, topic, 0, 500)
	}
	s.start(t)
	for topic := range fresh {
		require.True(t, s.settle(t, topic, 500))
	}
	s.stop(t)
	for topic, n := range fresh {
		s.source.Remake(t, s.topic(topic), 1)
		s.produce(t, topic, 1000, n)
	}
	s.start(t)
	events := map[string]string{}
	for topic, n := range fresh {
		s.settle(t, topic, int64(500+n))
		before := s.Tally
		s.weigh(t, topic, texts([][]*kgo.Record{append(s.records(0, 500), s.records(1000, n)...)}, true), true)
		if lost := s.Tally.Loss - before.Loss; lost > 0 {
			s.note("made anew with %d records: %d of them lost", n, lost)
		}
		event := s.event(t, "topic_recreated", s.topic(topic))
		if s.kind == mirrorMaker {
			event = s.told(`(?i)` + s.topic(topic) + `\b.*(?:recreated|topic id|out of range)|(?:topic id|out of range).*` + s.topic(topic))
		}
		s.must(event != "", "nothing tells of the topic with %d records", n)
		events[topic] = event
	}
	if s.Event = events["long"]; s.Event == "" {
		s.note("of the topic with 200 records: %s", events["short"])
	}
	if s.kind == mirrorMaker {
		s.note("tasks by JMX: %s", s.tasks(t))
	}
}

// grown is C16: partitions are added under load. Besides, target topics that have more partitions, and fewer.
func grown(t *testing.T, s *site) {
	t.Helper()
	s.NoEvent = true
	s.create(t, 2, nil, "t", "more")
	s.create(t, 4, nil, "fewer")
	s.target.CreateTopic(t, s.topic("more"), 4, nil)
	s.target.CreateTopic(t, s.topic("fewer"), 2, nil)
	s.produce(t, "more", 0, 1000)
	s.produce(t, "fewer", 0, 1000)
	s.produce(t, "t", 0, 1000)
	s.start(t)
	require.True(t, s.settle(t, "t", 1000))
	admin := kadm.NewClient(s.source.Client(t))
	_, err := admin.CreatePartitions(t.Context(), 4, s.topic("t"))
	require.NoError(t, err)
	began := time.Now()
	target := kadm.NewClient(s.target.Client(t))
	for n := range 20 { // keyed: the client learns of the new partitions when it is made anew
		s.produce(t, "t", 1000+100*n, 100)
		pass(t, often)
	}
	soon := within(t, 30*time.Second, func() bool {
		topics, err := target.ListTopics(t.Context(), s.topic("t"))
		require.NoError(t, err)
		return len(topics[s.topic("t")].Partitions) == 6
	})
	took := time.Since(began)
	s.must(soon && took <= 10*time.Second, "the target has 6 partitions only after %.0f s", took.Seconds())
	s.settle(t, "t", 3000)
	s.equal(t, "t")
	source := kafkatest.Records(t, s.source.Bootstrap(), s.topic("t"))
	require.Len(t, source, 6)
	require.NotEmpty(t, source[5], "no record in a new partition")
	for _, topic := range []string{"more", "fewer"} { // another number on the target: partition by partition all the same
		s.settle(t, topic, 1000)
		s.equal(t, topic)
	}
}
