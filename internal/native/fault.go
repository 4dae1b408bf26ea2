package native

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mirror/causeway/cluster"
	"github.com/causeway-mirror/causeway/internal/conf"
)

// FaultError is one wrong value.
type FaultError struct {
	Key, Value string // Value is empty if there is none
	Reason     string
}

// Error is one line.
func (f *FaultError) Error() string { return fmt.Sprintf("%s %q: %s", f.Key, f.Value, f.Reason) }

// Fault is one wrong value: key, value, reason.
func Fault(key, value, reason string) error { return &FaultError{key, value, reason} }

// Given keeps of joined errors those about a value that is there. Where a file could not be read whole, what is missing may have stood in the
// rest.
func Given(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var kept []error
		for _, e := range joined.Unwrap() {
			kept = append(kept, Given(e))
		}
		return errors.Join(kept...)
	}
	var ours *FaultError
	if errors.As(err, &ours) && ours.Value == "" {
		return nil
	}
	var theirs *cluster.ConfigError
	if errors.As(err, &theirs) && theirs.Value == "" && theirs.Err == nil {
		return nil
	}
	return err
}

// OneOf is a fault if value is none of the allowed ones.
func OneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Fault(key, value, "must be "+strings.Join(allowed, " or "))
}

// AtLeastOne is a fault if n is less.
func AtLeastOne(key string, n int) error {
	if n >= 1 {
		return nil
	}
	return Fault(key, strconv.Itoa(n), "must be at least 1")
}

// Positive is a fault if d is not.
func Positive(key string, d conf.Duration) error {
	if d > 0 {
		return nil
	}
	return Fault(key, d.String(), "must be more than 0s")
}

func notNegative(key string, d conf.Duration) error {
	if d >= 0 {
		return nil
	}
	return Fault(key, d.String(), "must be 0s or more")
}

// Prefixed puts a text before each of the errors that were joined into err.
func Prefixed(err error, prefix string) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, Prefixed(e, prefix))
		}
		return errors.Join(all...)
	}
	return fmt.Errorf("%s%w", prefix, err)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
