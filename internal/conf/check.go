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

// checker walks a document beside the type that it is for. What it finds at fault it also takes out, so that the rest can be read.
type checker struct {
	env      func(string) (string, bool)
	expanded map[*yaml.Node]string        // nodes that held ${…}, with the text before
	unset    map[*yaml.Node][]*FaultError // nodes that name what env does not know, and what was told of them
	inside   map[*yaml.Node]bool          // aliases being followed
	faults   []*FaultError
}

func (c *checker) fault(n *yaml.Node, key, format string, args ...any) {
	c.faults = append(c.faults, &FaultError{Line: n.Line, Key: key, Reason: fmt.Sprintf(format, args...)})
}

// told is the newest fault.
func (c *checker) told() *FaultError { return c.faults[len(c.faults)-1] }

// check compares a node with a type. The answer is whether the node can be read as it is now: without what was taken out of it.
func (c *checker) check(n *yaml.Node, t reflect.Type, key string) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		return c.follow(n, t, key)
	case c.unset[n] != nil:
		for _, fault := range c.unset[n] {
			fault.Key = key // now it is known
		}
		return false
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && c.expanded[n] == "":
		return true // a key without value
	case reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()):
		return c.leaf(n, t, key)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return c.text(n, t, key)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return c.check(n, t.Elem(), key)
	case reflect.Struct:
		return c.fields(n, t, key)
	case reflect.Map:
		return c.entries(n, t, key)
	case reflect.Slice:
		return c.items(n, t, key)
	default:
		return c.leaf(n, t, key)
	}
}

// follow checks what an alias stands for, in the place where it stands. It is right or wrong as a whole: it stands elsewhere too.
func (c *checker) follow(n *yaml.Node, t reflect.Type, key string) bool {
	if c.inside[n.Alias] {
		c.fault(n, key, "the alias %s contains itself", n.Value)
		return false
	}
	before := len(c.faults)
	c.inside[n.Alias] = true
	readable := c.check(n.Alias, t, key)
	delete(c.inside, n.Alias)
	return readable && len(c.faults) == before
}

// keep leaves of a node's content only the groups of `size` nodes whose turn says true. A node of which nothing is left can't be read: it says
// something else than one that was empty.
func (c *checker) keep(n *yaml.Node, size int, turn func(i int) bool) bool {
	var kept []*yaml.Node
	for i := 0; i < len(n.Content); i += size {
		if turn(i) {
			kept = append(kept, n.Content[i:i+size]...)
		}
	}
	empty := len(kept) == 0 && len(n.Content) > 0
	if len(c.inside) == 0 {
		n.Content = kept
	}
	return !empty
}

// pairs checks the values of a mapping, which the caller judges one by one, and reports keys that stand twice.
func (c *checker) pairs(n *yaml.Node, key string, value func(name, value *yaml.Node) bool) bool {
	if n.Kind != yaml.MappingNode {
		c.fault(n, key, "want keys and values, got %s", c.show(n, key))
		return false
	}
	first, twice := map[string]*yaml.Node{}, map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		if other := first[name.Value]; other != nil {
			c.fault(name, join(key, name.Value), "stands twice, first in line %d", other.Line)
			twice[name.Value] = true
			continue
		}
		first[name.Value] = name
	}
	return c.keep(n, 2, func(i int) bool { return value(n.Content[i], n.Content[i+1]) && !twice[n.Content[i].Value] })
}

func (c *checker) fields(n *yaml.Node, t reflect.Type, key string) bool {
	known := fieldsOf(t)
	return c.pairs(n, key, func(name, value *yaml.Node) bool {
		if name.ShortTag() == "!!merge" {
			return c.merge(value, t, key)
		}
		f, ok := known[name.Value]
		if !ok {
			c.fault(name, join(key, name.Value), "unknown key%s", hint(name.Value, known))
			c.told().Unknown = true
			return false
		}
		return c.check(value, f, join(key, name.Value))
	})
}

// merge checks what << brings in: one mapping, or a list of them.
func (c *checker) merge(n *yaml.Node, t reflect.Type, key string) bool {
	if n.Kind == yaml.SequenceNode {
		return c.keep(n, 1, func(i int) bool { return c.check(n.Content[i], t, key) })
	}
	return c.check(n, t, key)
}

func (c *checker) entries(n *yaml.Node, t reflect.Type, key string) bool {
	return c.pairs(n, key, func(name, value *yaml.Node) bool {
		if name.ShortTag() == "!!merge" {
			return c.merge(value, t, key)
		}
		named := c.check(name, t.Key(), key)
		return c.check(value, t.Elem(), join(key, name.Value)) && named
	})
}

func (c *checker) items(n *yaml.Node, t reflect.Type, key string) bool {
	if n.Kind != yaml.SequenceNode {
		c.fault(n, key, "want a list, got %s", c.show(n, key))
		return false
	}
	return c.keep(n, 1, func(i int) bool { return c.check(n.Content[i], t.Elem(), key+"["+strconv.Itoa(i)+"]") })
}

// text checks a value whose type reads text, as Bytes and Duration do.
func (c *checker) text(n *yaml.Node, t reflect.Type, key string) bool {
	if n.Kind != yaml.ScalarNode {
		c.fault(n, key, "want one value, got %s", c.show(n, key))
		return false
	}
	c.asString(n)
	u, _ := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	if err := u.UnmarshalText([]byte(n.Value)); err != nil {
		c.refuse(n, key, err.Error())
		return false
	}
	return true
}

// leaf tries a value on a fresh variable, so that a fault gets its key and the rest is still checked.
func (c *checker) leaf(n *yaml.Node, t reflect.Type, key string) bool {
	if t.Kind() == reflect.String {
		if n.Kind != yaml.ScalarNode {
			c.fault(n, key, "want one value, got %s", c.show(n, key))
			return false
		}
		c.asString(n)
	} else if _, ok := c.expanded[n]; ok && t.Kind() != reflect.Interface {
		n.Tag, n.Style = "", 0 // quotes are needed around ${…} inside { }, also where it stands for a number
	}
	if describe(t) == wholeNumber && n.ShortTag() == "!!float" { // yaml would cut it
		c.fault(n, key, "want %s, got %s", wholeNumber, c.show(n, key))
		return false
	}
	err := n.Decode(reflect.New(t).Interface())
	var typed *yaml.TypeError
	switch {
	case err == nil:
	case errors.As(err, &typed) && n.Kind == yaml.ScalarNode:
		c.fault(n, key, "want %s, got %s", describe(t), c.show(n, key))
	default:
		c.refuse(n, key, err.Error())
	}
	return err == nil
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

// show gives a node for an error, without what came from the environment, and without the text of a file that has no keys at all.
func (c *checker) show(n *yaml.Node, key string) string {
	switch before, ok := c.expanded[n]; {
	case ok:
		return "what " + before + " stands for"
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case key == "":
		return "text" // another file than was meant, which may hold a secret
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
