// Package conf reads configuration files: strict YAML, with environment variables, sizes, durations and secrets kept in files.
//
// It promises that nothing in a file is ignored (an unknown key is an error that names the nearest known one and the line), that all faults
// come at once, that a value from the environment is never taken for structure nor repeated in an error, and that the target is untouched
// when there is any fault. It reads no environment itself, has no goroutines, and knows no setting: each package declares its own.
package conf
