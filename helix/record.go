package helix

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const (
	// maxRecordBytes is Helix's own limit for a znode's data, a little below ZooKeeper's default of 1 MiB for a request.
	maxRecordBytes = 1000 * 1024
	// maxInflatedBytes bounds what a compressed record may become: the bytes are foreign.
	maxInflatedBytes = 256 << 20
)

// Record is what Helix stores in a znode (its ZNRecord). The maps of a record made by [NewRecord] or [DecodeRecord] are never nil.
type Record struct {
	ID     string
	Simple map[string]string
	List   map[string][]string
	Map    map[string]map[string]string
	// Raw is Helix's rawPayload, kept for whoever wrote it; nil if there is none.
	Raw []byte
}

// NewRecord returns an empty record.
func NewRecord(id string) *Record {
	return &Record{ID: id, Simple: map[string]string{}, List: map[string][]string{}, Map: map[string]map[string]string{}}
}

// Clone returns a deep copy.
func (r *Record) Clone() *Record {
	c := &Record{ID: r.ID, Simple: maps.Clone(r.Simple), List: maps.Clone(r.List), Map: maps.Clone(r.Map), Raw: slices.Clone(r.Raw)}
	for key, list := range c.List {
		c.List[key] = slices.Clone(list)
	}
	for key, m := range c.Map {
		c.Map[key] = maps.Clone(m)
	}
	return c
}

// Equal compares contents; nil and empty are equal.
func (r *Record) Equal(o *Record) bool {
	return r.ID == o.ID && maps.Equal(r.Simple, o.Simple) && maps.EqualFunc(r.List, o.List, slices.Equal[[]string]) &&
		maps.EqualFunc(r.Map, o.Map, maps.Equal[map[string]string, map[string]string]) && bytes.Equal(r.Raw, o.Raw)
}

// flag reads a boolean of the simple fields as Java does: "true" in any case.
func (r *Record) flag(key string) bool { return strings.EqualFold(r.Simple[key], configTrue) }

// wireRecord is the record's JSON. The order is that of Helix's own streaming writer.
type wireRecord struct {
	ID     string                       `json:"id"`
	Simple map[string]string            `json:"simpleFields"`
	List   map[string][]string          `json:"listFields"`
	Map    map[string]map[string]string `json:"mapFields"`
	Raw    []byte                       `json:"rawPayload,omitempty"`
}

// Encode gives the znode's bytes: JSON that every Java peer reads, gzip if the record asks for it (enableCompression) or does not fit
// otherwise. Errors: ErrTooLarge; ErrMalformed for a record without id, which would stop a Java controller for good.
func (r *Record) Encode() ([]byte, error) {
	if r.ID == "" {
		return nil, fmt.Errorf("%w: no id", ErrMalformed)
	}
	w := wireRecord{ID: r.ID, Simple: orEmpty(r.Simple), List: maps.Clone(orEmpty(r.List)), Map: maps.Clone(orEmpty(r.Map)), Raw: r.Raw}
	for key, list := range w.List { // a nil one would be written as null
		if list == nil {
			w.List[key] = []string{}
		}
	}
	for key, m := range w.Map {
		w.Map[key] = orEmpty(m)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(w); err != nil {
		return nil, fmt.Errorf("encode record %s: %w", r.ID, err)
	}
	data := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if r.flag(keyCompress) || len(data) > maxRecordBytes {
		data = compress(data)
	}
	if len(data) > maxRecordBytes {
		return nil, fmt.Errorf("encode record %s: %w: %d bytes of at most %d", r.ID, ErrTooLarge, len(data), maxRecordBytes)
	}
	return data, nil
}

func orEmpty[M ~map[string]V, V any](m M) M {
	if m == nil {
		return M{}
	}
	return m
}

func compress(data []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(data) // a bytes.Buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// DecodeRecord reads a znode's bytes, gzip or not. It takes everything that some peer takes: members that are missing, unknown or null, numbers
// and booleans as strings. Errors: ErrEmpty for no bytes at all (many nodes are folders only), ErrMalformed.
func DecodeRecord(data []byte) (*Record, error) {
	if len(data) == 0 {
		return nil, ErrEmpty
	}
	if len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b {
		var err error
		if data, err = decompress(data); err != nil {
			return nil, err
		}
	}
	// A decoder, since what follows the object is nobody's concern: Java stops reading there.
	var members map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&members); err != nil {
		return nil, malformed(err)
	}
	if members == nil {
		return nil, fmt.Errorf("%w: null", ErrMalformed)
	}
	id, ok := members["id"]
	if !ok {
		return nil, fmt.Errorf("%w: no id", ErrMalformed)
	}
	r := NewRecord("")
	if err := errors.Join(decodeID(id, r), decodeMaps(members, r), decodeRaw(members["rawPayload"], r)); err != nil {
		return nil, malformed(err)
	}
	return r, nil
}

func malformed(err error) error { return fmt.Errorf("%w: %w", ErrMalformed, err) }

func decompress(data []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, malformed(err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxInflatedBytes+1))
	if err != nil {
		return nil, malformed(err)
	}
	if len(text) > maxInflatedBytes {
		return nil, fmt.Errorf("%w: more than %d bytes when decompressed", ErrMalformed, maxInflatedBytes)
	}
	return text, nil
}

func decodeID(data json.RawMessage, r *Record) error {
	var id text
	if err := json.Unmarshal(data, &id); err != nil {
		return fmt.Errorf("id: %w", err)
	}
	if id.null {
		return errors.New("id: null")
	}
	r.ID = id.string
	return nil
}

func decodeMaps(members map[string]json.RawMessage, r *Record) error {
	var simple map[string]text
	var list map[string][]text
	var nested map[string]map[string]text
	for key, into := range map[string]any{"simpleFields": &simple, "listFields": &list, "mapFields": &nested} {
		if data, ok := members[key]; ok {
			if err := json.Unmarshal(data, into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	r.Simple = strs(simple)
	for key, values := range list {
		r.List[key] = make([]string, 0, len(values))
		for _, v := range values {
			r.List[key] = append(r.List[key], v.string)
		}
	}
	for key, m := range nested {
		r.Map[key] = strs(m)
	}
	return nil
}

func decodeRaw(data json.RawMessage, r *Record) error {
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, &r.Raw); err != nil {
		return fmt.Errorf("rawPayload: %w", err)
	}
	return nil
}

// strs leaves nulls out: a key without value is no key.
func strs(in map[string]text) map[string]string {
	out := make(map[string]string, len(in))
	for key, v := range in {
		if !v.null {
			out[key] = v.string
		}
	}
	return out
}

// text is a JSON scalar read as a string.
type text struct {
	string
	null bool
}

// UnmarshalJSON takes strings, numbers, booleans and null.
func (t *text) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, &t.string)
	case '{', '[':
		return fmt.Errorf("%.20s…: must be a string", data)
	case 'n':
		t.null = true
		return nil
	}
	t.string = string(data)
	return nil
}
