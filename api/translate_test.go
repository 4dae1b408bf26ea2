package api

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOffsetsAreTranslated(t *testing.T) {
	t.Parallel()
	s := serverOf(t, "worker", nil, unchanged)
	for query, want := range map[string]string{
		"?topic=orders&partition=2&offset=5": `{"items":[{"topic":"orders","partition":2,"offset":5,"target_topic":"orders","target_partition":2,"target_offset":4,"exact":true,"reason":""}],"next":""}`,
		"?group=billing&limit=1&after=orders/0000000000": `{"items":[{"topic":"orders","partition":1,"offset":17,"target_topic":"orders","target_partition":1,` +
			`"target_offset":16,"exact":true,"reason":""}],"next":"orders/0000000001"}`,
	} {
		code, body := call(t, s, "GET", "/api/v1/offsets/translate"+query, "")
		require.Equal(t, http.StatusOK, code, body)
		require.JSONEq(t, want, body)
	}
	for query, want := range map[string]string{
		"": "must be given", "?topic=orders": "must be given", "?offset=5": "must be given", "?group=a&topic=b": "goes without", "?topic=orders&offset=-1": "0 or more",
		"?group=a&limit=0": "limit",
	} {
		code, body := call(t, s, "GET", "/api/v1/offsets/translate"+query, "")
		require.Equal(t, http.StatusUnprocessableEntity, code, query)
		require.Contains(t, body, want)
	}
}
