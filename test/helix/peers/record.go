package peers

import (
	"maps"
	"slices"
	"strings"
)

// Record is an ideal state or an external view as Java sees it. Both maps may be nil.
type Record struct {
	// Simple is the record's simple fields, like REPLICAS.
	Simple map[string]string
	// Replicas is the state of each replica, wanted or seen: by partition and instance.
	Replicas map[string]map[string]string
}

// fields is the record as java/Admin.java reads it, in a fixed order.
func (r Record) fields() []string {
	var fields []string
	for _, key := range slices.Sorted(maps.Keys(r.Simple)) {
		fields = append(fields, key+"="+r.Simple[key])
	}
	for _, partition := range slices.Sorted(maps.Keys(r.Replicas)) {
		if len(r.Replicas[partition]) == 0 {
			fields = append(fields, partition+">")
		}
		for _, instance := range slices.Sorted(maps.Keys(r.Replicas[partition])) {
			fields = append(fields, partition+">"+instance+"="+r.Replicas[partition][instance])
		}
	}
	return fields
}

// parseRecord is the inverse of fields. No fields mean that there is no such record: its maps are nil.
func parseRecord(fields []string) Record {
	if len(fields) == 0 {
		return Record{}
	}
	r := Record{Simple: map[string]string{}, Replicas: map[string]map[string]string{}}
	for _, field := range fields {
		partition, replica, ok := strings.Cut(field, ">")
		if !ok {
			key, value, _ := strings.Cut(field, "=")
			r.Simple[key] = value
			continue
		}
		if r.Replicas[partition] == nil {
			r.Replicas[partition] = map[string]string{}
		}
		if instance, state, ok := strings.Cut(replica, "="); ok {
			r.Replicas[partition][instance] = state
		}
	}
	return r
}
