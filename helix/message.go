package helix

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is what one peer leaves for another in a MESSAGES folder. Only what state transitions need is here; a message of another type has its
// Type and little else.
type Message struct {
	ID            string // also the znode's name
	Type          string // STATE_TRANSITION…, upper case
	Status        string // MSG_STATE: new, read, unprocessable; lower case
	Source        string // who sent it
	SourceSession string // empty from administrators
	Target        string // the instance
	TargetSession string // * = any
	Resource      string
	// Partitions are the partitions that change: one, or those of a batch message.
	Partitions []string
	Batch      bool
	From, To   State
	StateModel string
	Factory    string // DEFAULT if absent
	Created    time.Time
	Timeout    time.Duration // 0 = none
	Expiry     time.Duration // 0 = never
}

// newMessageID is a random UUID (version 4): Java names messages so.
func newMessageID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newTransition completes a message that a controller or administrator sends; it says from whom, to whom, what and when.
func newTransition(m Message, partitions ...string) *Message {
	m.ID, m.Type, m.Status, m.StateModel, m.Factory = newMessageID(), msgTransition, msgNew, OnlineOffline, DefaultFactory
	m.Partitions, m.Batch = partitions, len(partitions) > 1
	return &m
}

// record has every field that some Java peer requires: without MSG_STATE or TGT_SESSION_ID a 0.6.8 participant's queue stands still.
func (m *Message) record() *Record {
	r := NewRecord(m.ID)
	maps.Copy(r.Simple, map[string]string{
		keyMsgID: m.ID, keyMsgType: m.Type, keyMsgState: m.Status, keyCreated: strconv.FormatInt(m.Created.UnixMilli(), 10),
		keySource: m.Source, keyTarget: m.Target, keyTargetSession: m.TargetSession,
	})
	if m.SourceSession != "" {
		r.Simple[keySourceSession] = m.SourceSession
	}
	if m.Type != msgTransition && m.Type != msgCancellation {
		return r
	}
	maps.Copy(r.Simple, map[string]string{
		keyResource: m.Resource, keyPartition: m.Partitions[0], keyFrom: string(m.From), keyTo: string(m.To), keyStateModel: m.StateModel,
		keyFactory: m.Factory,
	})
	if m.Batch {
		r.Simple[keyBatchMode] = configTrue
		r.List[keyPartition] = slices.Clone(m.Partitions)
	}
	if m.Timeout > 0 {
		r.Simple[keyTimeout] = strconv.FormatInt(m.Timeout.Milliseconds(), 10)
	}
	return r
}

// parseMessage reads what there is; what is missing stays empty. The znode's name counts, not the record's id.
func parseMessage(name string, r *Record) *Message {
	m := &Message{
		ID: name, Type: strings.ToUpper(r.Simple[keyMsgType]), Status: strings.ToLower(r.Simple[keyMsgState]),
		Source: r.Simple[keySource], SourceSession: r.Simple[keySourceSession], Target: r.Simple[keyTarget],
		TargetSession: r.Simple[keyTargetSession], Resource: r.Simple[keyResource], StateModel: r.Simple[keyStateModel],
		Factory: r.Simple[keyFactory], From: State(strings.ToUpper(r.Simple[keyFrom])), To: State(strings.ToUpper(r.Simple[keyTo])),
		Batch: r.flag(keyBatchMode) && len(r.List[keyPartition]) > 0, Timeout: millis(r.Simple[keyTimeout]), Expiry: millis(r.Simple[keyExpiryPeriod]),
	}
	if m.Factory == "" {
		m.Factory = DefaultFactory
	}
	if created, err := strconv.ParseInt(r.Simple[keyCreated], 10, 64); err == nil {
		m.Created = time.UnixMilli(created)
	}
	switch p := r.Simple[keyPartition]; {
	case m.Batch:
		m.Partitions = r.List[keyPartition]
	case p != "":
		m.Partitions = []string{p}
	}
	return m
}

// millis reads a duration in milliseconds; what is no positive number is none.
func millis(text string) time.Duration {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 || ms > int64(24*time.Hour/time.Millisecond)*365 {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// faults says what a state transition lacks or has in a form that can't be; nothing for one that is in order.
func (m *Message) faults() []string {
	var missing []string
	for key, value := range map[string]string{
		keyMsgState: m.Status, keyTarget: m.Target, keyResource: m.Resource, keyFrom: string(m.From), keyTo: string(m.To), keyStateModel: m.StateModel,
	} {
		if value == "" {
			missing = append(missing, key)
		}
	}
	if len(m.Partitions) == 0 {
		missing = append(missing, keyPartition)
	}
	if m.Resource != "" && checkName("resource", m.Resource) != nil { // it is part of paths
		missing = append(missing, keyResource)
	}
	slices.Sort(missing)
	return missing
}
