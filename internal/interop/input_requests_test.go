package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/interop"
)

// TestNamed shows what of a server's questions changes: an elicitation says who asks, and nothing else does.
func TestNamed(t *testing.T) {
	for in, want := range map[string]string{
		`{"message":"name?","requestedSchema":{"x":1e2}}`: `{"message":"name?","requestedSchema":{"x":1e2},"_meta":{"drawbridge/server":"up"}}`,
		`{"_meta":{"a":1,"drawbridge/server":"forged"}}`:  `{"_meta":{"a":1,"drawbridge/server":"up"}}`,
	} {
		if got := string(interop.ElicitationRules{}.PrepareRequest("up", "elicitation/create",
			[]byte(in))); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
		if got := string(interop.ElicitationRules{}.PrepareRequest("up", "sampling/createMessage",
			[]byte(in))); got != in {
			t.Errorf("another request changed: %s", got)
		}
	}
	for in, want := range map[string]string{
		//
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}},"b":{"method":"roots/list"}},"n":1.0}`: `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?","_meta":{"drawbridge/server":"up"}}},"b":{"method":"roots/list"}},"n":1.0}`,
		`{"taskId":"1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`://
		`{"taskId":"1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"_meta":{"drawbridge/server":"up"}}}}}`,
		`{"content":[{"type":"text","text":"elicitation/create"}]}`: `{"content":[{"type":"text","text":"elicitation/create"}]}`,
	} {
		if got := string(interop.ElicitationRules{}.PrepareInputRequests("up", []byte(in))); got != want {
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
		named := interop.ElicitationRules{}.PrepareInputRequests("up", result)
		runtime.ReadMemStats(&after)
		if got := bytes.Count(named, []byte(interop.MetaServer)); got != n {
			t.Fatalf("%d of %d questions say who asks", got, n)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := cost(2_000), cost(20_000); many > 30*few {
		t.Errorf("20,000 questions take %d bytes, 2,000 take %d", many, few)
	}
}

func TestQuestionsThatCanBeReadInTwoWays(t *testing.T) {
	const all = `{"elicitation":{"form":{},"url":{}},"sampling":{}}`
	for question, want := range map[string]string{
		`{"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}`:                               "",
		`{"method":"elicitation/create","params":{"message":"?","Message":"!","requestedSchema":{}}}`:                 "elicitation/create with no web address",
		`{"method":"sampling/createMessage","Method":"elicitation/create","params":{"url":"javascript:alert(1)"}}`:    "sampling/createMessage that can be read in two ways",
		`{"method":"elicitation/create","params":{"mode":"url","url":"https://a.test"},"params":{"url":"file:///x"}}`: "elicitation/create that can be read in two ways",
	} {
		got, found := interop.UndeclaredRequest(json.RawMessage(all), json.RawMessage(`{}`),
			json.RawMessage(`{"inputRequests":{"q":`+question+`}}`))
		if got != want || found != (want != "") {
			t.Errorf("%s: %q, %v; want %q", question, got, found, want)
		}
	}
}

// TestWhoAsksForInputIsFound has results that ask for input in every way in which some reader finds that they do.
func TestWhoAsksForInputIsFound(t *testing.T) {
	for result, want := range map[string]bool{
		`{"resultType":"input_required"}`:                             true,
		`{"status":"input_required"}`:                                 true,
		`{"resultType":"input\u005frequired"}`:                        true,
		`{"resultType":"\u0069nput_required"}`:                        true,
		`{"\u0072esultType":"input_required"}`:                        true,
		`{"resultType":"input_required","resultType":"complete"}`:     true,
		`{"ResultType":"input_required"}`:                             true,
		`{"resultType":"complete","x":"input_required"}`:              false,
		`{"resultType":"complete","content":[{"text":"\u0041"}]}`:     false,
		`{"content":[{"type":"text","text":"it is input_required"}]}`: false,
	} {
		if got := interop.MayNeedInput(json.RawMessage(result)); got != want {
			t.Errorf("%s: %v", result, got)
		}
	}
	for _, result := range []string{
		`{"resultType":"input_required","resultType":"complete","inputRequests":{}}`,
		`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?"}}},"inputRequests":{}}`,
		`{"resultType":"input_required","InputRequests":{"q":{"method":"elicitation/create","params":{"message":"?"}}},"inputRequests":{}}`,
	} {
		if method, found := interop.UndeclaredRequest(nil, nil, json.RawMessage(result)); !found {
			t.Errorf("%s asks for %q, and may", result, method)
		}
	}
}
