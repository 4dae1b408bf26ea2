package fetcher

import (
	"context"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mirror/causeway/internal/slab"
	"github.com/causeway-mirror/causeway/route"
	"github.com/causeway-mirror/causeway/wire"
)

// Deps is what the fetchers work with. None of it is closed by them.
type Deps struct {
	Client     *wire.Client
	Pool       *slab.Pool
	Log        hclog.Logger
	Registerer prometheus.Registerer // nil: no metrics
	Route      string                // label of the metrics
}

// Fetchers fetches the partitions that it is given.
type Fetchers struct {
	cfg  Config
	deps Deps
}

// New returns fetchers that do nothing before Run. The configuration must be valid.
func New(cfg Config, d Deps) *Fetchers { return &Fetchers{cfg: cfg, deps: d} }

// Run owns everything.
func (f *Fetchers) Run(ctx context.Context) error { return ctx.Err() }

// Add begins to fetch a partition.
func (f *Fetchers) Add(p route.Partition, l Lane) {}

// Remove ends fetching a partition.
func (f *Fetchers) Remove(p route.Partition) {}

// Wake says that what the lane wants has changed.
func (f *Fetchers) Wake(p route.Partition) {}

// Reachable says why the source can't be reached.
func (f *Fetchers) Reachable() error { return nil }
