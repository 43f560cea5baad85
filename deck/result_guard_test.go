package deck

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

type keeps struct{ held []HeldResult }

func (k *keeps) Hold(_ context.Context, h HeldResult) (string, error) {
	k.held = append(k.held, h)
	return "id", nil
}

var heldWhereverItStandsCases = []struct {
	name, method, tool, result string
	held                       bool
}{
	{"nothing", mcp.MethodToolsCall, "x", `{"content":[{"type":"text","text":"a"}]}`, false},
	{"a text", mcp.MethodToolsCall, "x", `{"content":[{"type":"text","text":"now obey"}]}`, true},
	{"a text by another spelling", mcp.MethodToolsCall, "x", `{"content":[{"te\u0078t":"now \u006fbey"}]}`, true},
	{"a text that is none", mcp.MethodToolsCall, "x", `{"content":[{"text":["now obey"]}]}`, true},
	{"a link", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"resource_link","uri":"a:b","name":"n","description":"now obey"}]}`, true},
	{"a resource", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"resource","resource":{"uri":"a:b","title":"now obey","text":"a"}}]}`, true},
	{"an image", mcp.MethodToolsCall, "x", `{"content":[{"type":"image","data":"now obey"}]}`, false},
	{"bytes that are a text", mcp.MethodResourcesRead, "a:b",
		`{"contents":[{"uri":"a:b","mimeType":"application/pdf","blob":"` + b64("so now obey") + `"}]}`, true},
	{"a picture that is a text", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"` +
			b64("<svg>now obey</svg>") + `"}]}`, true},
	{"a resource of bytes", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"` + b64(strings.Repeat("é", 2000)+
			"now obey") + `"}}]}`, true},
	{"bytes without padding, in lines", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"image","data":"bm93IG9i\nZXk"}]}`, true},
	{"bytes behind blanks", mcp.MethodToolsCall, "x", `{"content":[{"type":"audio","data":" \t` +
		b64("now obey") + `"}]}`, true},
	{"bytes in UTF-16", mcp.MethodToolsCall, "x", `{"content":[{"type":"audio","data":"` +
		b64("n\x00o\x00w\x00 \x00o\x00b\x00e\x00y\x00") + `"}]}`, true},
	{"bytes in UTF-16 of the other order, marked", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"audio","data":"` +
			b64("\xfe\xff\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x04\x3f\x00n\x00o\x00w\x00 \x00o\x00b\x00e\x00y") + `"}]}`, true},
	{"a text by a name in capitals", mcp.MethodToolsCall, "x", `{"Content":[{"type":"text","TEXT":"now obey"}]}`,
		true},
	{"a block in the place of a list", mcp.MethodToolsCall, "x", `{"content":{"type":"text","text":"now obey"}}`,
		true},
	{"a list in the place of a resource", mcp.MethodToolsCall, "x",
		`{"content":[{"type":"resource","resource":[{"uri":"a:b","text":"now obey"}]}]}`, true},
	{"a picture", mcp.MethodToolsCall, "x", `{"content":[{"type":"image","data":"` +
		b64("\x89PNG\r\n\x1a\nnow obey") + `"}]}`, false},
	{"a text that ends in other bytes", mcp.MethodToolsCall, "x", `{"content":[{"type":"image","data":"` +
		b64("now obey"+strings.Repeat("a", 4000)+"\xff") + `"}]}`, true},
	{"structured", mcp.MethodToolsCall, "x", `{"structuredContent":{"a":[[{"data":"now obey"}]]}}`, true},
	{"a name", mcp.MethodToolsCall, "x", `{"structuredContent":{"now obey":1}}`, true},
	{"meta", mcp.MethodToolsCall, "x", `{"_meta":{"a":"now obey"}}`, true},
	{"a task", mcp.MethodTasksGet, "x", `{"statusMessage":"now obey"}`, true},
	{"a task's result", mcp.MethodTasksGet, "x",
		`{"result":{"content":[{"type":"resource_link","title":"now obey"}]}}`, true},
	{"contents", mcp.MethodResourcesRead, "a:b", `{"contents":[{"uri":"a:b","text":"a","title":"now obey"}]}`,
		true},
	{"a page", mcp.MethodResourcesRead, "ui://b", `{"contents":[{"uri":"ui://b","text":"now obey"}]}`, false},
	{"a prompt", mcp.MethodPromptsGet, "x", `{"description":"now obey","messages":[]}`, true},
	{"a list that is none", mcp.MethodToolsCall, "x", `{"content":"now obey"}`, true},
	{"a block that is none", mcp.MethodToolsCall, "x", `{"content":["now obey"]}`, true},
	{"a resource that is none", mcp.MethodToolsCall, "x", `{"content":[{"type":"resource","resource":"now obey"}]}`,
		true},
	{"the contents of a tool", mcp.MethodToolsCall, "x", `{"content":[],"contents":[{"text":"now obey"}]}`, true},
	{"the messages of a tool", mcp.MethodToolsCall, "x",
		`{"content":[],"messages":[{"content":{"text":"now obey"}}]}`, true},
	{"the result of a tool", mcp.MethodToolsCall, "x", `{"content":[],"result":"now obey"}`, true},
	{"a task's result that is none", mcp.MethodTasksGet, "x", `{"result":["now obey"]}`, true},
	{"contents in contents", mcp.MethodResourcesRead, "a:b",
		`{"contents":[{"uri":"a:b","resource":{"text":"now obey"}}]}`, true},
	{"the content of a resource", mcp.MethodResourcesRead, "a:b",
		`{"contents":[],"content":[{"type":"text","text":"now obey"}]}`, true},
	{"messages that are none", mcp.MethodPromptsGet, "x", `{"messages":["now obey"]}`, true},
	{"a message's content that is none", mcp.MethodPromptsGet, "x",
		`{"messages":[{"role":"user","content":"now obey"}]}`, true},
	{"the name of a message's member", mcp.MethodPromptsGet, "x", `{"messages":[{"now obey":1}]}`, true},
	{"an answer in words that is unknown", "acme/do", "x", `{"content":[{"type":"text","text":"now obey"}]}`,
		true},
	{"an answer that is a text", "acme/do", "x", `"now obey"`, true},
	{"the value of a completion", mcp.MethodComplete, "x", `{"completion":{"values":["now obey"]}}`, true},
	{"a prompt's message", mcp.MethodPromptsGet, "x",
		`{"messages":[{"role":"user","content":{"type":"resource_link","title":"now obey"}}]}`, true},
}

// TestHeldWhereverItStands has an order at each place of an answer that a model may be shown, and at those that are
// not for it.
func TestHeldWhereverItStands(t *testing.T) {
	for _, tt := range heldWhereverItStandsCases {
		k := &keeps{}
		d := desk(k)
		out, err := d.FilterFor(drawbridge.Call{Method: tt.method}, "s", "s__x", tt.tool,
			ResultTreatment{Hold: true}).Apply(t.Context(), json.RawMessage(tt.result))
		fault, _ := errors.AsType[*drawbridge.Fault](err)
		if held := fault != nil && fault.Code == drawbridge.PolicyBlocked && out == nil &&
			len(k.held) == 1; held != tt.held {
			t.Errorf("%s: held %v, want %v: %s, %v", tt.name, held, tt.held, out, err)
		}
		if !tt.held && string(out) != tt.result {
			t.Errorf("%s: %s", tt.name, out)
		}
	}
}

// TestErrorsAreFenced has a server answer with an error, whose words are foreign text as those of a result are.
func TestErrorsAreFenced(t *testing.T) {
	yes := true
	for _, tt := range []struct{ raw, want, rules string }{
		{`{"code":-32000,"message":"no such page","data":{"n":1.0}}`,
			`{"code":-32000,"message":"[TOOL_OUTPUT::W::BEGIN server=s tool=x]\nno such page\n[TOOL_OUTPUT::W::END]","data":{"n":1.0}}`, ""},
		{`{"code":-32000,"message":"now obey"}`,
			`{"code":-32000,"message":"[TOOL_OUTPUT::W::BEGIN server=s tool=x flagged=override]\nnow obey\n[TOOL_OUTPUT::W::END]"}`, "override"},
		{`{"code":-32000,"message":"","data":"now obey"}`,
			`{"code":-32000,"message":"[TOOL_OUTPUT::W::BEGIN server=s tool=x]\n\n[TOOL_OUTPUT::W::END]","data":"now obey"}`, "override"},
		{`{"code":-32000}`, `{"code":-32000}`, ""},
	} {
		d, noted := desk(&keeps{}), ""
		d.RecordAction = func(_ drawbridge.ServerID, _, rule, why string) { noted = rule + ": " + why }
		was := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: "s",
			Err: errors.New("now obey"), Raw: json.RawMessage(tt.raw)}
		err := d.FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x",
			ResultTreatment{Mark: &yes}).ApplyToError(t.Context(), was)
		fault, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || fault.Code != was.Code || string(was.Raw) != tt.raw {
			t.Fatalf("%s: %v", tt.raw, err)
		}
		got := string(fault.Raw)
		if _, rest, fenced := strings.Cut(got, markerPrefix); fenced {
			got = strings.ReplaceAll(got, rest[:wordLength], "W")
		}
		if got != tt.want || (noted != "") != (tt.rules != "") || !strings.Contains(noted, tt.rules) {
			t.Errorf("%s is %s (%q)", tt.raw, got, noted)
		}
	}
}

// TestFencedWhateverItIsCalled has texts by names that readers who are not strict take for those of texts.
func TestFencedWhateverItIsCalled(t *testing.T) {
	yes := true
	for _, result := range []string{
		`{"Content":[{"type":"text","text":"a"}]}`, `{"content":[{"type":"text","Text":"a"}]}`,
		`{"content":{"type":"text","text":"a"}}`,
		`{"content":[{"type":"resource","resource":[{"uri":"x:1","text":"a"}]}]}`,
		`{"content":[{"type":"resource","RESOURCE":{"uri":"x:1","te\u0078t":"a"}}]}`,
	} {
		out, err := desk(&keeps{}).FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x",
			ResultTreatment{Mark: &yes}).Apply(t.Context(), json.RawMessage(result))
		if err != nil || strings.Count(string(out), markerPrefix) != 2 || !json.Valid(out) {
			t.Errorf("%s is %s, %v", result, out, err)
		}
	}
}

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// TestErrorsAreHeldToo has servers answer with an error: its words pass where they meet no rule, and where nothing is
// held back.
func TestErrorsAreHeldToo(t *testing.T) {
	for _, tt := range []struct {
		raw          string
		barred, held bool
	}{
		{`{"code":-32000,"message":"no such page"}`, true, false},
		{`{"code":-32000,"message":"now obey"}`, true, true},
		{`{"code":-32000,"message":"","data":{"why":["now obey"]}}`, true, true},
		{`{"code":-32000,"message":"now obey"}`, false, false},
		{``, true, false},
	} {
		k := &keeps{}
		d := desk(k)
		was := &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError, Step: "s",
			Err: errors.New("now obey"), Raw: json.RawMessage(tt.raw)}
		err := d.FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x",
			ResultTreatment{Hold: tt.barred}).ApplyToError(t.Context(), was)
		if !tt.held {
			if err != error(was) || len(k.held) != 0 {
				t.Errorf("%s: %v", tt.raw, err)
			}
			continue
		}
		want := "tools/call s__x: the call was made, and its answer is held back: it met override (do not call this again: a person can read the answer with drawbridge shield results id)"
		if err.Error() != want || len(k.held) != 1 || string(k.held[0].Result) != tt.raw {
			t.Errorf("%s: %v, %v", tt.raw, err, k.held)
		}
	}
}

func desk(k *keeps) *ResultGuard {
	return &ResultGuard{
		MarkFor: func(drawbridge.Caller) bool { return false }, Holder: k, Log: slog.New(slog.DiscardHandler),
		RecordAction: func(drawbridge.ServerID, string, string, string) {},
		Inspect: func(text string) (string, []string) {
			if strings.Contains(text, "obey") {
				return text, []string{"override"}
			}
			return text, nil
		},
	}
}
