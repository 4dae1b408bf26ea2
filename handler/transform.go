package handler

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	"github.com/causeway-mirror/causeway/batch"
)

// Transform looks at one record and may change it. It must give the same verdict for the same record always and everywhere, because sequences are
// counted by it. It is called from many goroutines, must not keep the record, and may replace its slices but not write into them, because
// they are the decoder's. An error halts the partition.
type Transform interface {
	Transform(r *batch.Record) (batch.Verdict, error)
}

// compile checks a topic's configuration and builds its chain. Place names it in the faults.
func compile(place string, cfg TopicConfig) ([]Transform, error) {
	var chain []Transform
	var faults []error
	if cfg.Filter != nil {
		f, err := newFilter(place+".filter", *cfg.Filter)
		chain, faults = append(chain, f), append(faults, err)
	}
	if cfg.Transform != nil {
		a, err := newAddHeaders(place+".transform.add_headers", cfg.Transform.AddHeaders)
		chain, faults = append(chain, a), append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return chain, nil
}

// filter keeps what matches.
type filter struct {
	headerName     string
	header, key    *regexp.Regexp // nil: no condition
	dropTombstones bool
}

func newFilter(place string, cfg FilterConfig) (*filter, error) {
	f := &filter{dropTombstones: cfg.Tombstones == DropTombstones}
	var faults []error
	pattern := func(key, text string) *regexp.Regexp {
		if text == "" {
			faults = append(faults, &ConfigError{Key: place + "." + key + ".matches", Reason: "is empty"})
		}
		r, err := regexp.Compile(text)
		if err != nil {
			faults = append(faults, &ConfigError{Key: place + "." + key + ".matches", Value: text, Reason: "is no RE2 expression", Err: err})
		}
		return r
	}
	if cfg.Header != nil {
		f.headerName, f.header = cfg.Header.Name, pattern("header", cfg.Header.Matches)
		if cfg.Header.Name == "" {
			faults = append(faults, &ConfigError{Key: place + ".header.name", Reason: "is empty"})
		}
	}
	if cfg.Key != nil {
		f.key = pattern("key", cfg.Key.Matches)
	}
	switch cfg.Tombstones {
	case "", KeepTombstones, DropTombstones:
	default:
		faults = append(faults, &ConfigError{Key: place + ".tombstones", Value: cfg.Tombstones, Reason: "is neither " + KeepTombstones + " nor " + DropTombstones})
	}
	if cfg.Header == nil && cfg.Key == nil && cfg.Tombstones != DropTombstones {
		faults = append(faults, &ConfigError{Key: place, Reason: "has neither header nor key nor tombstones: " + DropTombstones})
	}
	return f, errors.Join(faults...)
}

// Transform keeps or drops.
func (f *filter) Transform(r *batch.Record) (batch.Verdict, error) {
	tombstone := r.Value == nil
	switch {
	case tombstone && f.dropTombstones,
		f.key != nil && (r.Key == nil || !f.key.Match(r.Key)),
		f.header != nil && !tombstone && !slices.ContainsFunc(r.Headers, f.matches):
		return batch.Drop, nil
	}
	return batch.Keep, nil
}

func (f *filter) matches(h batch.Header) bool {
	return h.Key == f.headerName && f.header.Match(h.Value)
}

// addHeaders appends constant headers.
type addHeaders struct{ headers []batch.Header }

func newAddHeaders(place string, headers map[string]string) (*addHeaders, error) {
	a := &addHeaders{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if name == "" {
			return a, &ConfigError{Key: place, Reason: "has a header without name"}
		}
		a.headers = append(a.headers, batch.Header{Key: name, Value: []byte(headers[name])})
	}
	if len(headers) == 0 {
		return a, &ConfigError{Key: place, Reason: "is empty"}
	}
	return a, nil
}

// Transform appends. The record's headers may lie in the decoder's memory with others behind them: the slice is clipped first.
func (a *addHeaders) Transform(r *batch.Record) (batch.Verdict, error) {
	r.Headers = append(slices.Clip(r.Headers), a.headers...)
	return batch.Changed, nil
}

// chained runs transforms until one drops the record.
func chained(chain []Transform) func(*batch.Record) (batch.Verdict, error) {
	return func(r *batch.Record) (batch.Verdict, error) {
		verdict := batch.Keep
		for _, t := range chain {
			v, err := t.Transform(r)
			if err != nil || v == batch.Drop {
				return batch.Drop, err
			}
			verdict = max(verdict, v)
		}
		return verdict, nil
	}
}
