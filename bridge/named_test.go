package bridge

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
)

// TestNamed shows what of a server's questions changes: an elicitation says who asks, and nothing else does.
func TestNamed(t *testing.T) {
	for in, want := range map[string]string{
		`{"message":"name?","requestedSchema":{"x":1e2}}`: `{"message":"name?","requestedSchema":{"x":1e2},"_meta":{"drawbridge/server":"up"}}`,
		`{"_meta":{"a":1,"drawbridge/server":"forged"}}`:  `{"_meta":{"a":1,"drawbridge/server":"up"}}`,
	} {
		if got := string(talk.Named("up", "elicitation/create", []byte(in))); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
		if got := string(talk.Named("up", "sampling/createMessage", []byte(in))); got != in {
			t.Errorf("another request changed: %s", got)
		}
	}
	for in, want := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}},"b":{"method":"roots/list"}},"n":1.0}`://
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?","_meta":{"drawbridge/server":"up"}}},"b":{"method":"roots/list"}},"n":1.0}`,
		`{"taskId":"1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`://
		`{"taskId":"1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"_meta":{"drawbridge/server":"up"}}}}}`,
		`{"content":[{"type":"text","text":"elicitation/create"}]}`: `{"content":[{"type":"text","text":"elicitation/create"}]}`,
	} {
		if got := string(talk.NamedIn("up", []byte(in))); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}
