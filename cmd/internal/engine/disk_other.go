//go:build !linux

package engine

import "errors"

// FreeBytes is not asked here.
func FreeBytes(string) (float64, error) { return 0, errors.ErrUnsupported }
