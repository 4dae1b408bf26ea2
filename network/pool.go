package network

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Pool is how many requests of one kind may be worked on at once.
type Pool struct {
	places  chan struct{} // holds one token for each that is taken
	refused prometheus.Counter
}

// Take takes a place; false if there is none. Who has one gives it back.
func (p *Pool) Take() bool {
	select {
	case p.places <- struct{}{}:
		return true
	default:
		p.refused.Inc()
		return false
	}
}

// Give gives a place back.
func (p *Pool) Give() { <-p.places }

// idle is the share of the places that are free.
func (p *Pool) idle() float64 { return 1 - float64(len(p.places))/float64(cap(p.places)) }
