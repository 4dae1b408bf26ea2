package handler

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/causeway-mirror/causeway/batch"
)

// Handler answers for one route.
type Handler struct {
	mapping *mapping
	modulo  bool
	topics  map[string]work
}

// work is what is done with a topic's records.
type work struct {
	records     func(*batch.Record) (batch.Verdict, error)
	fingerprint string
}

// Topic is what a route does with one source topic.
type Topic struct {
	Source, Target string
	// Records judges and changes one record. It is nil when nothing looks at records: batches go raw.
	Records func(*batch.Record) (batch.Verdict, error)
	// Fingerprint stands for everything that decides what is sent for an offset: equal configuration gives equal text, in every process
	// and version. It is empty when batches go raw.
	Fingerprint string
}

// New builds the handler of a route between the named clusters. It reads the mapping file, and reports all faults of the configuration.
func New(cfg Config, source, target string) (*Handler, error) {
	m, err := newMapping(cfg, source, target)
	if err = errors.Join(cfg.Validate(), err); err != nil {
		return nil, err
	}
	h := &Handler{mapping: m, modulo: cfg.PartitionMismatch == Modulo, topics: map[string]work{}}
	for topic, tc := range cfg.Overrides {
		chain, err := compile("overrides."+topic, tc)
		if err != nil {
			return nil, err
		}
		if len(chain) == 0 {
			continue
		}
		hash, err := fingerprint(tc)
		if err != nil {
			return nil, fmt.Errorf("fingerprint topic %s: %w", topic, err)
		}
		h.topics[topic] = work{records: chained(chain), fingerprint: hash}
	}
	return h, nil
}

// Topic says what to do with a source topic, or refuses its mapping with a *MappingError.
func (h *Handler) Topic(topic string) (Topic, error) {
	target, err := h.mapping.target(topic)
	if err != nil {
		return Topic{}, err
	}
	w := h.topics[topic]
	return Topic{Source: topic, Target: target, Records: w.records, Fingerprint: w.fingerprint}, nil
}

// fingerprintVersion changes when the meaning of an unchanged configuration does.
const fingerprintVersion = "1:"

// fingerprint hashes what compile reads. JSON sorts the keys of maps, and defaults are written out, so that saying a default changes
// nothing.
func fingerprint(cfg TopicConfig) (string, error) {
	if f := cfg.Filter; f != nil && f.Tombstones == "" {
		explicit := *f
		explicit.Tombstones = KeepTombstones
		cfg.Filter = &explicit
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return fingerprintVersion + hex.EncodeToString(sum[:16]), nil
}
