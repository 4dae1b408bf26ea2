package cluster

import "strings"

// ConfigError is one thing wrong with a configuration. Its Value is never a secret.
type ConfigError struct {
	// Key is the setting as its author wrote it: of the native file or of the Java client.
	Key string
	// Value is what was given; empty when it is missing or secret.
	Value string
	// Reason says what is wrong with it, Cure what to do.
	Reason, Cure string
	// Err is what lies behind it, if anything.
	Err error
}

// Error reads as one line.
func (f *ConfigError) Error() string {
	var b strings.Builder
	b.WriteString(f.Key)
	if f.Value != "" {
		b.WriteString(" \"" + f.Value + "\"")
	}
	b.WriteString(": " + f.Reason)
	if f.Err != nil {
		b.WriteString(": " + f.Err.Error())
	}
	if f.Cure != "" {
		b.WriteString("; " + f.Cure)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *ConfigError) Unwrap() error { return f.Err }
