package helix

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// AnyVersion as a version means that the znode's version does not matter.
const AnyVersion int32 = -1

const (
	// maxRequestBytes keeps a request below ZooKeeper's default jute.maxbuffer (1 MiB less one byte): a greater one costs the connection.
	maxRequestBytes = 1<<20 - 4<<10
	// opBytes is more than what an operation takes beside its path and data.
	opBytes = 64
	// pipelined is how many requests are sent without waiting for answers when there are many.
	pipelined = 128
)

// errUnsent: no server could be reached, and the request is still here.
var errUnsent = errors.New("request not sent")

// Stat is what ZooKeeper knows of a znode.
type Stat struct {
	Version      int32
	ChildVersion int32
	Children     int32
	Owner        string // the session of an ephemeral znode, as in Session.ID; empty for a persistent one
}

func newStat(s *zk.Stat) Stat {
	stat := Stat{Version: s.Version, ChildVersion: s.Cversion, Children: s.NumChildren}
	if s.EphemeralOwner != 0 {
		stat.Owner = sessionID(s.EphemeralOwner)
	}
	return stat
}

// classify turns the library's errors into the package's.
func classify(err error) error {
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return ErrNotFound
	case errors.Is(err, zk.ErrNodeExists):
		return ErrExists
	case errors.Is(err, zk.ErrBadVersion):
		return ErrBadVersion
	case errors.Is(err, zk.ErrNotEmpty):
		return ErrNotEmpty
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrInvalidACL), errors.Is(err, zk.ErrAuthFailed):
		return ErrDenied
	case errors.Is(err, zk.ErrSessionExpired):
		return ErrExpired
	case errors.Is(err, zk.ErrNoServer):
		return errUnsent
	case errors.Is(err, zk.ErrShortBuffer):
		return ErrTooLarge
	case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrClosing), errors.Is(err, zk.ErrSessionMoved), errors.As(err, &network),
		errors.Is(err, net.ErrClosed):
		return ErrLost
	}
	return err
}

// isAnswer says whether the error came from a server that knew the session.
func isAnswer(err error) bool {
	for _, answer := range []error{ErrNotFound, ErrExists, ErrBadVersion, ErrNotEmpty, ErrDenied} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// Get reads a znode. notify, if not nil, is called when it changes or goes; no watch is set on ErrNotFound.
func (s *Session) Get(ctx context.Context, path string, notify Notify) ([]byte, Stat, error) {
	var data []byte
	var stat *zk.Stat
	err := s.watched(ctx, "get", watchKey{path, false}, notify, func() (err error) {
		if notify == nil {
			data, stat, err = s.conn.Get(s.full(path))
		} else {
			data, stat, _, err = s.conn.GetW(s.full(path))
		}
		return err
	})
	if err != nil {
		return nil, Stat{}, err
	}
	return data, newStat(stat), nil
}

// GetRecord reads a znode's record. Errors beside Get's: ErrMalformed, ErrEmpty; the watch is set all the same, and the Stat is right.
func (s *Session) GetRecord(ctx context.Context, path string, notify Notify) (*Record, Stat, error) {
	data, stat, err := s.Get(ctx, path, notify)
	if err != nil {
		return nil, stat, err
	}
	record, err := DecodeRecord(data)
	if err != nil {
		return nil, stat, &OpError{Op: "decode", Path: path, Err: err}
	}
	return record, stat, nil
}

// Exists looks for a znode. notify, if not nil, is called when it comes, changes or goes.
func (s *Session) Exists(ctx context.Context, path string, notify Notify) (bool, Stat, error) {
	var found bool
	var stat *zk.Stat
	err := s.watched(ctx, "look for", watchKey{path, false}, notify, func() (err error) {
		if notify == nil {
			found, stat, err = s.conn.Exists(s.full(path))
		} else {
			found, stat, _, err = s.conn.ExistsW(s.full(path))
		}
		return err
	})
	if err != nil || !found {
		return false, Stat{}, err
	}
	return true, newStat(stat), nil
}

// Children lists the names of a znode's children in order. notify, if not nil, is called when they become more or fewer, or the znode goes;
// no watch is set on ErrNotFound.
func (s *Session) Children(ctx context.Context, path string, notify Notify) ([]string, error) {
	var names []string
	err := s.watched(ctx, "list", watchKey{path, true}, notify, func() (err error) {
		if notify == nil {
			names, _, err = s.conn.Children(s.full(path))
		} else {
			names, _, _, err = s.conn.ChildrenW(s.full(path))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// watched sends a reading request, with a watch if there is somebody to notify.
func (s *Session) watched(ctx context.Context, op string, key watchKey, notify Notify, call func() error) error {
	if notify == nil {
		return s.do(ctx, op, key.path, true, call)
	}
	disarm := s.arm(key, notify)
	err := s.do(ctx, op, key.path, true, call)
	if err != nil {
		disarm()
	}
	return err
}

func world() []zk.ACL { return zk.WorldACL(zk.PermAll) }

// Create creates a persistent znode.
func (s *Session) Create(ctx context.Context, path string, data []byte) error {
	return s.create(ctx, path, data, 0)
}

// CreateEphemeral creates a znode that goes with the session.
func (s *Session) CreateEphemeral(ctx context.Context, path string, data []byte) error {
	return s.create(ctx, path, data, zk.FlagEphemeral)
}

func (s *Session) create(ctx context.Context, path string, data []byte, flags int32) error {
	if err := checkSize("create", path, len(data)); err != nil {
		return err
	}
	return s.do(ctx, "create", path, false, func() error {
		_, err := s.conn.Create(s.full(path), data, flags, world())
		return err
	})
}

func checkSize(op, path string, size int) error {
	if size+len(path)+opBytes > maxRequestBytes {
		return &OpError{Op: op, Path: path, Err: fmt.Errorf("%w: %d bytes", ErrTooLarge, size)}
	}
	return nil
}

// CreateAll creates a persistent znode and whatever is missing above it, the chroot too. A lost connection is no error: the znode is there
// on nil and on ErrExists.
func (s *Session) CreateAll(ctx context.Context, path string, data []byte) error {
	for {
		switch err := s.Create(ctx, path, data); {
		case errors.Is(err, ErrLost):
		case errors.Is(err, ErrNotFound):
			if err := s.createParent(ctx, path); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// createParent creates what is missing above a znode.
func (s *Session) createParent(ctx context.Context, child string) error {
	parent := child[:strings.LastIndexByte(child, '/')]
	if parent == "" {
		return s.createChroot(ctx)
	}
	if err := s.CreateAll(ctx, parent, nil); err != nil && !errors.Is(err, ErrExists) {
		return err
	}
	return nil
}

// createChroot creates the path below which the session lives, part by part, and says so: it may be a slip of the pen.
func (s *Session) createChroot(ctx context.Context) error {
	for i := 1; i <= len(s.chroot); i++ {
		if i < len(s.chroot) && s.chroot[i] != '/' {
			continue
		}
		part := s.chroot[:i]
		err := s.do(ctx, "create", part, false, func() error {
			_, err := s.conn.Create(part, nil, 0, world())
			return err
		})
		if err == nil {
			s.log.Warn("zookeeper has no such path, and it is created", "path", part)
		}
		if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrLost) { // a lost one is missed and created by the next try
			return err
		}
	}
	return nil
}

// Set replaces a znode's data and gives its new Stat.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	if err := checkSize("set", path, len(data)); err != nil {
		return Stat{}, err
	}
	var stat *zk.Stat
	err := s.do(ctx, "set", path, version == AnyVersion, func() (err error) {
		stat, err = s.conn.Set(s.full(path), data, version)
		return err
	})
	if err != nil {
		return Stat{}, err
	}
	return newStat(stat), nil
}

// Put makes a persistent znode hold the data, whatever was there.
func (s *Session) Put(ctx context.Context, path string, data []byte) error {
	for {
		_, err := s.Set(ctx, path, data, AnyVersion)
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		if err := s.CreateAll(ctx, path, data); !errors.Is(err, ErrExists) {
			return err
		}
	}
}

// Delete removes a znode that has no children.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	return s.do(ctx, "delete", path, false, func() error { return s.conn.Delete(s.full(path), version) })
}

// Op is one operation of a transaction.
type Op struct {
	path    string
	data    []byte
	version int32
	kind    opKind
}

type opKind int8

const (
	opCreate opKind = iota
	opCreateEphemeral
	opSet
	opDelete
	opCheck
)

// CreateOp creates a persistent znode.
func CreateOp(path string, data []byte) Op { return Op{kind: opCreate, path: path, data: data} }

// CreateEphemeralOp creates a znode that goes with the session.
func CreateEphemeralOp(path string, data []byte) Op {
	return Op{kind: opCreateEphemeral, path: path, data: data}
}

// SetOp replaces a znode's data.
func SetOp(path string, data []byte, version int32) Op {
	return Op{kind: opSet, path: path, data: data, version: version}
}

// DeleteOp removes a znode.
func DeleteOp(path string, version int32) Op { return Op{kind: opDelete, path: path, version: version} }

// CheckOp makes the transaction fail unless the znode has the version.
func CheckOp(path string, version int32) Op { return Op{kind: opCheck, path: path, version: version} }

// Size is at least the bytes that the operation takes in a request.
func (o Op) Size() int { return len(o.path) + len(o.data) + opBytes }

func (o Op) request(s *Session) any {
	path := s.full(o.path)
	switch o.kind {
	case opCreate:
		return &zk.CreateRequest{Path: path, Data: o.data, Acl: world()}
	case opCreateEphemeral:
		return &zk.CreateRequest{Path: path, Data: o.data, Acl: world(), Flags: zk.FlagEphemeral}
	case opSet:
		return &zk.SetDataRequest{Path: path, Data: o.data, Version: o.version}
	case opDelete:
		return &zk.DeleteRequest{Path: path, Version: o.version}
	case opCheck:
		return &zk.CheckVersionRequest{Path: path, Version: o.version}
	}
	panic("BUG: unknown operation")
}

// Multi carries out all operations or none. The error names the operation that failed (*MultiError) unless the transaction as a whole
// did (ErrTooLarge, ErrLost, the session's end, the context's).
func (s *Session) Multi(ctx context.Context, ops ...Op) error {
	if len(ops) == 0 {
		return nil
	}
	requests, size := make([]any, len(ops)), 0
	for i, op := range ops {
		requests[i] = op.request(s)
		size += op.Size() + len(s.chroot)
	}
	if err := checkSize("transact", ops[0].path, size); err != nil {
		return err
	}
	failed := -1
	err := s.do(ctx, "transact", ops[0].path, false, func() error {
		answers, err := s.conn.Multi(requests...)
		if err == nil {
			return nil
		}
		for i, answer := range answers { // those before the one that failed have no error, those behind it one that says so
			if answer.Error != nil {
				failed = i
				return answer.Error
			}
		}
		return err
	})
	var op *OpError
	if errors.As(err, &op) && isAnswer(err) && failed >= 0 && failed < len(ops) {
		return &OpError{Op: "transact", Path: ops[failed].path, Err: &MultiError{Index: failed, Err: op.Err}}
	}
	return err
}

// Chunks cuts operations into transactions of at most most operations that fit into a request. They keep their order.
func Chunks(ops []Op, most int) [][]Op {
	var chunks [][]Op
	for len(ops) > 0 {
		n, size := 0, opBytes
		for n < len(ops) && n < most && (n == 0 || size+ops[n].Size() <= maxRequestBytes/2) {
			size += ops[n].Size()
			n++
		}
		chunks = append(chunks, ops[:n])
		ops = ops[n:]
	}
	return chunks
}

// deletesPerTransaction is where larger transactions stopped being faster.
const deletesPerTransaction = 250

// DeleteTree removes a znode and all below it. What others remove meanwhile is no error; what they add may make it ErrNotEmpty.
func (s *Session) DeleteTree(ctx context.Context, path string) error {
	all, err := s.forest(ctx, []string{path})
	if err != nil {
		return err
	}
	for _, chunk := range Chunks(deletions(all), deletesPerTransaction) {
		err := s.Multi(ctx, chunk...)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrLost) {
			err = s.deleteEach(ctx, chunk)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deletions removes znodes in their order.
func deletions(paths []string) []Op {
	ops := make([]Op, len(paths))
	for i, path := range paths {
		ops[i] = DeleteOp(path, AnyVersion)
	}
	return ops
}

// deleteEach removes znodes one after the other, those too that are gone already.
func (s *Session) deleteEach(ctx context.Context, ops []Op) error {
	for _, op := range ops {
		for {
			err := s.Delete(ctx, op.path, AnyVersion)
			if errors.Is(err, ErrLost) {
				continue
			}
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			break
		}
	}
	return nil
}

// forest lists those of the znodes that exist, and everything below them, children before parents.
func (s *Session) forest(ctx context.Context, roots []string) ([]string, error) {
	var all []string
	for level := roots; len(level) > 0; {
		there, lists := make([]string, len(level)), make([][]string, len(level))
		err := s.Each(ctx, len(level), func(ctx context.Context, i int) error {
			names, err := s.Children(ctx, level[i], nil)
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			there[i] = level[i]
			for _, name := range names {
				lists[i] = append(lists[i], level[i]+"/"+name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(there, func(path string) bool { return path == "" })...)
		level = slices.Concat(lists...)
	}
	slices.Reverse(all)
	return all, nil
}

// Each calls do for 0 to n-1 with many at once, so that their requests share round trips. The first error ends it.
func (*Session) Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pipelined)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// Update changes a record by compare-and-set: change gets what is there, or an empty record with that id if there is none (created
// then, with its parents), and is called again if somebody else was faster or an answer was lost; so it must look at what it gets. A record
// that change leaves as it was is not written. If change fails, nothing is written and its error is returned.
func (s *Session) Update(ctx context.Context, path, id string, change func(*Record) error) error {
	return s.update(ctx, updated{path: path, id: id}, s.Multi, change)
}

// updated is a record that is changed.
type updated struct {
	path, id  string
	mustExist bool // its absence is ErrNotFound
}

// update does what Update says with another way to write.
func (s *Session) update(ctx context.Context, u updated, write func(context.Context, ...Op) error, change func(*Record) error) error {
	for {
		record, stat, err := s.GetRecord(ctx, u.path, nil)
		absent := errors.Is(err, ErrNotFound) && !u.mustExist
		if absent || errors.Is(err, ErrEmpty) {
			record, err = NewRecord(u.id), nil
		}
		if err != nil {
			return err
		}
		if record.ID == "" {
			record.ID = u.id
		}
		before := record.Clone()
		if err := change(record); err != nil {
			return err
		}
		if record.Equal(before) && !absent {
			return nil
		}
		data, err := record.Encode()
		if err != nil {
			return &OpError{Op: "set", Path: u.path, Err: err}
		}
		op := SetOp(u.path, data, stat.Version)
		if absent {
			op = CreateOp(u.path, data)
		}
		switch err := write(ctx, op); {
		case errors.Is(err, ErrDeposed):
			return err
		case errors.Is(err, ErrNotFound) && absent:
			if err := s.createParent(ctx, u.path); err != nil {
				return err
			}
		case errors.Is(err, ErrBadVersion), errors.Is(err, ErrExists), errors.Is(err, ErrLost), errors.Is(err, ErrNotFound):
		default:
			return err
		}
	}
}
