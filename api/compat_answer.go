package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// compatText answers as uReplicator does: everything is plain text, JSON too.
func compatText(w http.ResponseWriter, code int, format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	w.Header().Set("Accept-Ranges", "bytes")
	write(w, code, "text/plain;charset=utf-8", []byte(text))
}

// compatFailed answers what went wrong: 503 if this process leads no longer, so that the client tries again.
func compatFailed(w http.ResponseWriter, err error, format string, args ...any) {
	if errors.Is(err, ErrNoLeader) {
		noLeader(w)
		return
	}
	compatText(w, http.StatusInternalServerError, format, args...)
}

// compatJSON answers 200 with JSON.
func compatJSON(w http.ResponseWriter, body any) {
	text, err := json.Marshal(body)
	if err != nil { // only our own types come here
		text = []byte("{}")
	}
	compatText(w, http.StatusOK, "%s", text)
}

func write(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff") // what clients sent stands in answers
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = bytes.NewReader(body).WriteTo(w) // plain text or JSON, which browsers are told not to take for anything else
}

// compatFault is what the HTTP framework of uReplicator said of a status: clients parse it.
type compatFault struct{ reason, description, section string }

func faultOf(code int) compatFault {
	switch code {
	case http.StatusNotFound:
		return compatFault{"Not Found", "The server has not found anything matching the request URI", "10.4.5"}
	case http.StatusMethodNotAllowed:
		return compatFault{
			"Method Not Allowed", "The method specified in the request is not allowed for the resource identified by the request URI", "10.4.6",
		}
	case http.StatusUnsupportedMediaType:
		return compatFault{
			"Unsupported Media Type",
			"The server is refusing to service the request because the entity of the request is in a format not supported by the requested resource for the requested method",
			"10.4.16",
		}
	}
	return compatFault{"Internal Server Error", "The server encountered an unexpected condition which prevented it from fulfilling the request", "10.5.1"}
}

// compatError answers with an error that is none of a resource's own, in the form that the client prefers.
func compatError(w http.ResponseWriter, r *http.Request, code int) {
	f := faultOf(code)
	uri := "http://www.w3.org/Protocols/rfc2616/rfc2616-sec10.html#sec" + f.section
	switch preferred(r.Header.Get("Accept")) {
	case "text/html":
		write(w, code, "text/html;charset=utf-8", []byte(statusPage(f, uri)))
	case "text/plain":
		write(w, code, "text/xml", nil)
	case "application/xml":
		write(w, code, "application/xml", nil)
	default:
		text, err := json.Marshal(map[string]any{
			"code": code, "contactEmail": nil, "description": f.description, "homeRef": "/", "reasonPhrase": f.reason, "uri": uri,
		})
		if err != nil {
			text = nil
		}
		write(w, code, "application/json", text)
	}
}

// statusPage is the page of a status, as browsers got it.
func statusPage(f compatFault, uri string) string {
	return "<html>\n<head>\n   <title>Status page</title>\n</head>\n<body style=\"font-family: sans-serif;\">\n" +
		"<p style=\"font-size: 1.2em;font-weight: bold;margin: 1em 0px;\">" + f.reason + "</p>\n<p>" + f.description + "</p>\n" +
		"<p>You can get technical details <a href=\"" + uri + "\">here</a>.<br>\n" +
		"Please continue your visit at our <a href=\"/\">home page</a>.\n</p>\n</body>\n</html>\n"
}

// preferred gives the best known media type of an Accept header (RFC 9110 §12.5.1); JSON when none is better.
func preferred(accept string) string {
	type choice struct {
		kind string
		q    float64
	}
	var choices []choice
	for part := range strings.SplitSeq(accept, ",") {
		kind, rest, _ := strings.Cut(part, ";")
		c := choice{kind: strings.ToLower(strings.TrimSpace(kind)), q: 1}
		for param := range strings.SplitSeq(rest, ";") {
			if key, value, _ := strings.Cut(strings.TrimSpace(param), "="); key == "q" {
				if q, err := strconv.ParseFloat(value, 64); err == nil {
					c.q = q
				}
			}
		}
		if c.q > 0 {
			choices = append(choices, c)
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(b.q, a.q) })
	for _, c := range choices {
		switch c.kind {
		case "text/html", "text/plain", "application/xml", "application/json":
			return c.kind
		case "*/*", "application/*":
			return "application/json"
		}
	}
	return "application/json"
}
