package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mirror/causeway/test/kafkatest"
)

const (
	kindController = "controller"
	kindWorker     = "worker"
	// crewServes is how long a crew may take after its start until everybody has a share.
	crewServes = 3 * time.Minute
)

// crew is a cluster of workers: its controllers and workers, each a process of its own, and the ZooKeeper that they meet in.
type crew struct {
	l         *lab
	zookeeper *kafkatest.ZooKeeper
	name      string // of the Helix cluster, and the group
	session   time.Duration
	handover  string // controller.rebalance.handover; empty: the default
	replicas  int    // workers of each partition of topic 0; 0: the default
	client    *http.Client
	starts    int // counts, for folders

	mu      sync.Mutex
	members map[string]*member // guarded by mu; by id
}

// member is one process.
type member struct {
	id, kind string
	memory   string // of a worker
	program  *kafkatest.Program
	base     string // of its API; empty until it is known
}

// newCrew has no members yet. It discovers topics that are called by its name and a number.
func (l *lab) newCrew(zookeeper *kafkatest.ZooKeeper, name string, session time.Duration) *crew {
	client := &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // to the leader that was
		Transport:     &http.Transport{},
	}
	return &crew{l: l, zookeeper: zookeeper, name: name, session: session, client: client, members: map[string]*member{}}
}

// topic is the name of a topic that is discovered.
func (c *crew) topic(number string) string { return c.name + "-" + number }

// file is a member's configuration. What it does not name is as it is by default.
func (c *crew) file(m *member) string {
	overrides, rebalance := "", ""
	if c.replicas > 0 {
		overrides = fmt.Sprintf(", overrides: {%q: {replicas: %d}}", c.topic("0"), c.replicas)
	}
	if c.handover != "" {
		rebalance = fmt.Sprintf(", rebalance: {handover: %s}", c.handover)
	}
	return fmt.Sprintf(`route:
  source: {name: src, bootstrap: [%s]}
  target: {name: dst, bootstrap: [%s]}
  topics: {include: [%q], rename: "{topic}%s"%[10]s}
worker: {id: %[5]s, memory: %[6]s}
controller: {id: %[5]s%[11]s}
coordination: {zookeeper: %[7]q, cluster: %[8]s, session_timeout: %[9]s}
offsets: {group: %[8]s}
server: {listen: "127.0.0.1:0"}
`, strings.Join(c.l.source.Bootstrap(), ", "), strings.Join(c.l.target.Bootstrap(), ", "), c.topic("[0-9]+"), copySuffix,
		m.id, m.memory, c.zookeeper.Addr(), c.name, c.session, overrides, rebalance)
}

// start starts a process, again after its end, and waits for nothing.
func (c *crew) start(kind, id, memory string) error {
	c.starts++
	m := &member{id: id, kind: kind, memory: memory}
	dir := filepath.Join(c.l.dir, c.name, strconv.Itoa(c.starts)+"-"+id)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create folder of %s: %w", id, err)
	}
	config := filepath.Join(dir, "causeway.yaml")
	if err := os.WriteFile(config, []byte(c.file(m)), 0o600); err != nil {
		return fmt.Errorf("write configuration of %s: %w", id, err)
	}
	var err error
	if m.program, err = launch(id, dir, c.l.program(kind), "--config", config); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[id] = m
	return nil
}

// usualMemory is the default of a worker.
const usualMemory = "256MiB"

// startAll starts controllers and workers at the same time.
func (c *crew) startAll(controllers, workers []string) error {
	var errs []error
	for _, id := range controllers {
		errs = append(errs, c.start(kindController, id, usualMemory))
	}
	for _, id := range workers {
		errs = append(errs, c.start(kindWorker, id, usualMemory))
	}
	return errors.Join(errs...)
}

// running lists the processes of a kind that live, by id.
func (c *crew) running(kind string) []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*member
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if m := c.members[id]; m.kind == kind && m.program.Running() {
			all = append(all, m)
		}
	}
	return all
}

func (c *crew) member(id string) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[id]
}

// spent is what each process has used so far: seconds of CPU by id, as text. It depends less on what else the machine does than times do.
func (c *crew) spent() string {
	var all []string
	for _, m := range append(c.running(kindController), c.running(kindWorker)...) {
		if u, err := usageOf(m.program.Pid()); err == nil { // else it has just ended
			all = append(all, fmt.Sprintf("%s %.1f", m.id, u.cpu))
		}
	}
	if u, err := usageOf(c.zookeeper.Pid()); err == nil {
		all = append(all, fmt.Sprintf("zookeeper %.1f in all", u.cpu))
	}
	return strings.Join(all, ", ")
}

// stopAll ends all processes with SIGTERM: controllers first, or they would move partitions from worker to worker, then all workers at once.
func (c *crew) stopAll() error {
	for _, kind := range []string{kindController, kindWorker} {
		var wg sync.WaitGroup
		members := c.running(kind)
		errs := make([]error, len(members))
		for i, m := range members {
			wg.Go(func() { errs[i] = m.program.Stop() })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// close kills what lives.
func (c *crew) close() error {
	var errs []error
	for _, kind := range []string{kindController, kindWorker} {
		for _, m := range c.running(kind) {
			errs = append(errs, m.program.Kill())
		}
	}
	c.client.CloseIdleConnections()
	return errors.Join(errs...)
}

var apiAddress = regexp.MustCompile(`api=(http://[^ ]+:[0-9]+)`)

// api is the address of a member's API, which its log tells.
func (c *crew) api(m *member) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.base != "" {
		return m.base, nil
	}
	if found := apiAddress.FindStringSubmatch(m.program.Log()); found != nil {
		m.base = found[1]
		return m.base, nil
	}
	if !m.program.Running() {
		return "", fmt.Errorf("%s ended by itself: %s", m.id, lastLine(m.program.Log()))
	}
	return "", fmt.Errorf("%s does not serve yet", m.id)
}

// request is a call of the API.
type request struct{ method, path, body string }

func get(path string) request { return request{method: http.MethodGet, path: path} }

// call asks a member and decodes the answer unless into is nil. The status is 0 if there is no answer.
func (c *crew) call(ctx context.Context, m *member, r request, into any) (status int, err error) {
	base, err := c.api(m)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, strings.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return resp.StatusCode, fmt.Errorf("%s %s %s: %d %s", m.id, r.method, r.path, resp.StatusCode, text)
	}
	if into == nil {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, json.Unmarshal(text, into)
}

// ask asks the controllers, one after the other until one answers. Those that stand by pass it on to the leader.
func (c *crew) ask(ctx context.Context, path string, into any) error {
	errs := []error{errors.New("no controller answers")}
	for _, m := range c.running(kindController) {
		_, err := c.call(ctx, m, get(path), into)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leader is the controller that leads, and one that stands by.
func (c *crew) leader(ctx context.Context) (leads, standsBy *member, err error) {
	var status struct {
		Leader string `json:"leader"`
	}
	if err := c.ask(ctx, "/api/v1/status", &status); err != nil {
		return nil, nil, err
	}
	for _, m := range c.running(kindController) {
		if m.id == status.Leader {
			leads = m
		} else {
			standsBy = m
		}
	}
	if leads == nil || standsBy == nil {
		return nil, nil, fmt.Errorf("leader is %q: not one of two", status.Leader)
	}
	return leads, standsBy, nil
}

// owners tells who has each partition of a topic ONLINE. Those that are on their way to another one are left out.
func (c *crew) owners(ctx context.Context, topic string) (map[int]string, error) {
	type assignment map[string]map[string]string // partition → worker → state
	var answer struct {
		Ideal assignment `json:"idealState"`
		View  assignment `json:"externalView"`
	}
	if err := c.ask(ctx, "/topics/"+topic, &answer); err != nil {
		return nil, err
	}
	owners := map[int]string{}
	for name, wanted := range answer.Ideal {
		partition, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("partition of %s: %w", topic, err)
		}
		for worker, state := range wanted {
			if state == "ONLINE" && maps.Equal(wanted, answer.View[name]) {
				owners[partition] = worker
			}
		}
	}
	return owners, nil
}

// online is how many partitions the leader knows to be ONLINE.
func (c *crew) online(ctx context.Context) (int, error) {
	var answer struct {
		Online int `json:"numOnlineTopicPartitions"`
	}
	err := c.ask(ctx, "/validation", &answer)
	return answer.Online, err
}

// mirroring is how many partitions the workers say they copy.
func (c *crew) mirroring(ctx context.Context) (int, error) {
	sum := 0
	for _, m := range c.running(kindWorker) {
		var status struct {
			Route struct {
				Partitions map[string]int `json:"partitions"`
			} `json:"route"`
		}
		if _, err := c.call(ctx, m, get("/api/v1/status"), &status); err != nil {
			return 0, err
		}
		sum += status.Route.Partitions["mirroring"]
	}
	return sum, nil
}

// reach waits until a count is what it is to be.
func reach(ctx context.Context, within time.Duration, wanted int, count func(context.Context) (int, error)) error {
	last := 0
	err := until(ctx, within, func() (bool, error) {
		var err error
		last, err = count(ctx)
		return last == wanted, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d partitions: %w", last, wanted, err)
	}
	return nil
}
