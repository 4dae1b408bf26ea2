package main

import (
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

const (
	treeSession = 30 * time.Second
	// treeReads is how many reads are under way at once.
	treeReads = 32
	// burstEnds is how long ZooKeeper writes no position until the next one belongs to another commit.
	burstEnds = 500 * time.Millisecond
)

// tree reads the nodes of a Helix cluster and of the group of the same name.
type tree struct {
	conn *zk.Conn
	name string
}

func openTree(address, name string) (*tree, error) {
	conn, _, err := zk.Connect([]string{address}, treeSession, zk.WithLogger(silent{}))
	if err != nil {
		return nil, fmt.Errorf("connect to zookeeper: %w", err)
	}
	return &tree{conn: conn, name: name}, nil
}

func (t *tree) close() { t.conn.Close() }

// silent keeps the client from writing into the report: what fails is an error of the call.
type silent struct{}

func (silent) Printf(string, ...any) {}

// stamp is when a node was written last.
type stamp struct {
	zxid int64
	at   time.Time
}

// nodes are nodes by path.
type nodes map[string]stamp

// topics are those with an ideal state.
func (t *tree) topics() ([]string, error) {
	names, _, err := t.conn.Children("/" + t.name + "/IDEALSTATES")
	if err != nil {
		return nil, fmt.Errorf("list ideal states: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// states are the nodes of all topics: ideal states, external views, and current states of all workers.
func (t *tree) states() (nodes, error) {
	folders := []string{"/" + t.name + "/IDEALSTATES", "/" + t.name + "/EXTERNALVIEW"}
	instances := "/" + t.name + "/INSTANCES"
	workers, _, err := t.conn.Children(instances)
	if err != nil {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	for _, worker := range workers {
		at := path.Join(instances, worker, "CURRENTSTATES")
		sessions, _, err := t.conn.Children(at)
		if err != nil {
			return nil, fmt.Errorf("list sessions of %s: %w", worker, err)
		}
		for _, session := range sessions {
			folders = append(folders, path.Join(at, session))
		}
	}
	var paths []string
	for _, folder := range folders {
		names, _, err := t.conn.Children(folder)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", folder, err)
		}
		for _, name := range names {
			paths = append(paths, path.Join(folder, name))
		}
	}
	return t.stamps(paths)
}

// positions are the nodes of the positions of topics; those that are not there are left out.
func (t *tree) positions(topics []string) (nodes, error) {
	var paths []string
	for _, topic := range topics {
		for p := range crowdPartitions {
			paths = append(paths, fmt.Sprintf("/consumers/%s/offsets/%s/%d", t.name, topic, p))
		}
	}
	return t.stamps(paths)
}

func (t *tree) stamps(paths []string) (nodes, error) {
	read := make([]stamp, len(paths))
	var g errgroup.Group
	g.SetLimit(treeReads)
	for i, at := range paths {
		g.Go(func() error {
			there, stat, err := t.conn.Exists(at)
			if err != nil {
				return fmt.Errorf("look at %s: %w", at, err)
			}
			if there {
				read[i] = stamp{stat.Mzxid, time.UnixMilli(stat.Mtime)}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	found := nodes{}
	for i, s := range read {
		if s.zxid != 0 {
			found[paths[i]] = s
		}
	}
	return found, nil
}

// changedIn counts topics of which nodes were written or removed since.
func (n nodes) changedIn(later nodes) int {
	topics := map[string]bool{}
	for at, s := range n {
		if later[at].zxid != s.zxid {
			topics[path.Base(at)] = true
		}
	}
	return len(topics)
}

// behind counts nodes that were written since.
func (n nodes) behind(later nodes) int {
	count := 0
	for at, s := range later {
		if s.zxid > n[at].zxid {
			count++
		}
	}
	return count
}

// busy is how long it took to write the nodes: from the first to the last of those that were written without a pause, summed up.
func (n nodes) busy() time.Duration {
	var times []time.Time
	for _, s := range n {
		times = append(times, s.at)
	}
	slices.SortFunc(times, time.Time.Compare)
	sum := time.Duration(0)
	for i := 1; i < len(times); i++ {
		if gap := times[i].Sub(times[i-1]); gap < burstEnds {
			sum += gap
		}
	}
	return sum
}
