package cluster

import (
	"fmt"
	"os"
	"strings"
)

// mask is what stands for a secret wherever a configuration is shown.
const mask = "********"

// Secret is text that must not be shown. Every way of printing or marshalling it yields a mask (nothing for the empty secret, so that one
// sees whether it is set); Reveal is the only way to its value.
type Secret string

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String returns the mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// Format prints the mask whatever the verb, so that %#v and %x show no more than %s.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// MarshalText yields the mask; JSON and logs use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the value as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// MarshalYAML yields the mask.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// orFile returns the secret, or what the file holds now without the line end that editors leave. Reading it late is what makes rotation work.
func (s Secret) orFile(path string) (string, error) {
	if path == "" {
		return string(s), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
