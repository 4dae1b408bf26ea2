package loops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// GroupPrefix begins the names of the consumer groups that hold markers.
const GroupPrefix = "__causeway."

// Group is the consumer group that holds the markers of a route.
func Group(route string) string { return GroupPrefix + route }

// MaxBytes is how long a marker may be: the brokers' offset.metadata.max.bytes, as it is unless somebody changed it.
const MaxBytes = 4096

// maxDepth is how many hops a marker follows one behind the other. Longer chains of mirrors are not known; names that grow in a ring end here.
const maxDepth = 16

// version is that of the marker's form.
const version = 1

// Place is a topic on a cluster.
type Place struct {
	Cluster string // its id
	Topic   string
}

// Selection is what a route takes of its source by name, and what it makes of the names.
type Selection struct {
	Include []string `json:"include"`           // RE2, whole name
	Exclude []string `json:"exclude,omitempty"` // RE2, whole name
	Rename  string   `json:"rename,omitempty"`  // a name with {topic} in it; empty: not known
}

// Takes says that a route with this selection copies a topic; of one that is not known (nil) that is assumed. Patterns that can't be read match.
func (s *Selection) Takes(topic string) bool {
	if s == nil {
		return true
	}
	matches := func(pattern string) bool {
		re, err := regexp.Compile(`^(?:` + pattern + `)$`)
		return err != nil || re.MatchString(topic)
	}
	return !strings.HasPrefix(topic, "__") && slices.ContainsFunc(s.Include, matches) && !slices.ContainsFunc(s.Exclude, func(pattern string) bool {
		re, err := regexp.Compile(`^(?:` + pattern + `)$`)
		return err == nil && re.MatchString(topic)
	})
}

// renamed is what a topic is called behind a route; false if that is not known.
func (s *Selection) renamed(topic string) (string, bool) {
	if s == nil || s.Rename == "" {
		return "", false
	}
	return strings.ReplaceAll(s.Rename, "{topic}", topic), true
}

// Hop is one route's copying of one topic.
type Hop struct {
	Route   string `json:"route"`
	Cluster string `json:"cluster"` // the id of the cluster that it is copied from
	Topic   string `json:"topic"`   // its name there
	Since   int64  `json:"since"`   // when the route began, in ms since 1970
	// Renewed is when the route was last known to want this, in ms since 1970; 0 in hops that were carried on.
	Renewed int64 `json:"renewed,omitempty"`
	// Producers are the ids under which the route writes, or has written, as far as they are known; with Drop all of them.
	Producers []int64 `json:"producers,omitempty"`
	// Drop says that the route leaves out what another one has brought from where it copies to, if that one does so too.
	Drop bool `json:"drop,omitempty"`
	// Leaves are the producer ids of what it leaves out, which it still knows when the marker that named them is gone.
	Leaves []int64 `json:"leaves,omitempty"`
	// Blind says that the route can't read the markers of its source, so that it will not see a ring.
	Blind  bool       `json:"blind,omitempty"`
	Takes  *Selection `json:"takes,omitempty"`  // nil: not known
	Before []Hop      `json:"before,omitempty"` // how the topic came to where it is copied from
}

// From is where the topic is copied from.
func (h *Hop) From() Place { return Place{h.Cluster, h.Topic} }

// Marker says how a topic came to be where it is.
type Marker struct {
	Version int   `json:"v"`
	Hops    []Hop `json:"hops"`          // one for each source topic, in no order that means anything
	Cut     bool  `json:"cut,omitempty"` // there is more behind the hops than fitted
}

// ErrMarker is that of a text which is no marker that this version knows.
var ErrMarker = errors.New("no marker that this version knows")

// Parse reads a marker. Fields that are not known are passed over: they are of a later version that says the same and more.
func Parse(text string) (Marker, error) {
	var m Marker
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Marker{}, fmt.Errorf("%w: %w", ErrMarker, err)
	}
	if m.Version != version {
		return Marker{}, fmt.Errorf("%w: its version is %d, not %d", ErrMarker, m.Version, version)
	}
	for i := range m.Hops {
		if h := &m.Hops[i]; h.Cluster == "" || h.Topic == "" || h.Route == "" {
			return Marker{}, fmt.Errorf("%w: a hop without route, cluster or topic", ErrMarker)
		}
	}
	m.Hops = carried(m.Hops, nil, 0)
	return m, nil
}

// Format writes a marker of these hops, in at most maxBytes. What is too long loses first the selections of the hops behind it, then its own: what
// is not known is taken for "everything", which refuses rather than lets pass. Then it loses hops, the farthest first, and cut says so. The text is
// empty where there is nothing to say, or not even that fits.
func Format(hops []Hop, maxBytes int) (text string, cut bool) {
	if len(hops) == 0 {
		return "", false
	}
	for _, shorten := range []func(Hop, int) (Hop, bool){
		func(h Hop, _ int) (Hop, bool) { return h, true },
		func(h Hop, depth int) (Hop, bool) {
			if depth > 0 {
				h.Takes = nil
			}
			return h, true
		},
		func(h Hop, _ int) (Hop, bool) { h.Takes = nil; return h, true },
	} {
		if text = encode(Marker{Version: version, Hops: mapped(hops, shorten, 0)}); len(text) <= maxBytes {
			return text, false
		}
	}
	for most := maxDepth - 1; most > 0; most-- {
		short := mapped(hops, func(h Hop, depth int) (Hop, bool) { h.Takes = nil; return h, depth < most }, 0)
		if text = encode(Marker{Version: version, Hops: short, Cut: true}); len(text) <= maxBytes {
			return text, true
		}
	}
	return "", true
}

func encode(m Marker) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)  // routes and patterns are full of what HTML escapes
	if e.Encode(m) != nil { // it has nothing that can't be encoded
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// mapped is a tree of hops with each one changed, and those left out that change does not want.
func mapped(hops []Hop, change func(h Hop, depth int) (Hop, bool), depth int) []Hop {
	var out []Hop
	for _, h := range hops {
		h, keep := change(h, depth)
		if !keep {
			continue
		}
		h.Before = mapped(h.Before, change, depth+1)
		out = append(out, h)
	}
	return out
}

// carried is a tree of hops without those that come round: in a ring that runs already, each round would add its hops again.
func carried(hops, on []Hop, depth int) []Hop {
	if depth == maxDepth {
		return nil
	}
	var out []Hop
	for _, h := range hops {
		if slices.ContainsFunc(on, func(o Hop) bool { return o.Route == h.Route && o.From() == h.From() }) {
			continue
		}
		h.Before = carried(h.Before, slices.Concat(on, []Hop{h}), depth+1)
		out = append(out, h)
	}
	return out
}
