package native

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
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

// Judged joins what is wrong with a file's form and with the values in it, for programs without flags: so all is told at once. What is missing
// counts only if it can't have stood in what was not read.
func Judged(path string, fileErr, judged error) error {
	return errors.Join(fileErr, Prefixed(Unflagged(Without(judged, fileErr)), path+": "))
}

// Without leaves out of joined errors those that fileErr, of a file that could not be read whole, may be to blame for: what is missing may have
// stood in what was not read. A value that could not be read excuses its own key alone, anything else whatever is missing.
func Without(err, fileErr error) error {
	var unread []string
	anything := false
	_ = each(fileErr, func(e error) error {
		fault, ok := errors.AsType[*conf.FaultError](e)
		if !ok || fault.Unknown || fault.Key == "" {
			anything = true
		} else {
			unread = append(unread, listItem.ReplaceAllString(fault.Key, ""))
		}
		return nil
	})
	return each(err, func(e error) error {
		key, missing := missingKey(e)
		if missing && (anything || slices.ContainsFunc(unread, func(part string) bool { return key == part || strings.HasPrefix(key, part+".") })) {
			return nil
		}
		return e
	})
}

var (
	listItem = regexp.MustCompile(`\[\d+\].*$`)
	flagName = regexp.MustCompile(` \(--[a-z-]+\)`)
)

// missingKey returns the key of a fault about a value that is not there.
func missingKey(err error) (key string, missing bool) {
	if ours, ok := errors.AsType[*FaultError](err); ok {
		return flagName.ReplaceAllString(ours.Key, ""), ours.Value == ""
	}
	theirs, ok := errors.AsType[*cluster.ConfigError](err)
	if !ok || theirs.Value != "" || theirs.Err != nil {
		return "", false
	}
	place, _, _ := strings.Cut(err.Error(), theirs.Key+":")
	return strings.ReplaceAll(flagName.ReplaceAllString(place, ""), ": ", ".") + theirs.Key, true
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

// Unflagged leaves out of the errors that were joined into err the flags that are named beside keys, for programs that have none.
func Unflagged(err error) error {
	return each(err, func(e error) error { return &unflaggedError{e} })
}

type unflaggedError struct{ err error }

func (e *unflaggedError) Error() string { return flagName.ReplaceAllString(e.err.Error(), "") }
func (e *unflaggedError) Unwrap() error { return e.err }

// Prefixed puts a text before each of the errors that were joined into err.
func Prefixed(err error, prefix string) error {
	return each(err, func(err error) error { return fmt.Errorf("%s%w", prefix, err) })
}

// each changes each of the errors that were joined into err, or drops it.
func each(err error, change func(error) error) error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, each(e, change))
		}
		return errors.Join(all...)
	}
	return change(err)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
