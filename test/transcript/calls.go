package transcript

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Call is one call and its answer. Either JSON or Text is the answer's body.
type Call struct {
	Section     string         `json:"section"`
	Method      string         `json:"method"`
	Path        string         `json:"path"`
	Accept      string         `json:"accept"` // empty: */*
	Body        *string        `json:"body"`   // nil: none
	BodyType    string         `json:"bodyType"`
	Note        string         `json:"note"`
	Status      int            `json:"status"`
	ContentType string         `json:"type"`
	Allow       string         `json:"allow"`
	JSON        map[string]any `json:"json"`
	Text        string         `json:"text"`
}

// String names the call.
func (c Call) String() string {
	name := c.Section + " " + c.Method + " " + c.Path
	if c.Body != nil {
		name += " " + *c.Body
	}
	if c.Note != "" {
		name += " # " + c.Note
	}
	return name
}

// Calls reads a file of calls.
func Calls(path string) ([]Call, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Call
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c Call
		if err = json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(out)+1, err)
		}
		out = append(out, c)
	}
	return out, lines.Err()
}

// Do makes the call.
func (c Call) Do(client *http.Client, base string) (Answer, error) {
	var body io.Reader = http.NoBody
	if c.Body != nil {
		body = strings.NewReader(*c.Body)
	}
	req, err := http.NewRequest(c.Method, base+c.Path, body)
	if err != nil {
		return Answer{}, err
	}
	if req.Header.Set("Accept", "*/*"); c.Accept != "" {
		req.Header.Set("Accept", c.Accept)
	}
	if c.BodyType != "" {
		req.Header.Set("Content-Type", c.BodyType)
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Allow: resp.Header.Get("Allow"), Body: string(text)}, err
}

// Answer is what came back.
type Answer struct {
	Status                   int
	ContentType, Allow, Body string
}

// Differs says how an answer differs from what the call should get; empty when it does not. orderless: the order of lists does not matter.
func (c Call) Differs(a Answer, orderless bool) string {
	switch {
	case a.Status != c.Status:
		return fmt.Sprintf("status %d, want %d, body %q", a.Status, c.Status, a.Body)
	case a.ContentType != c.ContentType:
		return fmt.Sprintf("content type %q, want %q", a.ContentType, c.ContentType)
	case c.Allow != "" && a.Allow != c.Allow:
		return fmt.Sprintf("allow %q, want %q", a.Allow, c.Allow)
	case c.JSON == nil && orderless:
		if sortedList(a.Body) != sortedList(c.Text) {
			return fmt.Sprintf("body %q, want %q in any order", a.Body, c.Text)
		}
		return ""
	case c.JSON == nil:
		if a.Body != c.Text {
			return fmt.Sprintf("body %q, want %q", a.Body, c.Text)
		}
		return ""
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
		return fmt.Sprintf("body %q: %s", a.Body, err)
	}
	var want any = c.JSON
	var is any = got
	if orderless {
		want, is = sorted(want), sorted(is)
	}
	if !reflect.DeepEqual(is, want) {
		return fmt.Sprintf("body %s, want %v", a.Body, c.JSON)
	}
	return ""
}

var bracketed = regexp.MustCompile(`\[(.*)\]`)

// sortedList orders what stands in brackets.
func sortedList(text string) string {
	return bracketed.ReplaceAllStringFunc(text, func(list string) string {
		items := strings.Split(strings.Trim(list, "[]"), ", ")
		slices.Sort(items)
		return "[" + strings.Join(items, ", ") + "]"
	})
}

// sorted orders the lists of texts in parsed JSON.
func sorted(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = sorted(value)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			out = append(out, sorted(value))
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return out
	}
	return v
}
