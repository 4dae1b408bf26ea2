package connector

import (
	"errors"
	"sync"

	"github.com/causeway-mirror/causeway/route"
)

// renewals is what partitions that are started anew leave to be remembered: a beginning that fails is tried again, and must not tell or do twice what
// comes before the checkpoint is stored.
type renewals struct {
	mu     sync.Mutex                 // guards what follows
	former map[route.TopicID]struct{} // ids of source topics that were made anew since
	said   map[route.Partition]string // what was told last
	buried map[route.Partition]string // the last dead letter
	vain   map[route.Partition]vain   // what can't be decided, and takes long to try
}

func newRenewals() *renewals {
	return &renewals{former: map[route.TopicID]struct{}{}, said: map[route.Partition]string{}, buried: map[route.Partition]string{}, vain: map[route.Partition]vain{}}
}

// replace notes that a source topic was made anew.
func (r *renewals) replace(id route.TopicID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.former[id] = struct{}{}
}

// replaced says that a source topic with this id was made anew since. A topic never gets an id back, so a broker that gives it is behind.
func (r *renewals) replaced(id route.TopicID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.former[id]
	return ok
}

// news says whether something is to be told of a partition for the first time.
func (r *renewals) news(p route.Partition, what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := r.said[p] != what
	r.said[p] = what
	return fresh
}

// bury notes that a record is a dead letter now.
func (r *renewals) bury(p route.Partition, record string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buried[p] = record
}

// isBuried says that a record is the last dead letter of its partition.
func (r *renewals) isBuried(p route.Partition, record string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buried[p] == record
}

// vain is what was tried, and why it can't be done.
type vain struct {
	what string
	why  error
}

// undecided is why something can't be decided that was tried before; nil if it was not.
func (r *renewals) undecided(p route.Partition, what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.vain[p]; v.what == what {
		return v.why
	}
	return nil
}

// undecide remembers that it can't be decided, unless that is for time to mend, and gives the reason back.
func (r *renewals) undecide(p route.Partition, what string, why error) error {
	if _, lasts := errors.AsType[*haltError](why); lasts {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.vain[p] = vain{what, why}
	}
	return why
}
