package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// description is the OpenAPI document as far as its test needs it.
type description struct{ root map[string]any }

// table gives a part of a mapping that is one itself; an empty one if there is none.
func table(m map[string]any, key string) map[string]any {
	inner, _ := m[key].(map[string]any)
	return inner
}

// resolve follows a reference, if it is one.
func (d description) resolve(node map[string]any) (map[string]any, error) {
	ref, ok := node["$ref"].(string)
	if !ok {
		return node, nil
	}
	at := d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		if at = table(at, part); at == nil {
			return nil, fmt.Errorf("%s leads nowhere", ref)
		}
	}
	return d.resolve(at)
}

// keywords are those that check knows. Others would promise something that nobody looks at.
func keywords() []string {
	return []string{
		"$ref", "type", "format", "enum", "minimum", "maximum", "default", "description", "example", "properties", "required", "additionalProperties", "items", "nullable", "minProperties",
	}
}

// check tells where a value is not as a schema says. It is stricter than OpenAPI: a property that is not described is a fault.
func (d description) check(schema map[string]any, value any, at string) []string {
	schema, err := d.resolve(schema)
	if err != nil {
		return []string{at + ": " + err.Error()}
	}
	if value == nil && schema["nullable"] == true {
		return nil
	}
	if allowed, ok := schema["enum"].([]any); ok && !slices.Contains(allowed, value) {
		return []string{fmt.Sprintf("%s: %v is none of %v", at, value, allowed)}
	}
	switch kind := schema["type"]; kind {
	case nil:
		return nil // anything
	case "object":
		return d.checkObject(schema, value, at)
	case "array":
		items, ok := value.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s: %v is no array", at, value)}
		}
		var faults []string
		for i, item := range items {
			faults = append(faults, d.check(table(schema, "items"), item, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return faults
	case "string":
		text, ok := value.(string)
		if ok && schema["format"] == "date-time" {
			_, err = time.Parse(time.RFC3339, text)
			ok = err == nil
		}
		if !ok {
			return []string{fmt.Sprintf("%s: %v is no %v %v", at, value, kind, schema["format"])}
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			return []string{fmt.Sprintf("%s: %v is no boolean", at, value)}
		}
	default:
		return checkNumber(schema, value, at)
	}
	return nil
}

func (d description) checkObject(schema map[string]any, value any, at string) []string {
	object, ok := value.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: %v is no object", at, value)}
	}
	var faults []string
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			faults = append(faults, fmt.Sprintf("%s: %v is missing", at, name))
		}
	}
	for name, inner := range object {
		described, known := table(schema, "properties")[name].(map[string]any)
		if !known {
			described, known = schema["additionalProperties"].(map[string]any)
		}
		if !known {
			faults = append(faults, fmt.Sprintf("%s: %s is not described", at, name))
			continue
		}
		faults = append(faults, d.check(described, inner, at+"."+name)...)
	}
	return faults
}

func checkNumber(schema map[string]any, value any, at string) []string {
	number, ok := value.(json.Number)
	if !ok {
		return []string{fmt.Sprintf("%s: %v is no number", at, value)}
	}
	if _, err := number.Int64(); err != nil && schema["type"] == "integer" {
		return []string{fmt.Sprintf("%s: %v is no integer", at, value)}
	}
	n, err := number.Float64()
	if least, ok := schema["minimum"].(int); err != nil || ok && n < float64(least) {
		return []string{fmt.Sprintf("%s: %v is less than %d", at, value, least)}
	}
	return nil
}

// schemas calls visit for every schema of the document, with its place.
func (d description) schemas(visit func(at string, schema map[string]any)) {
	var walk func(at string, node any, isSchema bool)
	walk = func(at string, node any, isSchema bool) {
		if list, ok := node.([]any); ok {
			for i, item := range list {
				walk(fmt.Sprintf("%s[%d]", at, i), item, false)
			}
		}
		m, ok := node.(map[string]any)
		if !ok {
			return
		}
		if isSchema {
			visit(at, m)
		}
		for key, inner := range m {
			under := at + "/" + key
			switch {
			case key == "schema" || isSchema && (key == "items" || key == "additionalProperties"):
				walk(under, inner, true)
			case isSchema && key == "properties" || !isSchema && key == "schemas":
				for name, one := range inner.(map[string]any) {
					walk(under+"/"+name, one, true)
				}
			case !isSchema:
				walk(under, inner, false)
			}
		}
	}
	walk("", d.root, false)
}
