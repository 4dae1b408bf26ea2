package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/route"
)

// Bounds of what is asked of workers and of the measuring service.
const (
	workerTimeout = 5 * time.Second
	mostAnswer    = 64 << 20
	workersAtOnce = 16
	pageSize      = 100_000       // the most that there is: a worker makes and sorts its whole list for each page
	fresh         = 2 * lookEvery // what was seen within it is not asked for again
	topicsAtOnce  = 100           // in one question to the measuring service
	windowBehind  = 10 * time.Minute
)

// directory knows where the workers' APIs are; controller.Helix is one.
type directory interface {
	Workers(ctx context.Context) (map[string]controller.Whereabouts, error)
}

// crew asks the workers what they do.
type crew struct {
	directory directory
	client    *http.Client
	log       hclog.Logger
	turns     chan struct{}         // holds one token while nobody looks
	last      atomic.Pointer[sight] // nil before the first look
}

func newCrew(d directory, client *http.Client, log hclog.Logger) *crew {
	c := &crew{directory: d, client: client, log: log, turns: make(chan struct{}, 1)}
	c.turns <- struct{}{}
	return c
}

// sight is what the workers said of their partitions. It is not changed; the next look makes another.
type sight struct {
	at       time.Time
	parts    map[route.Partition]reports
	answered map[string]time.Time // of the workers with an address: when each answered last; not of one that never did
	silent   map[string]time.Time // those of them that did not this time
	// excluded are the topics that workers don't copy although they have partitions of them, each with the reason.
	excluded map[string]string
	// spilled is what each worker has on disk; of one that is silent what it said last, since that is there still.
	spilled map[string][]route.Partition
}

// reports are what workers said of one partition: while it moves, two may have it.
type reports []api.Partition

// of is what a partition's owner said of it; else what the first of the others by name did.
func (r reports) of(owner string) api.Partition {
	var found api.Partition
	for i := range r {
		if r[i].Worker == owner {
			return r[i]
		}
		if i == 0 || r[i].Worker < found.Worker {
			found = r[i]
		}
	}
	return found
}

// seen is what the workers said last; not to be changed.
func (c *crew) seen() map[route.Partition]reports {
	if last := c.last.Load(); last != nil {
		return last.parts
	}
	return nil
}

// excluded are the topics that workers said last that they don't copy; not to be changed.
func (c *crew) excluded() map[string]string {
	if last := c.last.Load(); last != nil {
		return last.excluded
	}
	return nil
}

// Take implements controller.Pulse.
func (c *crew) Take(ctx context.Context) error {
	if _, err := c.look(ctx); ctx.Err() != nil || len(c.Silent()) == 0 {
		return err
	}
	return nil // also when none answered: that is known now
}

// Silent implements controller.Pulse. Workers whose API could not be reached from the beginning, or that have none, are not among them: of
// them it tells nothing.
func (c *crew) Silent() map[string]time.Time {
	if last := c.last.Load(); last != nil {
		return last.silent
	}
	return nil
}

// Spilled implements controller.Pulse; not to be changed.
func (c *crew) Spilled() map[string][]route.Partition {
	if last := c.last.Load(); last != nil {
		return last.spilled
	}
	return nil
}

// look asks all workers at once, and keeps what they say. Of one that does not answer nothing is kept, since it may be gone; an error means that
// none did though some should have, or that nobody knows where they are: then all stays as it was.
func (c *crew) look(ctx context.Context) (map[route.Partition]reports, error) {
	select {
	case <-c.turns:
		defer func() { c.turns <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	addresses, err := c.directory.Workers(ctx)
	if err != nil {
		return nil, err
	}
	now, faults := c.ask(ctx, addresses)
	if ctx.Err() != nil { // that is not the workers' fault
		return nil, ctx.Err()
	}
	c.tell(now)
	c.last.Store(now)
	if len(faults) > 0 && len(faults) == len(addresses) {
		return nil, errors.Join(faults...)
	}
	return now.parts, nil
}

// tell logs who has fallen silent and who speaks again.
func (c *crew) tell(now *sight) {
	before := c.Silent()
	for id, at := range now.silent {
		if before[id].IsZero() {
			c.log.Warn("a worker does not answer", "worker", id, "last", at)
		}
	}
	for id := range before {
		if _, asked := now.answered[id]; asked && now.silent[id].IsZero() {
			c.log.Info("a worker answers again", "worker", id)
		}
	}
}

// quietAfter is how long a worker has not answered when it is called silent: one answer that is late is no news.
const quietAfter = 2 * lookEvery

// quiet is for how long a worker has not answered, in whole seconds; 0 when that is not worth a word.
func (c *crew) quiet(id string) time.Duration {
	at, is := c.Silent()[id]
	if d := time.Since(at); is && d >= quietAfter {
		return d.Truncate(time.Second)
	}
	return 0
}

// ask asks workers at once and compares with what was seen last.
func (c *crew) ask(ctx context.Context, addresses map[string]controller.Whereabouts) (*sight, []error) {
	var (
		mu     sync.Mutex
		now    = &sight{parts: map[route.Partition]reports{}, answered: map[string]time.Time{}, silent: map[string]time.Time{}, excluded: map[string]string{}}
		before = map[string]time.Time{}
		kept   map[string][]route.Partition
		faults []error
		asking sync.WaitGroup
	)
	if last := c.last.Load(); last != nil {
		before, kept = last.answered, last.spilled
	}
	now.spilled = map[string][]route.Partition{}
	slots := make(chan struct{}, workersAtOnce)
	for id, at := range addresses {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			items, err := pages[api.Partition](ctx, c.client, at, "/api/v1/partitions")
			var left []api.Excluded
			if err == nil { // of one that does not answer nothing more is asked
				left, _ = pages[api.Excluded](ctx, c.client, at, "/api/v1/excluded-topics") // an older worker leaves out nothing
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				now.answered[id] = time.Now()
			} else {
				faults = append(faults, fmt.Errorf("worker %s: %w", id, err))
				if at, known := before[id]; known {
					now.answered[id], now.silent[id] = at, at
					now.spilled[id] = kept[id]
				}
			}
			for _, p := range items {
				at := route.Partition{Topic: p.Topic, Partition: p.Partition}
				now.parts[at] = append(now.parts[at], p)
				if p.SpilledBytes > 0 {
					now.spilled[id] = append(now.spilled[id], at)
				}
			}
			for _, e := range left {
				now.excluded[e.Topic] = e.Reason
			}
		})
	}
	asking.Wait()
	now.at = time.Now()
	return now, faults
}

// errSuccessor says that the process which answers is not the one that published the address: that was killed, and nobody has noticed yet.
var errSuccessor = errors.New("another process answers at its address")

// pages reads all pages of a worker's list.
func pages[T any](ctx context.Context, client *http.Client, at controller.Whereabouts, path string) ([]T, error) {
	var all []T
	after := ""
	for {
		var page api.List[T]
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {after}}
		header, err := getJSON(ctx, client, at.Address+path+"?"+q.Encode(), &page)
		if err != nil {
			return nil, err
		}
		if says := header.Get(api.SessionHeader); says != "" && says != at.Session { // an older worker does not say
			return nil, errSuccessor
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Rates implements controller.Workload, from what was seen lately if it can. Of a partition that moves it is what the faster worker does.
func (c *crew) Rates(ctx context.Context) (map[route.Partition]controller.Rate, error) {
	parts := c.seen()
	if last := c.last.Load(); last == nil || time.Since(last.at) > fresh {
		var err error
		if parts, err = c.look(ctx); err != nil {
			return nil, err
		}
	}
	out := make(map[route.Partition]controller.Rate, len(parts))
	for p, said := range parts {
		for i := range said {
			if rate := (controller.Rate{Bytes: said[i].BytesPerSecond, Messages: said[i].RecordsPerSecond}); rate.Bytes >= out[p].Bytes {
				out[p] = rate
			}
		}
	}
	return out, nil
}

// chaperone asks the measuring service that uReplicator knows: bytes and messages of topics in a time window.
type chaperone struct {
	address string // HOST:PORT
	tier    string // the source cluster as the service calls it
	client  *http.Client
	topics  func() map[string]int32 // with their partitions
}

// Rates implements controller.Workload. A topic's rate is spread evenly over its partitions.
func (c *chaperone) Rates(ctx context.Context) (map[route.Partition]controller.Rate, error) {
	type window struct {
		Start    int64   `json:"startTimeSec"`
		End      int64   `json:"endTimeSec"`
		Bytes    float64 `json:"totalBytes"`
		Messages float64 `json:"totalCount"`
	}
	topics := c.topics()
	out := map[route.Partition]controller.Rate{}
	end := time.Now().Add(-windowBehind).Truncate(windowBehind)
	for _, names := range chunks(topics, topicsAtOnce) {
		q := url.Values{
			"startSec": {strconv.FormatInt(end.Add(-windowBehind).Unix(), 10)}, "endSec": {strconv.FormatInt(end.Unix(), 10)},
			"tier": {c.tier}, "topicList": {names},
		}
		var answer map[string][]window
		if _, err := getJSON(ctx, c.client, "http://"+c.address+"/chaperone3/rawmetrics?"+q.Encode(), &answer); err != nil {
			return nil, fmt.Errorf("measuring service: %w", err)
		}
		for topic, windows := range answer {
			n := topics[topic]
			for _, w := range windows {
				seconds := float64(w.End - w.Start)
				if seconds <= 0 || n == 0 {
					continue
				}
				for p := range n {
					rate := controller.Rate{Bytes: w.Bytes / seconds / float64(n), Messages: w.Messages / seconds / float64(n)}
					at := route.Partition{Topic: topic, Partition: p}
					if rate.Bytes >= out[at].Bytes {
						out[at] = rate
					}
				}
			}
		}
	}
	return out, nil
}

// chunks joins names by commas, so many at a time.
func chunks(topics map[string]int32, size int) []string {
	var out []string
	n := 0
	for name := range topics {
		if n%size == 0 {
			out = append(out, name)
		} else {
			out[len(out)-1] += "," + name
		}
		n++
	}
	return out
}

// getJSON asks for an answer in JSON.
func getJSON(ctx context.Context, client *http.Client, address string, into any) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	if err = json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return resp.Header, nil
}
