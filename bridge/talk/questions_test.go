package talk_test

import (
	"encoding/json"
	"fmt"
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

// TestManyQuestionsAreNamedInOnePass compares what a hundred times as many questions cost.
func TestManyQuestionsAreNamedInOnePass(t *testing.T) {
	asking := func(n int) json.RawMessage {
		out := []byte(`{"resultType":"input_required","inputRequests":{`)
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `"%d":{"method":"elicitation/create","params":{"message":"?"}}`, i)
		}
		return append(out, "}}"...)
	}
	cost := func(result json.RawMessage) float64 {
		return float64(testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				talk.NamedIn("up", result)
			}
		}).NsPerOp())
	}
	if few, many := cost(asking(30)), cost(asking(3000)); many > 1000*few {
		t.Errorf("a hundred times as many questions cost %.0f times as much", many/few)
	}
}
