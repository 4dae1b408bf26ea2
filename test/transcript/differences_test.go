package transcript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADifferenceIsNeededOnlyIfTheAnswerIsWrongWithoutIt(t *testing.T) {
	call := Call{Section: "A", Method: "GET", Path: "/health", Status: 503, ContentType: "text/plain", Text: "Unhealthy"}
	right := Answer{Status: 503, ContentType: "text/plain", Body: "Unhealthy"}
	better := Answer{Status: 200, ContentType: "text/plain", Body: "OK"}
	lines := func() []*Difference {
		return []*Difference{
			{Line: 1, Section: "*", Method: "GET", Path: "/health", Aspect: "status", Value: "200", Reason: "UC10"},
			{Line: 2, Section: "A", Method: "GET", Path: "/health", Aspect: "text", Value: "OK", Reason: "UC10"},
			{Line: 3, Section: "A", Method: "GET", Path: "/other", Aspect: "text", Value: "OK", Reason: "UC10"},
		}
	}
	allowed := lines()
	differs, err := Judge(call, better, allowed)
	require.NoError(t, err)
	require.Empty(t, differs)
	require.Equal(t, []int{3}, Needed(allowed))

	allowed = lines()
	differs, err = Judge(call, right, allowed)
	require.NoError(t, err)
	require.NotEmpty(t, differs, "a fault that is cured is not an answer that may still be given")
	require.Equal(t, []int{1, 2, 3}, Needed(allowed))
}

func TestAnswersAreCompared(t *testing.T) {
	call := Call{Status: 200, ContentType: "a", JSON: map[string]any{"list": []any{"x", "y"}, "n": 1.0}}
	require.Empty(t, call.Differs(Answer{Status: 200, ContentType: "a", Body: `{"n":1,"list":["x","y"]}`}, false))
	for _, a := range []Answer{
		{Status: 201, ContentType: "a", Body: `{"n":1,"list":["x","y"]}`},
		{Status: 200, ContentType: "b", Body: `{"n":1,"list":["x","y"]}`},
		{Status: 200, ContentType: "a", Body: `{"n":2,"list":["x","y"]}`},
		{Status: 200, ContentType: "a", Body: `{"n":1,"list":["y","x"]}`},
		{Status: 200, ContentType: "a", Body: `text`},
	} {
		require.NotEmpty(t, call.Differs(a, false), a)
	}
	require.Empty(t, call.Differs(Answer{Status: 200, ContentType: "a", Body: `{"n":1,"list":["y","x"]}`}, true))
	text := Call{Status: 200, Text: "serving [a, b]", Allow: "GET"}
	require.Empty(t, text.Differs(Answer{Status: 200, Allow: "GET", Body: "serving [b, a]"}, true))
	require.NotEmpty(t, text.Differs(Answer{Status: 200, Allow: "GET", Body: "serving [b, a]"}, false))
	require.NotEmpty(t, text.Differs(Answer{Status: 200, Allow: "PUT", Body: "serving [a, b]"}, false))
}

func TestADifferenceWithoutAReasonIsRefused(t *testing.T) {
	for _, line := range []string{"A\tGET\t/x\ttext\tOK\tbecause", "A\tGET\t/x\ttext\tOK", "A GET /x text OK UC1"} {
		path := filepath.Join(t.TempDir(), "d.tsv")
		require.NoError(t, os.WriteFile(path, []byte("# head\n\n"+line+"\n"), 0o600))
		_, err := Differences(path)
		require.ErrorContains(t, err, "line 3")
	}
}
