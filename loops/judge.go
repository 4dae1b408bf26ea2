package loops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Copying is a route's copying of one topic, as it wants to do it.
type Copying struct {
	Hop          // its Before is how the source topic came there
	Target Place // where it goes
}

// RefusedError says that a topic would be copied in a circle.
type RefusedError struct {
	Route  string // that is refused
	Drop   bool   // it would leave out what comes from where it copies to
	Target Place  // where it would have copied the topic to
	Ring   []Hop  // the other routes of the ring: the last that the topic passed first
}

// Error names all routes of the ring.
func (e *RefusedError) Error() string {
	routes := make([]string, len(e.Ring))
	for i := range e.Ring {
		routes[len(routes)-1-i] = e.Ring[i].Route
	}
	origin := e.Ring[len(e.Ring)-1]
	if origin.From() == e.Target && len(e.Ring) == 1 && origin.Drop != e.Drop {
		return e.so(origin, routes) + " would bring it back to there: both must say loops: drop, and one does not"
	}
	if origin.From() == e.Target {
		return fmt.Sprintf("%s would bring it back to there", e.so(origin, routes))
	}
	return fmt.Sprintf("%s would bring it back to that cluster as topic %s, which would be copied again", e.so(origin, routes), e.Target.Topic)
}

// so is what both kinds of loops have in common.
func (e *RefusedError) so(origin Hop, routes []string) string {
	return fmt.Sprintf("a loop: it comes from topic %s of cluster %s by %s, and this route, %s,",
		origin.Topic, origin.Cluster, strings.Join(routes, " and "), e.Route)
}

// Judge says why a topic may not be copied; nil if it may. A ring is a way that leads back: to the very topic, or to another one of its cluster
// that the routes of the ring would take round again. A way there and back again between two topics is none where both routes drop what the
// other one brought. Of its routes the one that began last is refused, but none that can't see the ring, since
// that one would go on: each route that judges comes to the same answer.
func Judge(c Copying) *RefusedError {
	return c.walk(c.Before, nil)
}

func (c *Copying) walk(hops, way []Hop) *RefusedError {
	if len(way) == maxDepth {
		return nil
	}
	for _, h := range hops {
		if c.dropped(h, way) {
			continue
		}
		on := slices.Concat(way, []Hop{h})
		if c.closes(on) && c.last(on) {
			return &RefusedError{Route: c.Route, Drop: c.Drop, Target: c.Target, Ring: on}
		}
		if refused := c.walk(h.Before, on); refused != nil {
			return refused
		}
	}
	return nil
}

// dropped says that nothing of what a hop brought is taken on by the one behind it, the last of the way or else the copying, since that leads back to
// where the hop came from.
func (c *Copying) dropped(h Hop, way []Hop) bool {
	behind, to := &c.Hop, c.Target
	if n := len(way); n == 1 {
		behind, to = &way[0], c.From()
	} else if n > 1 {
		behind, to = &way[n-1], way[n-2].From()
	}
	return h.Drop && behind.Drop && h.From() == to
}

// closes says that a way, whose first hop is the last that the topic passed, makes a ring with the copying.
func (c *Copying) closes(way []Hop) bool {
	origin := way[len(way)-1]
	if origin.Cluster != c.Target.Cluster {
		return false
	}
	if origin.Topic == c.Target.Topic {
		return true
	}
	// It comes back under another name. If all take that too, its copies have copies without end.
	topic, known := c.Target.Topic, true
	for i := len(way) - 1; i >= 0 && known; i-- {
		if !way[i].Takes.Takes(topic) {
			return false
		}
		topic, known = way[i].Takes.renamed(topic)
	}
	return !known || c.Takes.Takes(topic)
}

// last says that the copying began after all those of a ring that can see it.
func (c *Copying) last(way []Hop) bool {
	for i := range way {
		h := &way[i]
		later := cmp.Or(cmp.Compare(h.Since, c.Since), strings.Compare(h.Route, c.Route), strings.Compare(h.Cluster, c.Cluster),
			strings.Compare(h.Topic, c.Topic)) > 0 // the names decide between routes that began at once
		if later && !h.Blind {
			return false
		}
	}
	return true
}
