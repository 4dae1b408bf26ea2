package native

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Filter decides which topics of the source are mirrored.
type Filter struct {
	include, exclude []pattern
}

// pattern is one RE2 expression that a topic's whole name must match.
type pattern struct {
	text string
	re   *regexp.Regexp
}

// plainName is what every legal topic name looks like. A pattern of this form is meant as a name, even with dots in it.
var plainName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

func compilePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, errors.New("is empty")
	}
	// First the author's own text: a stray parenthesis must not find its partner in our frame.
	if _, err := regexp.Compile(text); err != nil {
		hint := ""
		if text == "*" {
			hint = ` (all topics are ".*")`
		}
		return pattern{}, fmt.Errorf("not a regular expression (RE2): %w%s", err, hint)
	}
	re, err := regexp.Compile(`^(?:` + text + `)$`)
	if err != nil {
		return pattern{}, fmt.Errorf("not a regular expression (RE2): %w", err)
	}
	return pattern{text: text, re: re}, nil
}

// name returns the topic that the pattern names literally, if it does.
func (p pattern) name() (string, bool) {
	unescaped := strings.NewReplacer(`\.`, ".", `\-`, "-").Replace(p.text)
	return unescaped, plainName.MatchString(unescaped)
}

// Refusal says why a topic is not mirrored; "" means that it is.
func (f Filter) Refusal(topic string, internal bool) string {
	if internal || strings.HasPrefix(topic, "__") {
		return "internal topic"
	}
	for _, p := range f.exclude {
		if p.re.MatchString(topic) {
			return "matches the exclude pattern " + p.text
		}
	}
	for _, p := range f.include {
		if p.re.MatchString(topic) {
			return ""
		}
	}
	return "matches no include pattern"
}

// Missing lists the topics that are named literally and match nothing that exists.
func (f Filter) Missing(exists func(string) bool) []string {
	var names []string
	for _, p := range f.include {
		if name, literal := p.name(); literal && !exists(name) {
			names = append(names, name)
		}
	}
	return names
}

// SplitPatterns cuts a list at its commas, but not at those inside (), [] or {} or after a backslash, which belong to an expression.
func SplitPatterns(list string) []string {
	var (
		parts []string
		start int
		depth int
	)
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '\\':
			i++
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(list[start:]))
}
