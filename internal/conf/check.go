package conf

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// checker walks a document beside the type that it is for.
type checker struct {
	env      func(string) (string, bool)
	expanded map[*yaml.Node]string // nodes that held ${…}, with the text before
	inside   map[*yaml.Node]bool   // aliases being followed
	faults   []*FaultError
}

func (c *checker) fault(n *yaml.Node, key, format string, args ...any) {
	c.faults = append(c.faults, &FaultError{Line: n.Line, Key: key, Reason: fmt.Sprintf(format, args...)})
}

// check compares a node with a type.
func (c *checker) check(n *yaml.Node, t reflect.Type, key string) {
	switch {
	case n.Kind == yaml.AliasNode:
		c.follow(n, t, key)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && c.expanded[n] == "":
		// a key without value
	case reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()):
		c.leaf(n, t, key)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		c.text(n, t, key)
	case t.Kind() == reflect.Pointer:
		c.check(n, t.Elem(), key)
	case t.Kind() == reflect.Struct:
		c.fields(n, t, key)
	case t.Kind() == reflect.Map:
		c.entries(n, t, key)
	case t.Kind() == reflect.Slice:
		c.items(n, t, key)
	default:
		c.leaf(n, t, key)
	}
}

// follow checks what an alias stands for, in the place where it stands.
func (c *checker) follow(n *yaml.Node, t reflect.Type, key string) {
	if c.inside[n.Alias] {
		c.fault(n, key, "the alias %s contains itself", n.Value)
		return
	}
	c.inside[n.Alias] = true
	c.check(n.Alias, t, key)
	delete(c.inside, n.Alias)
}

// mapping says whether a node is one, and reports keys that stand twice.
func (c *checker) mapping(n *yaml.Node, key string) bool {
	if n.Kind != yaml.MappingNode {
		c.fault(n, key, "want keys and values, got %s", c.show(n))
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		for j := range i / 2 {
			if first := n.Content[2*j]; first.Value == n.Content[i].Value {
				c.fault(n.Content[i], join(key, first.Value), "stands twice, first in line %d", first.Line)
			}
		}
	}
	return true
}

func (c *checker) fields(n *yaml.Node, t reflect.Type, key string) {
	if !c.mapping(n, key) {
		return
	}
	known := fieldsOf(t)
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.ShortTag() == "!!merge" {
			c.merge(value, t, key)
			continue
		}
		f, ok := known[name.Value]
		if !ok {
			c.fault(name, join(key, name.Value), "unknown key%s", hint(name.Value, known))
			continue
		}
		c.check(value, f, join(key, name.Value))
	}
}

// merge checks what << brings in: one mapping, or a list of them.
func (c *checker) merge(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			c.check(item, t, key)
		}
		return
	}
	c.check(n, t, key)
}

func (c *checker) entries(n *yaml.Node, t reflect.Type, key string) {
	if !c.mapping(n, key) {
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			c.merge(n.Content[i+1], t, key)
			continue
		}
		c.check(n.Content[i], t.Key(), key)
		c.check(n.Content[i+1], t.Elem(), join(key, n.Content[i].Value))
	}
}

func (c *checker) items(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind != yaml.SequenceNode {
		c.fault(n, key, "want a list, got %s", c.show(n))
		return
	}
	for i, item := range n.Content {
		c.check(item, t.Elem(), key+"["+strconv.Itoa(i)+"]")
	}
}

// text checks a value whose type reads text, as Bytes and Duration do.
func (c *checker) text(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind != yaml.ScalarNode {
		c.fault(n, key, "want one value, got %s", c.show(n))
		return
	}
	c.asString(n)
	u, _ := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		c.refuse(n, key, err.Error())
	}
}

// leaf tries a value on a fresh variable, so that a fault gets its key and the rest is still checked.
func (c *checker) leaf(n *yaml.Node, t reflect.Type, key string) {
	if t.Kind() == reflect.String {
		if n.Kind != yaml.ScalarNode {
			c.fault(n, key, "want one value, got %s", c.show(n))
			return
		}
		c.asString(n)
	} else if _, ok := c.expanded[n]; ok && t.Kind() != reflect.Interface {
		n.Tag, n.Style = "", 0 // quotes are needed around ${…} inside { }, also where it stands for a number
	}
	if describe(t) == wholeNumber && n.ShortTag() == "!!float" { // yaml would cut it
		c.fault(n, key, "want %s, got %s", wholeNumber, c.show(n))
		return
	}
	err := n.Decode(reflect.New(t).Interface())
	var typed *yaml.TypeError
	switch {
	case err == nil:
	case errors.As(err, &typed) && n.Kind == yaml.ScalarNode:
		c.fault(n, key, "want %s, got %s", describe(t), c.show(n))
	default:
		c.refuse(n, key, err.Error())
	}
}

// refuse reports an error of the type's own, unless the value came from the environment: then the error may repeat it.
func (c *checker) refuse(n *yaml.Node, key, reason string) {
	if before, ok := c.expanded[n]; ok {
		reason = "what " + before + " stands for is refused"
	}
	c.fault(n, key, "%s", reason)
}

// asString keeps a value from the environment from being read as a number, a truth value or nothing.
func (c *checker) asString(n *yaml.Node) {
	if _, ok := c.expanded[n]; ok {
		n.Tag = "!!str"
	}
}

// show gives a node for an error, without what came from the environment.
func (c *checker) show(n *yaml.Node) string {
	switch before, ok := c.expanded[n]; {
	case ok:
		return "what " + before + " stands for"
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return strconv.Quote(n.Value)
	}
}

const wholeNumber = "a whole number"

func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if t.String() == "time.Duration" {
			return "a duration"
		}
		return wholeNumber
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return wholeNumber // the bounds are Validate's to tell
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return "a " + t.Kind().String()
	}
}

// fieldsOf gives the keys of a struct as yaml has them, those of inlined structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if (!f.IsExported() && !f.Anonymous) || name == "-" || len(f.Index) > 1 {
			continue
		}
		if slices.Contains(strings.Split(options, ","), "inline") {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			maps.Copy(known, fieldsOf(inner))
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		known[name] = f.Type
	}
	return known
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}
