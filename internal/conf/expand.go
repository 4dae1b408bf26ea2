package conf

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// expand replaces ${NAME} in all values, after parsing: a value from the environment can't add keys or lines. Keys are left alone.
func (c *checker) expand(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			c.expand(n.Content[i])
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			c.expand(item)
		}
	case yaml.ScalarNode:
		c.expandScalar(n)
	case yaml.DocumentNode, yaml.AliasNode: // what an alias stands for is expanded where it was written
	}
}

func (c *checker) expandScalar(n *yaml.Node) {
	if !strings.Contains(n.Value, "${") {
		return
	}
	before := n.Value
	n.Value = placeholder().ReplaceAllStringFunc(before, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name, closed := strings.CutSuffix(found[2:], "}")
		value, ok := "", false
		if closed && name != "" && c.env != nil {
			value, ok = c.env(name)
		}
		if !ok {
			reason := fmt.Sprintf("environment variable %s is not set", name)
			if !closed || name == "" {
				reason = "${ without name and }; write $${ for the characters themselves"
			}
			c.fault(n, "", "%s", reason)
			c.unset[n] = append(c.unset[n], c.told())
		}
		return value
	})
	c.expanded[n] = before
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		n.Tag = "" // a plain value is resolved anew: ${STREAMS} may stand for a number
	}
}

func placeholder() *regexp.Regexp { return regexp.MustCompile(`\$\$\{|\$\{[^}\s]*\}?`) }
