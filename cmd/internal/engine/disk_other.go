//go:build !linux

package engine

import "errors"

func freeBytes(string) (float64, error) { return 0, errors.ErrUnsupported }
