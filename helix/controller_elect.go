package helix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"time"
)

// keyEpoch counts the elections that a Causeway controller won. Its znode's version is what the leader's writes are checked with.
const (
	keyEpoch       = "EPOCH"
	keyLeader      = "LEADER"
	mostHistory    = 10
	epochFolder    = "causeway"
	epochNode      = "epoch"
	historyDate    = "2006-01-02-15:04:05"
	restandMinimum = 10 * time.Millisecond
)

// epochPath is the znode that every election sets.
func (c Cluster) epochPath() string { return c.Property(epochFolder, epochNode) }

// elect waits until this session holds the node LEADER. It looks time and again, and has one watch of LEADER at most.
func (c *Controller) elect(ctx context.Context, s *Session) (Guard, error) {
	changed, watched := make(chan struct{}, 1), false
	for {
		var notify Notify
		if !watched {
			notify = func(Event) { ring(changed) }
		}
		guard, won, err := c.stand(ctx, s, notify)
		if won {
			c.setLeader(c.cfg.Name)
			return guard, nil
		}
		if err != nil && !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrLost) && !errors.Is(err, ErrNotFound) {
			return Guard{}, err
		}
		wait := pollEvery
		if err != nil { // somebody else was faster at one node or the other, or nobody knows
			wait = restandMinimum
		} else {
			watched = true
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
			watched = false
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Guard{}, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// stand tries to become the leader: it sets the epoch and creates LEADER in one transaction, so that no write of an earlier leader passes
// from then on. If somebody leads, which is no error, notify is called when that may have changed.
func (c *Controller) stand(ctx context.Context, s *Session, notify Notify) (Guard, bool, error) {
	leader, stat, err := s.GetRecord(ctx, c.cfg.Cluster.leader(), notify)
	unreadable := errors.Is(err, ErrMalformed) || errors.Is(err, ErrEmpty)
	switch {
	case stat.Owner == "" && (err == nil || unreadable): // copied with the tree, or made by hand: it would never go
		c.deps.Log.Warn("node LEADER is of no session and is removed", "path", c.cfg.Cluster.leader())
		if err = s.deleteAround(ctx, c.cfg.Cluster.leader(), stat.Version); err == nil {
			err = ErrBadVersion
		}
		return Guard{}, false, err
	case err == nil && stat.Owner == s.ID() && leader.ID == c.cfg.Name:
		return c.guard(ctx, s)
	case err == nil:
		c.setLeader(leader.ID)
		return Guard{}, false, nil
	case unreadable: // it is somebody's all the same
		c.setLeader("")
		return Guard{}, false, nil
	case !errors.Is(err, ErrNotFound):
		return Guard{}, false, err
	}
	c.setLeader("")
	epoch, version, err := c.readEpoch(ctx, s)
	if err != nil {
		return Guard{}, false, err
	}
	set, create, err := c.candidacy(s, epoch+1)
	if err != nil {
		return Guard{}, false, err
	}
	err = s.Multi(ctx, SetOp(c.cfg.Cluster.epochPath(), set, version), CreateEphemeralOp(c.cfg.Cluster.leader(), create))
	if errors.Is(err, ErrExists) { // looked at again, with a watch
		return Guard{}, false, ErrBadVersion
	}
	if err != nil {
		return Guard{}, false, err
	}
	return Guard{Path: c.cfg.Cluster.epochPath(), Version: version + 1}, true, nil
}

// candidacy gives the records of the epoch and of LEADER.
func (c *Controller) candidacy(s *Session, epoch int64) (set, create []byte, err error) {
	e := NewRecord(epochNode)
	e.Simple[keyEpoch], e.Simple[keyLeader] = strconv.FormatInt(epoch, 10), c.cfg.Name
	e.Simple[keySessionID] = s.ID()
	if set, err = e.Encode(); err != nil {
		return nil, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	l := NewRecord(c.cfg.Name)
	l.Simple[keySessionID], l.Simple[keyHelixVersion] = s.ID(), PublishedVersion
	l.Simple[keyLiveInstance] = fmt.Sprintf("%d@%s", os.Getpid(), host)
	create, err = l.Encode()
	return set, create, err
}

// guard is that of a term which this session has won already, for instance by a transaction whose answer was lost.
func (c *Controller) guard(ctx context.Context, s *Session) (Guard, bool, error) {
	record, stat, err := s.GetRecord(ctx, c.cfg.Cluster.epochPath(), nil)
	if err != nil {
		return Guard{}, false, err
	}
	if record.Simple[keySessionID] != s.ID() {
		return Guard{}, false, fmt.Errorf("%w: the epoch is of session %q", ErrRefused, record.Simple[keySessionID])
	}
	return Guard{Path: c.cfg.Cluster.epochPath(), Version: stat.Version}, true, nil
}

// readEpoch creates the epoch's znode if it is missing. One that can't be read begins at 0 again: it is the version that counts.
func (c *Controller) readEpoch(ctx context.Context, s *Session) (epoch int64, version int32, err error) {
	at := c.cfg.Cluster.epochPath()
	record, stat, err := s.GetRecord(ctx, at, nil)
	if errors.Is(err, ErrNotFound) {
		var empty []byte
		if empty, err = NewRecord(path.Base(at)).Encode(); err != nil {
			return 0, 0, err
		}
		if err = s.CreateAll(ctx, at, empty); err != nil && !errors.Is(err, ErrExists) {
			return 0, 0, err
		}
		record, stat, err = s.GetRecord(ctx, at, nil)
	}
	if errors.Is(err, ErrMalformed) || errors.Is(err, ErrEmpty) {
		return 0, stat.Version, nil
	}
	if err != nil {
		return 0, 0, err
	}
	epoch, err = strconv.ParseInt(record.Simple[keyEpoch], 10, 64)
	if err != nil {
		epoch = 0
	}
	return epoch, stat.Version, nil
}

// install writes what every controller writes when it begins: its entry in the history, and the state model, whatever was there.
func (t *Term) install(ctx context.Context) error {
	name, now := t.c.cfg.Name, time.Now()
	cluster := string(t.c.cfg.Cluster)
	err := t.admin.update(ctx, updated{path: t.c.cfg.Cluster.controllerHistory(), id: keyHistory}, func(r *Record) error {
		entry := fmt.Sprintf("{DATE=%s, CONTROLLER=%s, TIME=%d}", now.Format(historyDate), name, now.UnixMilli())
		r.List[cluster] = newest(append(r.List[cluster], name))
		r.List[keyHistory] = newest(append(r.List[keyHistory], entry))
		return nil
	})
	if err != nil && !errors.Is(err, ErrMalformed) { // nobody needs it
		return err
	}
	model := stateModelRecord()
	write := func(r *Record) error {
		*r = *model.Clone()
		return nil
	}
	err = t.admin.update(ctx, updated{path: t.c.cfg.Cluster.stateModel(OnlineOffline), id: OnlineOffline}, write)
	if errors.Is(err, ErrMalformed) {
		var data []byte
		if data, err = model.Encode(); err == nil {
			err = t.admin.transact(ctx, SetOp(t.c.cfg.Cluster.stateModel(OnlineOffline), data, AnyVersion))
		}
	}
	return err
}

func newest(list []string) []string { return list[max(0, len(list)-mostHistory):] }
