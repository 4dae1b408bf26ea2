package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/route"
)

func (*Compat) getTopics(w http.ResponseWriter, call compatCall) {
	name := call.arg(0)
	if name == "" {
		topics := call.fleet.Topics()
		if len(topics) == 0 {
			compatText(w, http.StatusOK, "No topic is added in MirrorMaker Controller!")
			return
		}
		compatText(w, http.StatusOK, "Current serving topics: [%s]", strings.Join(topics, ", "))
		return
	}
	topic, ok := call.fleet.Topic(name)
	if !ok {
		compatText(w, http.StatusNotFound, "Failed to get ExternalView for topic: %s, it is not existed!", name)
		return
	}
	compatJSON(w, topicView(name, topic))
}

// topicView is a topic in the form of GET /topics/{t}.
func topicView(name string, topic FleetTopic) map[string]any {
	type states map[string]string
	servers, online := map[string]states{}, map[string]int{}
	for p, workers := range topic.External {
		for worker, state := range workers {
			if servers[worker] == nil {
				servers[worker] = states{}
				online[worker] = 0
			}
			servers[worker][strconv.Itoa(int(p))] = state
			if state == "ONLINE" {
				online[worker]++
			}
		}
	}
	return map[string]any{
		"topic": name, "idealState": present(topic.Ideal), "externalView": present(topic.External),
		"serverToPartitionMapping": servers, "serverToNumPartitionsMapping": online,
	}
}

// present makes a map that is not there an empty one, which JSON shows as {}.
func present(m map[int32]map[string]string) map[int32]map[string]string {
	if m == nil {
		return map[int32]map[string]string{}
	}
	return m
}

// topicBody is what a client asks for. A count may be a number or text.
type topicBody struct {
	topic      string
	partitions int32
}

// errNoBody: the call brought nothing.
var errNoBody = errors.New("the request has no body")

// parseTopic reads {"topic":…,"numPartitions":…}.
func parseTopic(r *http.Request) (topicBody, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return topicBody{}, fmt.Errorf("read the request: %w", err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		return topicBody{}, errNoBody
	}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err = decoder.Decode(&fields); err != nil {
		return topicBody{}, fmt.Errorf("the body is no JSON object: %w", err)
	}
	if err = alone(decoder); err != nil {
		return topicBody{}, err
	}
	for _, name := range []string{"topic", "numPartitions"} {
		if fields[name] == nil {
			return topicBody{}, fmt.Errorf("missing field: %s", name)
		}
	}
	n, err := strconv.ParseInt(fmt.Sprint(fields["numPartitions"]), 10, 32)
	if err != nil {
		return topicBody{}, fmt.Errorf("numPartitions: %v: must be a whole number", fields["numPartitions"])
	}
	return topicBody{topic: fmt.Sprint(fields["topic"]), partitions: int32(n)}, nil
}

// describe is how answers name what was done.
func describe(topic string, partitions int32) string {
	return fmt.Sprintf("{topic: %s, partition: %d, pipeline: null}", topic, partitions)
}

func (*Compat) postTopic(w http.ResponseWriter, call compatCall) {
	body, err := parseTopic(call.Request)
	switch {
	case errors.Is(err, errNoBody) && call.arg(0) != "":
		body.topic = call.arg(0)
		body.partitions, err = call.fleet.AddFromSource(call.Context(), body.topic)
	case err != nil:
		compatError(w, call.Request, http.StatusInternalServerError)
		return
	case body.partitions < 0:
		err = ErrInvalid
	default:
		err = call.fleet.Add(call.Context(), body.topic, body.partitions)
	}
	switch {
	case err == nil:
		compatText(w, http.StatusOK, "Successfully add new topic: %s", describe(body.topic, body.partitions))
	case errors.Is(err, ErrAbsent):
		const text = "Failed to add new topic: %s, it's not exsited in source kafka cluster!" //nolint:misspell // clients parse it as it is
		compatText(w, http.StatusBadRequest, text, body.topic)
	case errors.Is(err, ErrExists):
		compatText(w, http.StatusNotFound, "Failed to add new topic: %s, it is already existed!", body.topic)
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrNoSource):
		compatError(w, call.Request, http.StatusInternalServerError)
	default:
		compatFailed(w, err, "Failed to add new topic, with exception: %s", err)
	}
}

func (*Compat) putTopic(w http.ResponseWriter, call compatCall) {
	body, err := parseTopic(call.Request)
	if err == nil {
		err = call.fleet.Expand(call.Context(), body.topic, body.partitions)
	}
	switch {
	case err == nil:
		compatText(w, http.StatusOK, "Successfully expand topic: %s", describe(body.topic, body.partitions))
	case errors.Is(err, ErrNotFound):
		compatText(w, http.StatusNotFound, "Failed to expand topic, topic: %s is not existed!", body.topic)
	default:
		compatFailed(w, err, "Failed to expand topic, with exception: %s", err)
	}
}

func (*Compat) deleteTopic(w http.ResponseWriter, call compatCall) {
	name := call.arg(0)
	if name == "" {
		compatText(w, http.StatusNotFound, "Failed to delete not existed topic: null")
		return
	}
	switch err := call.fleet.Delete(call.Context(), name); {
	case err == nil:
		compatText(w, http.StatusOK, "Successfully finished delete topic: %s", name)
	case errors.Is(err, ErrNotFound):
		compatText(w, http.StatusNotFound, "Failed to delete not existed topic: %s", name)
	default:
		compatFailed(w, err, "Failed to delete topic: %s, with exception: %s", name, err)
	}
}

func (*Compat) getHealth(w http.ResponseWriter, call compatCall) {
	if call.fleet.Healthy() {
		compatText(w, http.StatusOK, "OK\n")
		return
	}
	compatText(w, http.StatusServiceUnavailable, "Unhealthy\n")
}

func (*Compat) getValidation(w http.ResponseWriter, call compatCall) {
	if call.arg(0) == "srcKafka" {
		d, err := call.fleet.Compare(call.Context())
		switch {
		case errors.Is(err, ErrNoSource):
			compatText(w, http.StatusOK, "SrcKafkaValidationManager is not been initialized!")
		case err != nil:
			compatFailed(w, err, "Failed to compare with the source kafka cluster, with exception: %s", err)
		default:
			compatJSON(w, map[string]any{
				"numMissingTopics": d.Missing, "numMismatchedTopics": len(d.Mismatched), "numMismatchedTopicPartitions": d.Partitions,
				"mismatchedTopicPartitions": d.Mismatched,
			})
		}
		return
	}
	v := call.fleet.Validation()
	compatJSON(w, map[string]any{
		"numTopics": v.Topics, "numTopicPartitions": v.Partitions, "numOnlineTopicPartitions": v.Online, "numOfflineTopicPartitions": v.Offline,
		"numErrorTopicPartitions": v.Error, "numErrorTopics": v.ErrorTopics, "IdealState": v.Ideal, "ExternalView": v.External,
	})
}

// lagBody is a partition's lag as /offset gives it.
func lagBody(l FleetLag) map[string]any {
	return map[string]any{
		"latestOffset": l.End, "commitOffset": l.Committed, "timeStamp": l.At.UnixMilli(), "lag": l.Records, "lagTime": int64(l.Time.Seconds()),
	}
}

func (*Compat) getOffset(w http.ResponseWriter, call compatCall) {
	if len(call.args) == 0 {
		all := map[string]any{}
		for _, name := range call.fleet.Topics() {
			topic, _ := call.fleet.Topic(name)
			for n := range topic.Partitions {
				p := route.Partition{Topic: name, Partition: n}
				if lag, ok := call.fleet.Lag(p); ok {
					all[p.String()] = lagBody(lag)
				}
			}
		}
		compatJSON(w, all)
		return
	}
	n, err := strconv.ParseInt(call.arg(1), 10, 32)
	if err != nil {
		compatError(w, call.Request, http.StatusInternalServerError)
		return
	}
	lag, ok := call.fleet.Lag(route.Partition{Topic: call.arg(0), Partition: int32(n)})
	if !ok {
		const text = "Failed to get offset for topic partition: %s:%d, with exception: it was not measured"
		compatText(w, http.StatusInternalServerError, text, call.arg(0), n)
		return
	}
	compatJSON(w, lagBody(lag))
}

func (*Compat) getNoProgress(w http.ResponseWriter, call compatCall) {
	still := call.fleet.Still()
	if len(still) == 0 {
		compatJSON(w, map[string]any{})
		return
	}
	var topics []map[string]any
	for _, p := range still {
		one := map[string]any{"topic": p.Topic, "partition": p.Partition}
		if topic, ok := call.fleet.Topic(p.Topic); ok {
			for worker := range topic.Ideal[p.Partition] {
				one["idealWorker"] = worker
			}
			for worker := range topic.External[p.Partition] {
				one["actualWorker"] = worker
			}
		}
		topics = append(topics, one)
	}
	compatJSON(w, map[string]any{"topics": topics})
}

func (*Compat) getBlacklist(w http.ResponseWriter, call compatCall) {
	list := []map[string]any{}
	for _, p := range call.fleet.Off() {
		list = append(list, map[string]any{"topic": p.Topic, "partition": p.Partition})
	}
	compatJSON(w, map[string]any{"blacklist": list})
}

func (*Compat) postBlacklist(w http.ResponseWriter, call compatCall) {
	q := call.URL.Query()
	topic, partition, opt := q.Get("topic"), q.Get("partition"), q.Get("opt")
	if topic == "" || partition == "" || opt == "" {
		compatText(w, http.StatusBadRequest, "Parameter topic, partition and opt are required.")
		return
	}
	n, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		compatText(w, http.StatusBadRequest, "Parameter partition should be Integer")
		return
	}
	off, state := opt == "blacklist", "OFFLINE"
	if !off {
		state = "ONLINE"
		if opt != "whitelist" {
			compatText(w, http.StatusBadRequest, "Invalid parameter opt")
			return
		}
	}
	switch err = call.fleet.TakeOff(call.Context(), route.Partition{Topic: topic, Partition: int32(n)}, off); {
	case err == nil:
		compatText(w, http.StatusOK, "OK")
	case errors.Is(err, ErrAlready):
		compatText(w, http.StatusBadRequest, "Topic %s, partition %d already set %s", topic, n, state)
	case errors.Is(err, ErrNotFound):
		compatText(w, http.StatusBadRequest, "Topic %s, partition %d not exists in current route.", topic, n)
	default:
		compatFailed(w, err, "%s", err)
	}
}
