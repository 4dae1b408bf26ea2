package conf

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FaultError is one thing that is wrong in a file.
type FaultError struct {
	Line    int    // counted from 1
	Key     string // such as route.source.bootstrap[0]
	Reason  string
	Unknown bool // there is no such key: which was meant is not known
}

// Error is one line.
func (f *FaultError) Error() string {
	if f.Key == "" {
		return fmt.Sprintf("line %d: %s", f.Line, f.Reason)
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Key, f.Reason)
}

// Decode reads one YAML document into a pointer to a struct, over the defaults that it holds: maps are merged, lists replaced, a key without
// value leaves the default. ${NAME} in a value is replaced by what env knows, $${ stands for ${; a name that env does not know is a fault. All
// faults (*FaultError, by line) come joined; what is not at fault is read all the same, so that the caller can judge it in the same go.
func Decode(data []byte, into any, env func(string) (string, bool)) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic("BUG: conf.Decode needs a pointer")
	}
	root, err := parse(data)
	if err != nil || root == nil {
		return err
	}
	c := &checker{env: env, expanded: map[*yaml.Node]string{}, unset: map[*yaml.Node][]*FaultError{}, inside: map[*yaml.Node]bool{}}
	c.expand(root)
	readable := c.check(root, target.Type().Elem(), "")
	slices.SortStableFunc(c.faults, func(a, b *FaultError) int { return cmp.Compare(a.Line, b.Line) })
	errs := make([]error, 0, len(c.faults)+1)
	for _, f := range c.faults {
		errs = append(errs, f)
	}
	if readable {
		if err := root.Decode(into); err != nil {
			errs = append(errs, fmt.Errorf("decode configuration: %w", err)) // check let something pass that yaml refuses
		}
	}
	return errors.Join(errs...)
}

// parse gives the document's content, or nil if there is none.
func parse(data []byte) (*yaml.Node, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil //nolint:nilnil // an empty file is a valid one that sets nothing
	case err != nil && bytes.Contains(data, []byte("${")):
		return nil, fmt.Errorf("parse configuration: %w (inside { } a value with ${…} needs quotes)", err)
	case err != nil && strings.Contains(err.Error(), "cannot start any token") && bytes.ContainsRune(data, '\t'):
		return nil, fmt.Errorf("parse configuration: %w (a tab? YAML is indented by spaces)", err)
	case err != nil:
		return nil, fmt.Errorf("parse configuration: %w", err)
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("parse configuration: %w", cmp.Or(err, error(&FaultError{Line: second.Line, Reason: "a second document"})))
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil //nolint:nilnil // as above: nothing but comments
	}
	return root, nil
}
