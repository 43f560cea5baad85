package deck

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// asking is the result of a task that asks so many things, each of them for the task.
func asking(questions int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"resultType":"input_required","inputRequests":{`)
	for i := range questions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"q%d":{"method":"m","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"7"}}}}`, i)
	}
	b.WriteString(`}}`)
	return json.RawMessage(b.String())
}

// allocated is how many bytes f takes, which tells how often it copies what it is given.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyQuestionsCostWhatTheyAre: a server that asks ten times as much costs ten times as much, not a hundred times.
func TestManyQuestionsCostWhatTheyAre(t *testing.T) {
	give := func(own string) (string, bool) { return "T" + own, true }
	cost := func(questions int) uint64 {
		object := asking(questions)
		return allocated(func() {
			if got := strings.Count(string(naming.ReplaceRelatedTaskIDs(object, give)),
				`"taskId":"T7"`); got != questions {
				t.Fatalf("%d of %d questions belong to the task", got, questions)
			}
		})
	}
	if few, many := cost(2_000), cost(20_000); many > 30*few {
		t.Errorf("20,000 questions take %d bytes, 2,000 take %d", many, few)
	}
}

// TestManyExtensionsCostWhatTheyAre does the same for extensions that a client and a server share.
func TestManyExtensionsCostWhatTheyAre(t *testing.T) {
	cost := func(count int) uint64 {
		var b strings.Builder
		for i := range count {
			fmt.Fprintf(&b, `,"com.example/%d":{"n":%d}`, i, i)
		}
		all := json.RawMessage(`{"extensions":{` + b.String()[1:] + `}}`)
		caller, l := ada, listing("a")
		caller.Capabilities, l.Capabilities = all, all
		d := open(t, &fake{}, Options{}, l)
		return allocated(func() {
			if got := d.Capabilities(caller); string(rawjson.Get(got, "extensions")) != string(rawjson.Get(all,
				"extensions")) {
				t.Fatalf("of %d extensions %d bytes are told, want %d", count, len(got), len(all))
			}
		})
	}
	if few, many := cost(2_000), cost(20_000); many > 30*few {
		t.Errorf("20,000 extensions take %d bytes, 2,000 take %d", many, few)
	}
}

// TestBelongingChangesTheIdsAlone has bytes around the ids that nothing may touch.
func TestBelongingChangesTheIdsAlone(t *testing.T) {
	const related = `"_meta":{"io.modelcontextprotocol\/related-task" : {"taskId":"7" ,"n":1.0}}`
	give := func(own string) (string, bool) { return "T" + own, own == "7" }
	for _, tt := range []struct{ object, want string }{
		{`{ "inputRequests" : { "a" : {"params":{` + related + `}} , "b":{"params":{}},"c":7 } }`,
			`{ "inputRequests" : { "a" : {"params":{` + strings.Replace(related, `"7"`, `"T7"`, 1) +
				`}} , "b":{"params":{}},"c":7 } }`},
		{`{"inputRequests":[{"params":{` + related + `}}]}`, `{"inputRequests":[{"params":{` + related + `}}]}`},
		{`{"inputRequests":{"a":{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"8"}}}}}, "x":1}`,
			`{"inputRequests":{"a":{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"8"}}}}}, "x":1}`},
		{`{"inputRequests":null}`, `{"inputRequests":null}`},
	} {
		if got := string(naming.ReplaceRelatedTaskIDs(json.RawMessage(tt.object), give)); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.object, got, tt.want)
		}
	}
}
