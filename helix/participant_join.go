package helix

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"
)

// historyLength is how many joins an instance's history keeps, as newer Java participants do.
const historyLength = 20

// join makes the instance a member: its nodes, its own name, the states that an earlier session left, the live node.
func (t *tenure) join(ctx context.Context) error {
	if err := NewAdmin(t.session, t.cluster).CheckCluster(ctx); err != nil {
		return err
	}
	if err := t.setUp(ctx); err != nil {
		return err
	}
	if err := t.enter(ctx); err != nil {
		return err
	}
	t.forgetSessions(ctx)
	if err := t.recordHistory(ctx, time.Now(), true); err != nil {
		t.log.Debug("history not written", "err", err)
	}
	return nil
}

// setUp creates the instance's config and folders, if the cluster lets instances join by themselves.
func (t *tenure) setUp(ctx context.Context) error {
	folders := t.cluster.instanceFolders(t.instance)
	needed := append([]string{t.cluster.configParticipant(t.instance)}, folders[:requiredOfInstance]...)
	err := t.session.checkSetUp(ctx, "instance "+t.instance, needed)
	if !errors.Is(err, ErrNotSetUp) {
		if err == nil { // the others are not required by everybody
			err = t.createFolders(ctx, folders[requiredOfInstance:])
		}
		return err
	}
	config, _, configErr := t.session.GetRecord(ctx, t.cluster.configCluster(), nil)
	if configErr != nil && !errors.Is(configErr, ErrEmpty) && !errors.Is(configErr, ErrMalformed) {
		return configErr
	}
	if configErr != nil || !config.flag(keyAutoJoin) {
		return fmt.Errorf("%w, and the cluster does not allow instances to join by themselves (%s)", err, keyAutoJoin)
	}
	data, err := newInstance(t.instance).record().Encode()
	if err != nil {
		return err
	}
	if err := t.session.CreateAll(ctx, t.cluster.configParticipant(t.instance), data); err != nil && !errors.Is(err, ErrExists) {
		return err
	}
	return t.createFolders(ctx, folders)
}

func (t *tenure) createFolders(ctx context.Context, folders []string) error {
	for _, folder := range folders {
		if err := t.session.CreateAll(ctx, folder, nil); err != nil && !errors.Is(err, ErrExists) {
			return err
		}
	}
	return nil
}

// enter creates the live node and this session's current states, in one transaction where that is possible: so nobody sees the instance
// without its states, and of two processes with one name the second changes nothing.
func (t *tenure) enter(ctx context.Context) error {
	live := NewRecord(t.instance)
	live.Simple[keySessionID], live.Simple[keyHelixVersion], live.Simple[keyLiveInstance] = t.session.ID(), PublishedVersion, processName()
	data, err := live.Encode()
	if err != nil {
		return err
	}
	liveOp := CreateEphemeralOp(t.cluster.liveInstance(t.instance), data)
	for {
		if err := t.awaitName(ctx); err != nil {
			return err
		}
		ops, err := t.carryOver(ctx)
		if err != nil {
			return err
		}
		entered, obstructed, err := t.enterWhole(ctx, liveOp, ops)
		if obstructed {
			entered, err = t.enterFirst(ctx, liveOp, ops)
		}
		if entered || err != nil {
			return err
		}
	}
}

// enterWhole tries one transaction. It gives neither true if a rival was faster or nothing is known yet; obstructed says that it can't work:
// there are too many states, or something stands where they belong.
func (t *tenure) enterWhole(ctx context.Context, liveOp Op, ops []Op) (entered, obstructed bool, err error) {
	all := append(slices.Clone(ops), liveOp)
	if len(Chunks(all, len(all))) > 1 {
		return false, true, nil
	}
	err = t.session.Multi(ctx, all...)
	if err == nil {
		return true, false, nil
	}
	var failed *MultiError
	if errors.As(err, &failed) && failed.Index < len(ops) {
		return false, true, nil
	}
	if !errors.Is(err, ErrLost) && !errors.Is(err, ErrExists) {
		return false, false, err
	}
	entered, err = t.isMine(ctx)
	return entered, false, err
}

// enterFirst creates the live node before the current states, as Helix 0.6.8 does, when they don't fit into one transaction or something
// stands in its way. It gives false if a rival was faster.
func (t *tenure) enterFirst(ctx context.Context, liveOp Op, ops []Op) (bool, error) {
	if err := t.createFolders(ctx, t.cluster.instanceFolders(t.instance)); err != nil {
		return false, err
	}
	if err := t.session.Multi(ctx, liveOp); err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrLost) {
		return false, err
	}
	mine, err := t.isMine(ctx)
	if err != nil || !mine {
		return false, err
	}
	return true, t.apply(ctx, ops)
}

// processName is the form in which Java names a process.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return strconv.Itoa(os.Getpid()) + "@" + host
}

// isMine says whether the live node is this session's.
func (t *tenure) isMine(ctx context.Context) (bool, error) {
	found, stat, err := t.session.Exists(ctx, t.cluster.liveInstance(t.instance), nil)
	return found && stat.Owner == t.session.ID(), err
}

// awaitName waits until no other session holds the live node: that of this process's former self goes within its session timeout. If it
// stays, somebody is alive, and nothing of his is touched: *TakenError.
func (t *tenure) awaitName(ctx context.Context) error {
	began := time.Now()
	patience := t.session.Timeout() + t.p.cfg.TakeoverGrace
	tick := time.NewTicker(max(t.session.Timeout()/nameChecks, time.Millisecond))
	defer tick.Stop()
	links := t.session.Links()
	for over, last := false, began; ; {
		moved := make(chan struct{}, 1)
		data, stat, err := t.holder(ctx, func(Event) { ring(moved) })
		if errors.Is(err, ErrNotFound) || err == nil && stat.Owner == t.session.ID() {
			return nil
		}
		if err != nil {
			return err
		}
		if over { // and the node is there all the same
			taken := &TakenError{Instance: t.instance, Session: stat.Owner, Waited: time.Since(began).Round(time.Millisecond)}
			if record, err := DecodeRecord(data); err == nil {
				taken.Process = record.Simple[keyLiveInstance]
			}
			return taken
		}
		t.log.Info("waiting for a live node of this instance's name", "owner", stat.Owner, "patience", patience.String())
		for again := false; !again; {
			select {
			case <-moved:
				again = true
			case now := <-tick.C:
				// While ZooKeeper was silent, or this process stood still, nobody counted the other session's time here; and a server
				// that was started anew counts it from the beginning.
				if t.session.Silence() > t.session.SilenceLimit() || now.Sub(last) > t.session.SilenceLimit() || t.session.Links() != links {
					began, links = now, t.session.Links()
				}
				last = now
				over = now.Sub(began) >= patience
				again = over
			case <-t.session.Done():
				return t.session.Err()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// holder reads the live node of the name. One without a session, which was copied with the tree or made by hand, would never go, and is removed.
func (t *tenure) holder(ctx context.Context, notify Notify) (data []byte, stat Stat, err error) {
	path := t.cluster.liveInstance(t.instance)
	for {
		data, stat, err = t.session.Get(ctx, path, notify)
		if err != nil || stat.Owner != "" {
			return data, stat, err
		}
		t.log.Warn("live node of this instance's name is of no session and is removed", "path", path)
		if err = t.session.deleteAround(ctx, path, stat.Version); err != nil && !overtaken(err) {
			return nil, Stat{}, err
		}
	}
}

// overtaken says that a znode was not as it had been read, or that nobody knows: it is looked at again.
func overtaken(err error) bool {
	return errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrLost)
}

// nameChecks is how often within a session's timeout the wait for a name is looked at.
const nameChecks = 20

// carryOver gives the operations that create this session's current states from those of earlier sessions, all OFFLINE: so the controller
// knows what the instance once had, and has it brought ONLINE again or dropped.
func (t *tenure) carryOver(ctx context.Context) ([]Op, error) {
	names, err := t.session.Children(ctx, t.cluster.currentStates(t.instance), nil)
	if err != nil {
		return nil, err
	}
	t.former = slices.DeleteFunc(names, func(name string) bool { return name == t.session.ID() })
	t.reports = map[string]*report{}
	for _, former := range t.former {
		if err := t.carryOverSession(ctx, former); err != nil {
			return nil, err
		}
	}
	t.states = map[Partition]State{}
	ops := []Op{CreateOp(t.cluster.sessionStates(t.instance, t.session.ID()), nil)}
	for resource, r := range t.reports {
		for partition := range r.record.Map {
			t.states[Partition{resource, partition}] = Offline
		}
		if len(r.record.Map) == 0 {
			continue
		}
		op, err := t.reportOp(resource, r)
		if err != nil {
			return nil, err
		}
		ops, r.stored = append(ops, op), true
	}
	return ops, nil
}

func (t *tenure) carryOverSession(ctx context.Context, former string) error {
	names, err := t.session.Children(ctx, t.cluster.sessionStates(t.instance, former), nil)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	records := make([]*Record, len(names))
	err = t.session.Each(ctx, len(names), func(ctx context.Context, i int) error {
		path := t.cluster.currentState(t.instance, former, names[i])
		record, _, err := t.session.GetRecord(ctx, path, nil)
		switch {
		case err == nil:
			records[i] = record
		case isUnreadable(err):
			t.log.Warn("malformed current state of an earlier session skipped", "path", path, "err", err)
		case !errors.Is(err, ErrNotFound):
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, old := range records {
		if old == nil || old.Simple[keyStateModel] != OnlineOffline {
			continue
		}
		r := t.report(names[i])
		maps.Copy(r.record.Simple, old.Simple)
		r.record.Simple[keySessionID] = t.session.ID()
		for partition := range old.Map {
			r.record.Map[partition] = map[string]string{keyCurrentState: string(Offline)}
		}
	}
	return nil
}

// forgetSessions removes what earlier sessions left. What can't be removed now is, at the next start.
func (t *tenure) forgetSessions(ctx context.Context) {
	for _, former := range t.former {
		if err := t.session.DeleteTree(ctx, t.cluster.sessionStates(t.instance, former)); err != nil {
			t.log.Warn("current states of an earlier session not removed", "session", former, "err", err)
		}
	}
}

// recordHistory notes for people that the instance came or left.
func (t *tenure) recordHistory(ctx context.Context, now time.Time, online bool) error {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	return t.session.Update(ctx, t.cluster.history(t.instance), t.instance, func(r *Record) error {
		if r.Simple[keyLastOffline] = at; online {
			r.Simple[keyLastOffline] = "-1"
			entry := fmt.Sprintf("{DATE=%s, SESSION=%s, TIME=%s}", javaDate(now), t.session.ID(), at)
			if list := r.List[keyHistory]; !slices.Contains(list, entry) {
				r.List[keyHistory] = append(list, entry)
			}
			if extra := len(r.List[keyHistory]) - historyLength; extra > 0 {
				r.List[keyHistory] = r.List[keyHistory][extra:]
			}
		}
		return nil
	})
}

// javaDate is 2006-01-02T15:04:05:000: Helix puts a colon before the milliseconds.
func javaDate(t time.Time) string {
	return t.Format("2006-01-02T15:04:05:") + fmt.Sprintf("%03d", t.Nanosecond()/int(time.Millisecond))
}

// leave notes the end; the live node goes with the session.
func (t *tenure) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	if err := t.recordHistory(ctx, time.Now(), false); err != nil {
		t.log.Debug("history not written", "err", err)
	}
	t.log.Info("left the cluster", "cluster", string(t.cluster))
}

// leaveWithin bounds what is only politeness.
const leaveWithin = time.Second
