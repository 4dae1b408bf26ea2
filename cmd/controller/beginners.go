package main

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/api"
	"github.com/causeway-mirror/causeway/controller"
	"github.com/causeway-mirror/causeway/route"
)

const (
	beginEvery = 100 * time.Millisecond // how often a new owner is asked whether it has begun
	beginKept  = 10 * beginEvery        // how long it is asked after somebody wanted to know it last
)

// beginners finds out whether the new owners of partitions that move have begun. While nobody wants to know that of any, nobody is asked.
type beginners struct {
	directory directory
	client    *http.Client
	log       hclog.Logger
	kick      chan struct{}

	mu     sync.Mutex
	wanted map[beginner]time.Time // guarded by mu; who is asked about, with when somebody wanted to know it last
	begun  map[beginner]bool      // guarded by mu; of those
}

// beginner is a worker with a partition that is new to it.
type beginner struct {
	worker    string
	partition route.Partition
}

func newBeginners(d directory, client *http.Client, log hclog.Logger) *beginners {
	return &beginners{directory: d, client: client, log: log, kick: make(chan struct{}, 1), wanted: map[beginner]time.Time{}, begun: map[beginner]bool{}}
}

// Begun says whether a worker is known to mirror a partition, or to have a reason not to that waiting does not mend. It waits for nothing.
func (b *beginners) Begun(topic, partition, worker string) bool {
	n, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		return true // no partition of ours
	}
	who := beginner{worker, route.Partition{Topic: topic, Partition: int32(n)}}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.wanted[who]) > beginKept { // what it said when the partition came to it before says nothing of now
		delete(b.begun, who)
	}
	b.wanted[who] = now
	select {
	case b.kick <- struct{}{}:
	default:
	}
	return b.begun[who]
}

// run asks until ctx ends.
func (b *beginners) run(ctx context.Context) {
	tick := time.NewTicker(beginEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.kick:
		case <-ctx.Done():
			return
		}
		b.ask(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// ask asks each worker concerned about each topic concerned.
func (b *beginners) ask(ctx context.Context) {
	type question struct{ worker, topic string }
	questions := map[question]bool{}
	b.mu.Lock()
	for who, at := range b.wanted {
		if time.Since(at) > beginKept {
			delete(b.wanted, who)
			delete(b.begun, who)
		} else if !b.begun[who] {
			questions[question{who.worker, who.partition.Topic}] = true
		}
	}
	b.mu.Unlock()
	if len(questions) == 0 {
		return
	}
	addresses, err := b.directory.Workers(ctx)
	if err != nil {
		b.log.Debug("nobody knows where the workers are", "err", err)
		return
	}
	var asking sync.WaitGroup
	slots := make(chan struct{}, workersAtOnce)
	for q := range questions {
		at, known := addresses[q.worker]
		if !known {
			continue
		}
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b.askOne(ctx, q.worker, q.topic, at)
		})
	}
	asking.Wait()
}

func (b *beginners) askOne(ctx context.Context, worker, topic string, at controller.Whereabouts) {
	var list api.List[api.Partition]
	query := url.Values{"topic": {topic}, "limit": {strconv.Itoa(pageSize)}}
	header, err := getJSON(ctx, b.client, at.Address+"/api/v1/partitions?"+query.Encode(), &list)
	if err != nil {
		b.log.Debug("a worker can't be asked whether it has begun", "worker", worker, "err", err)
		return
	}
	if says := header.Get(api.SessionHeader); says != "" && says != at.Session {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range list.Items {
		p := &list.Items[i]
		switch p.State {
		case api.StateMirroring, api.StateHalted, api.StatePaused:
		default:
			continue
		}
		who := beginner{worker, route.Partition{Topic: p.Topic, Partition: p.Partition}}
		if _, asked := b.wanted[who]; asked {
			b.begun[who] = true
		}
	}
}
