package operator

import "fmt"

// InvalidError says that something can't be meant.
type InvalidError struct {
	Key    string
	Value  any
	Reason string
}

// Error names key, value and reason.
func (e *InvalidError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Key, e.Value, e.Reason) }
