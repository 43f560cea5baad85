package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const everything = `{"tools":{},"prompts":{},"resources":{}}`

// An asked is what a server answers to a method, given the params.
type asked func(params json.RawMessage) (string, error)

func surveyAlways(result string) asked {
	return func(json.RawMessage) (string, error) { return result, nil }
}

func never(err error) asked { return func(json.RawMessage) (string, error) { return "", err } }

// taken is a survey of a server with these answers; to other methods it answers that there is no such method.
func taken(t *testing.T, capabilities string, answers map[string]asked, o listReader) (drawbridge.Listing,
	[]string, error) {
	t.Helper()
	o.Request = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		answer := answers[method]
		if answer == nil {
			return nil, &transport.ResponseError{Object: mcp.NewErrorObject(mcp.CodeMethodNotFound,
				"no such method", nil)}
		}
		result, err := answer(params)
		return json.RawMessage(result), err
	}
	l := drawbridge.Listing{Server: "s", Capabilities: json.RawMessage(capabilities)}
	out, err := readAllLists(t.Context(), &l, o)
	return l, out.Problems, err
}

func raw(items ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, item := range items {
		out = append(out, json.RawMessage(item))
	}
	return out
}

// surveyPages lists one tool a page. The cursor is no string, as nothing says that it must be one here.
func surveyPages(tools ...string) asked {
	return func(params json.RawMessage) (string, error) {
		at := 0
		_, _ = fmt.Sscan(string(rawjson.Get(params, "cursor")), &at)
		next := ""
		if at+1 < len(tools) {
			next = fmt.Sprintf(`,"nextCursor":%d`, at+1)
		}
		return fmt.Sprintf(`{"tools":[%s]%s}`, tools[at], next), nil
	}
}

// lastListing is what a server listed the time before.
var lastListing = &drawbridge.Listing{
	Tools: raw(`{"name":"then"}`), Prompts: raw(`{"name":"p"}`),
	CacheHints: map[string]drawbridge.CacheHint{mcp.MethodPromptsList: {TTL: time.Second}},
}

func TestTake(t *testing.T) {
	broken := never(&transport.ResponseError{Object: mcp.NewErrorObject(mcp.CodeInternal, "oh", nil)})
	tool := map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[{"name":"a"}]}`)}
	with := func(method string, a asked) map[string]asked {
		return map[string]asked{mcp.MethodToolsList: tool[mcp.MethodToolsList], method: a}
	}
	for _, tt := range []struct {
		name, capabilities string
		answers            map[string]asked
		last               *drawbridge.Listing
		want               drawbridge.Listing
		troubles           []string
	}{
		{"what is not declared is not asked for", `{"tools":{},"prompts":false,"resources":null}`,
			with(mcp.MethodPromptsList, surveyAlways(`{"prompts":[{"name":"p"}]}`)), nil,
			drawbridge.Listing{Tools: raw(`{"name":"a"}`)}, nil},
		{"declared, and not there", everything, tool, nil, drawbridge.Listing{Tools: raw(`{"name":"a"}`)}, nil},
		{"all four", everything, map[string]asked{
			mcp.MethodToolsList:     surveyAlways(`{"tools":[{"name":"a"}]}`),
			mcp.MethodPromptsList:   surveyAlways(`{"prompts":[{"name":"p"}]}`),
			mcp.MethodResourcesList: surveyAlways(`{"resources":[{"uri":"r"}]}`),
			mcp.MethodTemplatesList: surveyAlways(`{"resourceTemplates":[{"uriTemplate":"t"}]}`),
		}, nil, drawbridge.Listing{
			Tools: raw(`{"name":"a"}`), Prompts: raw(`{"name":"p"}`), Resources: raw(`{"uri":"r"}`),
			Templates: raw(`{"uriTemplate":"t"}`),
		}, nil},
		{"bytes are kept", `{"tools":{}}`,
			map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[ { "x":1e400, "name" : "a" } ]}`)}, nil,
			drawbridge.Listing{Tools: raw(`{ "x":1e400, "name" : "a" }`)}, nil},
		{"a list that does not come", everything, with(mcp.MethodPromptsList, broken), nil,
			drawbridge.Listing{Tools: raw(`{"name":"a"}`)},
			[]string{"list prompts: the server answered with error -32603: oh"}},
		{"the last known one stands for it", everything, with(mcp.MethodPromptsList, broken), lastListing,
			drawbridge.Listing{
				Tools: raw(`{"name":"a"}`), Prompts: raw(`{"name":"p"}`),
				CacheHints: map[string]drawbridge.CacheHint{mcp.MethodPromptsList: {TTL: time.Second}},
			}, []string{"list prompts: the server answered with error -32603: oh"}},
		{"and for tools", `{"tools":{}}`, map[string]asked{mcp.MethodToolsList: broken}, lastListing,
			drawbridge.Listing{Tools: raw(`{"name":"then"}`)},
			[]string{"list tools: the server answered with error -32603: oh"}},
		{"what is no object", `{"tools":{}}`,
			map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[null,{"a":1},"b",[],{"c":1}]}`)}, nil,
			drawbridge.Listing{Tools: raw(`{"a":1}`, `{"c":1}`)},
			[]string{"list tools: 3 items were not objects and were left out"}},
		{"no answer in the form of one", everything, map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":7}`)},
			nil,
			drawbridge.Listing{}, nil},
		{"pages", `{"tools":{}}`, map[string]asked{mcp.MethodToolsList: surveyPages(`{"a":1}`, `{"a":2}`, `{"a":3}`)},
			nil,
			drawbridge.Listing{Tools: raw(`{"a":1}`, `{"a":2}`, `{"a":3}`)}, nil},
		{"the same page for ever", `{"tools":{}}`,
			map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[{"a":1}],"nextCursor":"x"}`)}, nil,
			drawbridge.Listing{Tools: raw(`{"a":1}`, `{"a":1}`)},
			[]string{"list tools: the server repeated a cursor"}},
		{"the strictest hint of all pages", `{"tools":{}}`,
			map[string]asked{mcp.MethodToolsList: func(params json.RawMessage) (string, error) {
				if rawjson.Get(params, "cursor") == nil {
					return `{"ttlMs":9000,"cacheScope":"public","nextCursor":"2"}`, nil
				}
				return `{"ttlMs":5000,"cacheScope":"private"}`, nil
			}}, nil, drawbridge.Listing{CacheHints: map[string]drawbridge.CacheHint{mcp.MethodToolsList: {TTL: 5 * time.Second}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, troubles, err := taken(t, tt.capabilities, tt.answers, listReader{Last: tt.last})
				tt.want.Server, tt.want.Capabilities, tt.want.ListedAt = "s",
					json.RawMessage(tt.capabilities), time.Now()
				if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Error(err, diff)
				}
				if diff := cmp.Diff(tt.troubles, troubles, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestToolsMustBeKnown(t *testing.T) {
	silent := errors.New("silence")
	_, troubles, err := taken(t, `{"tools":{}}`, map[string]asked{mcp.MethodToolsList: never(silent)}, listReader{})
	if !errors.Is(err, silent) || err.Error() != "tools: silence" || troubles != nil {
		t.Errorf("%v, %q", err, troubles)
	}
}

func TestEndlessListsEnd(t *testing.T) {
	n := 0
	endless := func(items string) asked {
		return func(json.RawMessage) (string, error) {
			n++
			return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, items, n), nil
		}
	}
	for _, tt := range []struct {
		name  string
		tools asked
		want  int
		says  string
	}{
		{"pages", endless(`{}`), maxListPages,
			"list tools: the list goes on after 1000 pages with 1000 items; the rest was left out"},
		{"items", endless(strings.TrimSuffix(strings.Repeat("{},", 4000), ",")), maxListItems,
			"list tools: the list goes on after 3 pages with 10000 items; the rest was left out"},
		{"bytes", endless(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`), 64,
			"list tools: the list goes on after 64 pages with 64 items; the rest was left out"},
	} {
		l, troubles, err := taken(t, `{"tools":{}}`, map[string]asked{mcp.MethodToolsList: tt.tools}, listReader{})
		if diff := cmp.Diff([]string{tt.says}, troubles); diff != "" || err != nil || len(l.Tools) != tt.want {
			t.Errorf("%s: %d tools, %v %s", tt.name, len(l.Tools), err, diff)
		}
	}
}

const (
	bad     = `{"name":"bad","inputSchema":{"properties":{"a":{"type":"array","x-mcp-header":"A"}}}}`
	good    = `{"name":"good","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`
	plain   = `{"name":"plain","execution":{"taskSupport":"optional"},"annotations":{"idempotentHint":true}}`
	lengthy = `{"name":"lengthy","execution":{"taskSupport":"required"},"annotations":{"readOnlyHint":false}}`
)

func TestToolsWithBadMarksAreLeftOutOverHTTP(t *testing.T) {
	answers := map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[` + bad + `,` + good + `]}`)}
	for headers, want := range map[bool][]json.RawMessage{true: raw(good), false: raw(bad, good)} {
		l, troubles, err := taken(t, `{"tools":{}}`, answers, listReader{Headers: headers})
		told := len(troubles) == 1 && strings.HasPrefix(troubles[0], `list tools: tool "bad" was left out: `)
		if diff := cmp.Diff(want, l.Tools); diff != "" || err != nil || told != headers {
			t.Errorf("headers %v: %v, %q %s", headers, err, troubles, diff)
		}
	}
}

// TestVeryManyBadMarks has a server list as many bad tools as it may, under long names: what is said of them is for
// people.
func TestVeryManyBadMarks(t *testing.T) {
	many := strings.Repeat(strings.Replace(bad, `"bad"`, `"`+strings.Repeat("x", 1000)+`"`, 1)+",", 5000) + good
	_, troubles, err := taken(t, `{"tools":{}}`, map[string]asked{mcp.MethodToolsList: surveyAlways(`{"tools":[` +
		many + `]}`)}, listReader{Headers: true})
	if err != nil || len(troubles) != 1 || len(troubles[0]) > 4096 || !strings.HasSuffix(troubles[0],
		"; 4995 more tools were left out for such reasons") {
		t.Errorf("%v, %.100q", err, troubles)
	}
}

func TestToolsOf(t *testing.T) {
	tools := raw(bad, good, plain, lengthy)
	for headers, want := range map[bool]toolTraits{
		false: {TaskOnly: map[string]bool{"lengthy": true}},
		true: {
			HeaderParams: map[string][]mcp.HeaderParam{"good": {{Header: "Mcp-Param-A", Path: []string{"a"},
				Type: "string"}}},
			TaskOnly: map[string]bool{"lengthy": true},
		},
	} {
		if diff := cmp.Diff(want, parseToolTraits(tools, headers)); diff != "" {
			t.Errorf("headers %v: %s", headers, diff)
		}
	}
	for name, want := range map[string]bool{"plain": true, "lengthy": false, "good": false, "unknown": false} {
		if got := isToolRepeatable(tools, name); got != want {
			t.Errorf("%s is repeatable: %v", name, got)
		}
	}
}

func TestHintOf(t *testing.T) {
	for result, want := range map[string]drawbridge.CacheHint{
		`{}`:                                     {},
		`{"ttlMs":1500,"cacheScope":"public"}`:   {TTL: 1500 * time.Millisecond, Public: true},
		`{"ttlMs":-1,"cacheScope":"private"}`:    {},
		`{"ttlMs":"1500","cacheScope":"Public"}`: {},
		`{"ttlMs":9000000000000000000}`:          {TTL: 365 * 24 * time.Hour},
	} {
		if diff := cmp.Diff(want, parseCacheHint(json.RawMessage(result))); diff != "" {
			t.Errorf("%s: %s", result, diff)
		}
	}
}

// FuzzTake has a server answer everything with the same. It is row FZ-7.
func FuzzTake(f *testing.F) {
	f.Add(`{"tools":[` + bad + `,` + good + `,null],"prompts":[{}],"nextCursor":"x","ttlMs":7,"cacheScope":"public"}`)
	f.Add(`{"tools":{"a":1},"nextCursor":{}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, result string) {
		if !json.Valid([]byte(result)) {
			t.Skip()
		}
		same := surveyAlways(result)
		l, _, err := taken(t, everything, map[string]asked{
			mcp.MethodToolsList: same, mcp.MethodPromptsList: same, mcp.MethodResourcesList: same,
			mcp.MethodTemplatesList: same,
		}, listReader{Headers: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, items := range [][]json.RawMessage{l.Tools, l.Prompts, l.Resources, l.Templates} {
			for _, item := range items {
				if !json.Valid(item) || item[0] != '{' {
					t.Errorf("%q is kept as an item", item)
				}
			}
		}
		parseToolTraits(l.Tools, true)
	})
}
