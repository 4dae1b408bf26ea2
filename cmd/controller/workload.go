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
	Workers(ctx context.Context) (map[string]string, error)
}

// crew asks the workers what they do.
type crew struct {
	directory directory
	client    *http.Client
	last      atomic.Pointer[sight] // nil before the first look
}

// sight is what the workers said of their partitions.
type sight struct {
	at    time.Time
	parts map[route.Partition]api.Partition
	// excluded are the topics that workers don't copy although they have partitions of them, each with the reason.
	excluded map[string]string
}

// seen is what the workers said last; not to be changed.
func (c *crew) seen() map[route.Partition]api.Partition {
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

// look asks the workers, and keeps what they say.
func (c *crew) look(ctx context.Context) (map[route.Partition]api.Partition, error) {
	saw, err := c.ask(ctx)
	if err != nil {
		return nil, err
	}
	c.last.Store(saw)
	return saw.parts, nil
}

// ask asks all workers at once. One that does not answer is left out; an error means that none did though some should have.
func (c *crew) ask(ctx context.Context) (*sight, error) {
	addresses, err := c.directory.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu     sync.Mutex
		out    = &sight{at: time.Now(), parts: map[route.Partition]api.Partition{}, excluded: map[string]string{}}
		faults []error
		asking sync.WaitGroup
	)
	slots := make(chan struct{}, workersAtOnce)
	for id, address := range addresses {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			items, err := pages[api.Partition](ctx, c.client, address+"/api/v1/partitions")
			left, leftErr := pages[api.Excluded](ctx, c.client, address+"/api/v1/excluded-topics")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, fmt.Errorf("worker %s: %w", id, err))
			}
			for _, p := range items {
				out.parts[route.Partition{Topic: p.Topic, Partition: p.Partition}] = p
			}
			if leftErr == nil { // an older worker leaves out nothing
				for _, e := range left {
					out.excluded[e.Topic] = e.Reason
				}
			}
		})
	}
	asking.Wait()
	if len(faults) > 0 && len(faults) == len(addresses) {
		return nil, errors.Join(faults...)
	}
	return out, nil
}

// pages reads all pages of a worker's list.
func pages[T any](ctx context.Context, client *http.Client, address string) ([]T, error) {
	var all []T
	after := ""
	for {
		var page api.List[T]
		q := url.Values{"limit": {strconv.Itoa(pageSize)}, "after": {after}}
		if err := getJSON(ctx, client, address+"?"+q.Encode(), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Rates implements controller.Workload, from what was seen lately if it can.
func (c *crew) Rates(ctx context.Context) (map[route.Partition]controller.Rate, error) {
	parts := c.seen()
	if last := c.last.Load(); last == nil || time.Since(last.at) > fresh {
		var err error
		if parts, err = c.look(ctx); err != nil {
			return nil, err
		}
	}
	out := make(map[route.Partition]controller.Rate, len(parts))
	for p, is := range parts {
		out[p] = controller.Rate{Bytes: is.BytesPerSecond, Messages: is.RecordsPerSecond}
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
		if err := getJSON(ctx, c.client, "http://"+c.address+"/chaperone3/rawmetrics?"+q.Encode(), &answer); err != nil {
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
func getJSON(ctx context.Context, client *http.Client, address string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, resp.Status)
	}
	if err = json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}
