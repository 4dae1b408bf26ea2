package gateway

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// gone is for how long a broker must not have been named in any answer before another one may have its port.
const gone = 10 * time.Minute

// spot is a port, or a name, that stands for a broker, which may not be known yet.
type spot struct {
	known  bool
	broker int32
	at     string           // the broker's own address, host:port
	named  time.Time        // when an answer last named the broker
	users  map[*pipe]string // what is connected through it, and to which address
}

// directory knows what stands for which broker. It learns from answers, before clients do.
type directory struct {
	host  string  // that clients are told
	names string  // pattern of a broker's host; empty: brokers have ports
	front int32   // port of the cluster as a whole, and of brokers with names
	ports []int32 // of brokers

	log     hclog.Logger
	metrics *metrics

	mu    sync.Mutex      // guards what follows
	spots map[int32]*spot // by index in ports, or by broker if brokers have names
	of    map[int32]int32 // broker → index in ports
}

func newDirectory(cfg Config, front int32, ports []int32, log hclog.Logger, m *metrics) *directory {
	return &directory{
		host: cfg.Advertise, names: cfg.Names, front: front, ports: ports, log: log, metrics: m,
		spots: map[int32]*spot{}, of: map[int32]int32{},
	}
}

// translate remembers a broker's address and gives the one that stands for it. Who is still connected to another address through it is cut off: it
// would go on talking to a broker that is not the one it means.
func (d *directory) translate(id int32, host string, port int32) (placeHost string, placePort int32) {
	at := net.JoinHostPort(host, strconv.Itoa(int(port)))
	d.mu.Lock()
	index, ok := d.indexLocked(id)
	if !ok {
		d.mu.Unlock()
		d.log.Error("more brokers than ports, widen the port range", "broker", id, "ports", len(d.ports))
		return d.host, d.front
	}
	s := d.spotLocked(index)
	var wrong []*pipe
	if !s.known || s.broker != id || s.at != at {
		d.log.Info("broker", "broker", id, "address", at, "as", d.addressLocked(index))
		for p, to := range s.users {
			if to != "" && to != at {
				wrong = append(wrong, p)
			}
		}
		s.known, s.broker, s.at = true, id, at
	}
	s.named = time.Now()
	d.metrics.brokers.Set(float64(d.knownLocked()))
	placeHost, placePort = d.placeLocked(index)
	d.mu.Unlock()
	for _, p := range wrong {
		p.cut()
	}
	return placeHost, placePort
}

// indexLocked is the index of a broker's spot. The same broker has the same port from one start to the next, and in several gateways, unless ids are
// further apart than there are ports.
func (d *directory) indexLocked(id int32) (int32, bool) {
	if d.names != "" {
		return id, true
	}
	if index, ok := d.of[id]; ok {
		return index, true
	}
	n := int32(len(d.ports))
	found, ok := int32(0), false
	for i := range n { // a free one from the broker's own on; or else that of a broker which has long been gone
		index := (id%n + i) % n
		s := d.spots[index]
		if s == nil || !s.known {
			found, ok = index, true
			break
		}
		if time.Since(s.named) > gone && (!ok || s.named.Before(d.spots[found].named)) {
			found, ok = index, true
		}
	}
	if !ok {
		return 0, false
	}
	if s := d.spots[found]; s != nil && s.known {
		delete(d.of, s.broker)
	}
	d.of[id] = found
	return found, true
}

func (d *directory) spotLocked(index int32) *spot {
	s := d.spots[index]
	if s == nil {
		s = &spot{users: map[*pipe]string{}}
		d.spots[index] = s
	}
	return s
}

func (d *directory) placeLocked(index int32) (host string, port int32) {
	if d.names != "" {
		return d.nameOf(index), d.front
	}
	return d.host, d.ports[index]
}

func (d *directory) addressLocked(index int32) string {
	host, port := d.placeLocked(index)
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func (d *directory) nameOf(id int32) string {
	return strings.ReplaceAll(d.names, "{id}", strconv.Itoa(int(id)))
}

// named is the broker that a client asked TLS for; false if it asked for the cluster as a whole.
func (d *directory) named(name string) (id int32, ok bool) {
	before, after, found := strings.Cut(d.names, "{id}")
	name = strings.ToLower(name)
	before, after = strings.ToLower(before), strings.ToLower(after)
	if !found || len(name) < len(before)+len(after) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
		return 0, false
	}
	n, err := strconv.ParseInt(name[len(before):len(name)-len(after)], 10, 32)
	return int32(n), err == nil && n >= 0
}

// enter notes that a pipe goes through a spot, and gives the addresses to try: the broker's, or those of the bootstrap when it is not known.
func (d *directory) enter(p *pipe, index int32, bootstrap []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spotLocked(index)
	s.users[p] = ""
	if !s.known {
		return bootstrap
	}
	s.users[p] = s.at
	return []string{s.at}
}

// reached notes which address a pipe is connected to; false if that is no longer the right one.
func (d *directory) reached(p *pipe, index int32, at string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spotLocked(index)
	s.users[p] = at
	return !s.known || s.at == at
}

// leave ends enter.
func (d *directory) leave(p *pipe, index int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spotLocked(index)
	delete(s.users, p)
	if !s.known && len(s.users) == 0 {
		delete(d.spots, index) // any number may be asked for by name
	}
}

func (d *directory) knownLocked() (n int) {
	for _, s := range d.spots {
		if s.known {
			n++
		}
	}
	return n
}
