package transcript

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Difference is one way in which an answer may differ. Lines are tab-separated: section, method, path, aspect, value, reason.
type Difference struct {
	Line                  int
	Section, Method, Path string // * stands for any section
	Aspect                string // status, text, prefix, pattern or order
	Value                 string
	Reason                string
	used                  bool
}

// reasons are a weakness of uReplicator (UW, UK, UC, UM, UX and a number), "jvm" for the text of a Java exception, which is replaced by a plain
// one, and "hash" for an order that uReplicator took from a hash table.
var reasons = regexp.MustCompile(`^((UW|UK|UC|UM|UX)\d+|jvm|hash)$`)

// Differences reads a file of differences. Empty lines and those that begin with # are comments.
func Differences(path string) ([]*Difference, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []*Difference
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Split(text, "\t")
		if len(fields) != 6 {
			return nil, fmt.Errorf("%s, line %d: %d fields, want section, method, path, aspect, value, reason", path, n, len(fields))
		}
		d := &Difference{Line: n, Section: fields[0], Method: fields[1], Path: fields[2], Aspect: fields[3], Value: fields[4], Reason: fields[5]}
		if !reasons.MatchString(d.Reason) {
			return nil, fmt.Errorf("%s, line %d: reason %q is none", path, n, d.Reason)
		}
		out = append(out, d)
	}
	return out, lines.Err()
}

// Needed lists the lines that no call has needed.
func Needed(all []*Difference) (unused []int) {
	for _, d := range all {
		if !d.used {
			unused = append(unused, d.Line)
		}
	}
	return unused
}

func (d *Difference) concerns(c Call) bool {
	return (d.Section == "*" || d.Section == c.Section) && d.Method == c.Method && d.Path == c.Path
}

// Judge says how an answer differs although all that is allowed is. A difference counts as needed when the answer is not right without it.
func Judge(c Call, a Answer, allowed []*Difference) (string, error) {
	var mine []*Difference
	for _, d := range allowed {
		if d.concerns(c) {
			mine = append(mine, d)
		}
	}
	differs, err := judge(c, a, mine)
	if err != nil || differs != "" {
		return differs, err
	}
	for i, d := range mine {
		without := append(append([]*Difference{}, mine[:i]...), mine[i+1:]...)
		if differs, err = judge(c, a, without); err != nil {
			return "", err
		}
		d.used = d.used || differs != ""
	}
	return "", nil
}

func judge(c Call, a Answer, mine []*Difference) (string, error) {
	orderless := false
	for _, d := range mine {
		value, err := strconv.Unquote(`"` + d.Value + `"`)
		if err != nil {
			return "", fmt.Errorf("line %d: value: %w", d.Line, err)
		}
		switch d.Aspect {
		case "status":
			if c.Status, err = strconv.Atoi(value); err != nil {
				return "", fmt.Errorf("line %d: status: %w", d.Line, err)
			}
		case "text":
			c.JSON, c.Text = nil, value
		case "prefix":
			if !strings.HasPrefix(c.Text, value) {
				continue // another call of the same path
			}
			if !strings.HasPrefix(a.Body, value) {
				return fmt.Sprintf("body %q, want it to begin with %q", a.Body, value), nil
			}
			c.Text = a.Body
		case "pattern":
			if ok, err := regexp.MatchString("^(?s:"+value+")$", a.Body); err != nil || !ok {
				return fmt.Sprintf("body %q, want it to match %q", a.Body, value), err
			}
			c.JSON, c.Text = nil, a.Body
		case "order":
			orderless = true
		default:
			return "", fmt.Errorf("line %d: aspect %q is not known", d.Line, d.Aspect)
		}
	}
	return c.Differs(a, orderless), nil
}
