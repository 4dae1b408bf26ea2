package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/causeway-mirror/causeway/route"
)

// What a Fleet refuses; compare with errors.Is.
var (
	ErrExists   = errors.New("it exists already")
	ErrNotFound = errors.New("it does not exist")
	ErrAbsent   = errors.New("the source cluster does not have it")
	ErrNoSource = errors.New("the source cluster is not configured")
	ErrAlready  = errors.New("it is so already")
	ErrInvalid  = errors.New("the request is not valid")
	// ErrImpossible is of what this process never does, whatever the request.
	ErrImpossible = errors.New("it is not possible here")
)

// Fleet is a route's cluster of workers as its leader sees and changes it. Errors beside those named are ErrNoLeader and whatever keeps a change
// from being made.
type Fleet interface {
	Operator
	// Topics lists what is mirrored, in order.
	Topics() []string
	// Topic gives one; false if it is not mirrored.
	Topic(name string) (FleetTopic, bool)
	// InSource is how many partitions the source has of a topic: ErrAbsent, ErrInvalid, ErrNoSource.
	InSource(ctx context.Context, topic string) (partitions int32, err error)
	// Add: ErrExists, ErrInvalid.
	Add(ctx context.Context, topic string, partitions int32) error
	// AddFromSource adds a topic with as many partitions as the source has: also ErrAbsent, ErrNoSource.
	AddFromSource(ctx context.Context, topic string) (partitions int32, err error)
	// Expand lets a topic have at least so many partitions: ErrNotFound, ErrInvalid.
	Expand(ctx context.Context, topic string, partitions int32) error
	// Delete: ErrNotFound.
	Delete(ctx context.Context, topic string) error
	// TakeOff stops the mirroring of one partition or lets it go on: ErrNotFound, ErrAlready, ErrInvalid.
	TakeOff(ctx context.Context, p route.Partition, off bool) error
	// Off lists the partitions that are taken off, in order.
	Off() []route.Partition
	// Workers lists all that ever joined, in order.
	Workers() []FleetWorker
	// Drain takes everything from a worker, or lets it have its share again: ErrNotFound.
	Drain(ctx context.Context, worker string, on bool) error
	// Move brings a partition to a worker and keeps it there; an empty name frees it: ErrNotFound, ErrInvalid.
	Move(ctx context.Context, p route.Partition, worker string) error
	// Backup gives the assignment and its settings in JSON, Restore brings them back: ErrInvalid.
	Backup() ([]byte, error)
	Restore(ctx context.Context, backup []byte) error
	// Rebalance decides anew who mirrors what.
	Rebalance(ctx context.Context) error
	// Balancing says whether partitions may move; SetBalancing changes that.
	Balancing() bool
	SetBalancing(ctx context.Context, on bool) error
	// Validation compares what should be with what workers report.
	Validation() FleetValidation
	// Compare compares what is mirrored with the source: ErrNoSource.
	Compare(ctx context.Context) (FleetDiscrepancy, error)
	// Lag gives what was measured of a partition last; false if nothing was.
	Lag(p route.Partition) (FleetLag, bool)
	// Still lists the partitions that make no progress although the source has more, in order.
	Still() []route.Partition
	// Healthy says whether lag is measured as often as it should be.
	Healthy() bool
}

// Leadership says who leads.
type Leadership interface {
	// Fleet gives the route's cluster; false unless this process leads it.
	Fleet() (Fleet, bool)
	// Leader gives the leader's name and the base URL of its API; each is empty where it is not known.
	Leader(ctx context.Context) (id, address string)
}

// FleetTopic is a topic: partition → worker → state (ONLINE, OFFLINE, ERROR), as it should be and as it is.
type FleetTopic struct {
	Partitions      int32
	Ideal, External map[int32]map[string]string
}

// FleetWorker is a worker with what it should mirror.
type FleetWorker struct {
	ID                      string
	Live, Draining, Standby bool
	Silent                  time.Duration // for how long it has not answered; 0 if it does, or is not asked
	Partitions              []route.Partition
	Rates                   map[route.Partition]FleetRate // of those that were measured
}

// FleetRate is what goes through a partition.
type FleetRate struct{ Bytes, Messages float64 } // a second

// FleetValidation counts. Ideal and External count partitions by worker.
type FleetValidation struct {
	Topics, ErrorTopics                int
	Partitions, Online, Offline, Error int
	Ideal, External                    map[string]int
}

// FleetDiscrepancy counts where source and mirror differ; Mismatched is by how many partitions, by topic.
type FleetDiscrepancy struct {
	Missing, Partitions int
	Mismatched          map[string]int32
}

// FleetLag is a measurement. Offsets are NoOffset and Records is -1 where they are not known.
type FleetLag struct {
	At             time.Time
	End, Committed route.Offset
	Records        int64
	Time           time.Duration
	Lagging        bool // further behind than is allowed
}

// CompatConfig are the numbers of uReplicator's controller that its answers show, and how the leader is reached.
type CompatConfig struct {
	Cluster        string            // the Helix cluster
	WorkerCapacity float64           // bytes a second that a worker is thought to carry
	DedicatedRatio float64           // part of the workers that may be kept busy by partitions that lag
	Advertise      string            // this process, as it signs calls that it passes on
	Peers          http.RoundTripper // the way to the leader, see NewPeers
}

// Compat answers the REST of uReplicator's controller: its paths, methods, status codes, content types and texts, which are what its clients
// parse. A process that does not lead passes the call on to the leader.
type Compat struct {
	cfg  CompatConfig
	lead Leadership
	log  hclog.Logger
	pass http.Handler
}

// NewCompat answers for whoever leads.
func NewCompat(cfg CompatConfig, lead Leadership, log hclog.Logger) *Compat {
	return &Compat{cfg: cfg, lead: lead, pass: newForwarder(cfg.Advertise, lead, cfg.Peers, log, noLeader), log: log}
}

// compatCall is one call to a resource, with the parts of the path behind the resource's name.
type compatCall struct {
	*http.Request

	fleet Fleet
	args  []string
}

// arg gives a part of the path; empty if there is none.
func (c compatCall) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

// resource is what stands behind the first part of a path.
type resource struct {
	counts     []int // of further parts that a path may have
	slash      bool  // a trailing slash changes nothing
	negotiated bool  // answers say that they might vary
	bare       bool  // POST takes no body
	allow      []string
	methods    map[string]func(http.ResponseWriter, compatCall)
}

// resources are those of the controller. The order of allow is the one that clients saw.
func (c *Compat) resources() map[string]resource {
	get := []string{http.MethodGet}
	return map[string]resource{
		"topics": {
			counts: []int{0, 1}, slash: true, allow: []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost},
			methods: map[string]func(http.ResponseWriter, compatCall){
				http.MethodGet: c.getTopics, http.MethodPost: c.postTopic, http.MethodPut: c.putTopic, http.MethodDelete: c.deleteTopic,
				http.MethodPatch: c.putTopic,
			},
		},
		"health": {
			counts: []int{0}, slash: true, negotiated: true, allow: get,
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getHealth},
		},
		"validation": {
			counts: []int{0, 1}, slash: true, allow: get,
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getValidation},
		},
		"admin": {
			counts: []int{0, 1}, negotiated: true, bare: true, allow: []string{http.MethodGet, http.MethodPost},
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getAdmin, http.MethodPost: c.postAdmin},
		},
		"instances": {
			counts: []int{0, 1}, slash: true, negotiated: true, allow: []string{http.MethodGet, http.MethodDelete, http.MethodPost},
			methods: map[string]func(http.ResponseWriter, compatCall){
				http.MethodGet: c.getInstances, http.MethodPost: c.postInstance, http.MethodDelete: c.deleteInstance,
			},
		},
		"offset": {
			counts: []int{0, 2}, slash: true, negotiated: true, allow: get,
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getOffset},
		},
		"noprogress": {
			counts: []int{0}, negotiated: true, allow: get,
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getNoProgress},
		},
		"blacklist": {
			counts: []int{0}, negotiated: true, bare: true, allow: []string{http.MethodGet, http.MethodPost},
			methods: map[string]func(http.ResponseWriter, compatCall){http.MethodGet: c.getBlacklist, http.MethodPost: c.postBlacklist},
		},
	}
}

// mostBody bounds what a call may bring.
const mostBody = 1 << 20

// ServeHTTP answers.
func (c *Compat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	res, ok := c.resources()[parts[0]]
	args := parts[1:]
	if n := len(args); n > 0 && args[n-1] == "" && res.slash {
		args = args[:n-1]
	}
	if !ok || !slices.Contains(res.counts, len(args)) || slices.Contains(args, "") {
		compatError(w, r, http.StatusNotFound)
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	handle, ok := res.methods[method]
	if !ok {
		w.Header().Set("Allow", strings.Join(res.allow, ", "))
		compatError(w, r, http.StatusMethodNotAllowed)
		return
	}
	fleet, ok := c.lead.Fleet()
	if !ok {
		c.pass.ServeHTTP(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	if res.bare && method == http.MethodPost && hasBody(r) {
		compatError(w, r, http.StatusUnsupportedMediaType)
		return
	}
	if res.negotiated {
		w.Header().Set("Vary", "Accept-Charset, Accept-Encoding, Accept-Language, Accept")
	}
	handle(w, compatCall{Request: r, fleet: fleet, args: args})
}

// hasBody says whether a call brings anything.
func hasBody(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	one := make([]byte, 1)
	n, _ := io.ReadFull(r.Body, one)
	return n > 0
}
