package talk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
)

// TestNamed shows what of a server's questions changes: an elicitation says who asks, and nothing else does.
func TestNamed(t *testing.T) {
	for in, want := range map[string]string{
		`{"message":"name?","requestedSchema":{"x":1e2}}`: `{"message":"name?","requestedSchema":{"x":1e2},"_meta":{"drawbridge/server":"up"}}`,
		`{"_meta":{"a":1,"drawbridge/server":"forged"}}`:  `{"_meta":{"a":1,"drawbridge/server":"up"}}`,
	} {
		if got := string(talk.Rules{}.Named("up", "elicitation/create", []byte(in))); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
		if got := string(talk.Rules{}.Named("up", "sampling/createMessage", []byte(in))); got != in {
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
		if got := string(talk.Rules{}.NamedIn("up", []byte(in))); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}

// TestManyQuestionsAreNamedInOnePass: ten times as many questions take ten times as much memory, not a hundred times.
func TestManyQuestionsAreNamedInOnePass(t *testing.T) {
	cost := func(n int) uint64 {
		out := []byte(`{"resultType":"input_required","inputRequests":{`)
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `"%d":{"method":"elicitation/create","params":{"message":"?"}}`, i)
		}
		result := json.RawMessage(append(out, "}}"...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		named := talk.Rules{}.NamedIn("up", result)
		runtime.ReadMemStats(&after)
		if got := bytes.Count(named, []byte(talk.MetaServer)); got != n {
			t.Fatalf("%d of %d questions say who asks", got, n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(2_000), cost(20_000); many > 30*few {
		t.Errorf("20,000 questions take %d bytes, 2,000 take %d", many, few)
	}
}
