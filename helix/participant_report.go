package helix

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// opsPerCommit bounds a transaction of reports.
const opsPerCommit = 250

// report is a resource's current states as this session reports them. Nobody else writes them, so they are never read.
type report struct {
	record *Record
	stored bool // the znode exists, as far as known
}

// report gives a resource's report, a new one if need be.
func (t *tenure) report(resource string) *report {
	r := t.reports[resource]
	if r == nil {
		r = &report{record: NewRecord(resource)}
		r.record.Simple = map[string]string{
			keySessionID: t.session.ID(), keyStateModel: OnlineOffline, keyFactory: DefaultFactory, keyBucketSize: "0",
		}
		t.reports[resource] = r
	}
	return r
}

// reportAll writes outcomes, those that are there together in few transactions: a resource's states once, and its messages' deletion with them,
// so that the controller never sees a state without the message being gone, nor the other way round.
func (t *tenure) reportAll(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.ready:
		}
		timer.Reset(t.p.cfg.CommitDelay)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		t.mu.Lock()
		finished := t.finished
		t.finished = nil
		t.mu.Unlock()
		if err := t.apply(ctx, t.reportOps(finished)); err != nil {
			return err
		}
	}
}

// reportOps merges outcomes into the reports and gives the operations, each resource's together.
func (t *tenure) reportOps(finished []outcome) []Op {
	byResource, order := map[string][]outcome{}, []string{}
	for _, o := range finished {
		resource := o.message.Resource
		if byResource[resource] == nil {
			order = append(order, resource)
		}
		byResource[resource] = append(byResource[resource], o)
	}
	var ops []Op
	for _, resource := range order {
		changed := false
		for _, o := range byResource[resource] {
			if len(o.changes) > 0 {
				t.merge(resource, o)
			}
			changed = changed || o.restate || len(o.changes) > 0
		}
		if changed {
			states, err := t.stateOps(resource)
			if err != nil { // the messages stay, and so does everybody's belief; nothing else must suffer
				t.log.Error("current states can't be written", "resource", resource, "err", err)
				continue
			}
			ops = append(ops, states...)
		}
		for _, o := range byResource[resource] {
			if o.message.ID != "" { // else nobody sent it
				ops = append(ops, DeleteOp(t.cluster.message(t.instance, o.message.ID), AnyVersion))
			}
		}
	}
	return ops
}

// merge brings an outcome into its resource's report.
func (t *tenure) merge(resource string, o outcome) {
	r := t.report(resource).record
	if o.message.Batch {
		r.Simple[keyBatchMode] = configTrue // a Java controller then drops in batches too when the ideal state is gone
	}
	for _, c := range o.changes {
		if c.reached == Dropped {
			delete(r.Map, c.Name)
			continue
		}
		fields := map[string]string{
			keyCurrentState: string(c.reached), keyInfo: c.info, keyPreviousState: string(c.From),
			keyStartTime: strconv.FormatInt(c.began.UnixMilli(), 10), keyEndTime: strconv.FormatInt(c.ended.UnixMilli(), 10),
		}
		if o.message.Source != "" {
			fields[keyTriggeredBy] = o.message.Source
		}
		r.Map[c.Name] = fields
	}
}

// stateOps brings a resource's znode to what its report says. One without partitions must not exist.
func (t *tenure) stateOps(resource string) ([]Op, error) {
	if t.reports[resource] == nil {
		return nil, nil // to be stated again, but dropped since
	}
	r := t.report(resource)
	if len(r.record.Map) == 0 {
		delete(t.reports, resource)
		if !r.stored {
			return nil, nil
		}
		return []Op{DeleteOp(t.cluster.currentState(t.instance, t.session.ID(), resource), AnyVersion)}, nil
	}
	op, err := t.reportOp(resource, r)
	if err != nil {
		return nil, err
	}
	r.stored = true
	return []Op{op}, nil
}

func (t *tenure) reportOp(resource string, r *report) (Op, error) {
	data, err := r.record.Encode()
	if err != nil {
		return Op{}, err
	}
	path := t.cluster.currentState(t.instance, t.session.ID(), resource)
	if r.stored {
		return SetOp(path, data, AnyVersion), nil
	}
	return CreateOp(path, data), nil
}

// apply carries out operations in order, in few transactions. What the world is like already is no error: a message that the controller
// took away, a folder that somebody removed. A lost answer is repeated, since all of them may be.
func (t *tenure) apply(ctx context.Context, ops []Op) error {
	for _, chunk := range Chunks(ops, opsPerCommit) {
		t.p.metrics.commits.Inc()
		err := t.session.Multi(ctx, chunk...)
		if isAnswer(err) || errors.Is(err, ErrLost) {
			err = t.applyEach(ctx, chunk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyEach carries out operations one by one, states before deletions.
func (t *tenure) applyEach(ctx context.Context, ops []Op) error {
	for _, deletions := range []bool{false, true} {
		err := t.session.Each(ctx, len(ops), func(ctx context.Context, i int) error {
			switch op := ops[i]; {
			case (op.kind == opDelete) != deletions:
				return nil
			case deletions:
				return t.remove(ctx, op.path)
			default:
				return t.session.Put(ctx, op.path, op.data)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a message or a state that is done with, and what somebody may have put below it. What can't be deleted stays, and is told: it
// must not cost the instance its place in the cluster.
func (t *tenure) remove(ctx context.Context, path string) error {
	err := t.session.deleteEach(ctx, []Op{DeleteOp(path, AnyVersion)})
	if errors.Is(err, ErrNotEmpty) {
		err = t.session.DeleteTree(ctx, path)
	}
	if errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrDenied) {
		t.log.Warn("znode can't be removed and stays", "path", path, "err", err)
		return nil
	}
	return err
}
