package deck

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// extended is a listing of a server with these capabilities and tools.
func extended(server, capabilities string, tools ...string) drawbridge.Listing {
	l := listing(server, tools...)
	l.Capabilities = json.RawMessage(capabilities)
	l.CacheHints = map[string]drawbridge.CacheHint{mcp.MethodDiscover: {TTL: time.Minute, Public: true}}
	return l
}

// declaring is the caller with these capabilities.
func declaring(caller drawbridge.Caller, capabilities string) drawbridge.Caller {
	caller.Capabilities = json.RawMessage(capabilities)
	return caller
}

const (
	acme  = `{"extensions":{"com.acme/x":{"n":1.0}}}`
	acme2 = `{"extensions":{"com.acme/x":{"n":2}},"experimental":{"old":{}}}`
)

func TestExtensionsAreToldToThoseWhoCanUseThem(t *testing.T) {
	for _, tt := range []struct {
		name     string
		caller   drawbridge.Caller
		listings []drawbridge.Listing
		want     string // extensions and experimental
	}{
		{"apps and skills to everybody", ada, []drawbridge.Listing{
			extended("a", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"],"n":1.0}}}`),
			extended("b", `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":[]},"io.modelcontextprotocol/skills":{ }}}`),
		}, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"],"n":1.0},"io.modelcontextprotocol/skills":{ }}}`},
		{"skills with directories first", ada, []drawbridge.Listing{
			extended("a", `{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":"true"}}}`),
			extended("b", `{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true,"x":1}}}`),
			extended("c", `{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}`),
		}, `{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true,"x":1}}}`},
		{"not of servers that the caller may not know", bob, []drawbridge.Listing{
			extended("a", `{"extensions":{"io.modelcontextprotocol/ui":{}}}`), extended("b", `{}`),
		}, `{}`},
		{"an unknown one to no client that does not declare it", declaring(ada, `{"extensions":{"com.acme/y":{}}}`),
			[]drawbridge.Listing{
				extended("a", acme),
			}, `{}`},
		{"an unknown one where both have it", declaring(ada, `{"extensions":{"com.acme/x":{}}}`), []drawbridge.Listing{
			extended("a", acme), extended("b", acme2),
		}, `{"extensions":{"com.acme/x":{"n":1.0}}}`},
		{"in the member in which its server has it",
			declaring(ada, `{"experimental":{"com.acme/x":{}},"extensions":{"old":{}}}`), []drawbridge.Listing{
				extended("a", acme2),
			}, `{"extensions":{"com.acme/x":{"n":2}},"experimental":{"old":{}}}`},
		{"only objects", declaring(ada, `{"extensions":{"com.acme/x":null,"com.acme/y":{}}}`),
			[]drawbridge.Listing{
				extended("a", `{"extensions":{"com.acme/x":{},"com.acme/y":7,"io.modelcontextprotocol/ui":true}}`),
			}, `{}`},
		{"not how a server is signed in to",
			declaring(ada, `{"extensions":{"io.modelcontextprotocol/enterprise-managed-authorization":{}}}`),
			[]drawbridge.Listing{
				extended("a", `{"extensions":{"io.modelcontextprotocol/enterprise-managed-authorization":{},"io.modelcontextprotocol/oauth-client-credentials":{}}}`),
			}, `{}`},
	} {
		d := open(t, &fake{}, Options{}, tt.listings...)
		caps := d.Capabilities(tt.caller)
		got := json.RawMessage(`{}`)
		for _, declaration := range mcp.ExtensionMembers() {
			if v := rawjson.Get(caps, declaration); v != nil {
				got = rawjson.Apply(got, rawjson.Put(v, declaration))
			}
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestADiscoveryThatDependsOnItsCallerIsTheirs(t *testing.T) {
	for capabilities, want := range map[string]bool{
		`{}`: true, `{"extensions":{"io.modelcontextprotocol/skills":{}}}`: true, acme: false,
		`{"experimental":{"old":{}}}`: false,
	} {
		d := open(t, &fake{}, Options{}, extended("a", capabilities))
		if got := d.CacheHint(ada, mcp.MethodDiscover); got != (drawbridge.CacheHint{TTL: time.Minute, Public: want}) {
			t.Errorf("%s: the hint is %+v, public should be %t", capabilities, got, want)
		}
	}
}

func TestARequestOfAnUnknownExtensionGoesToAServerThatHasIt(t *testing.T) {
	up := &fake{}
	a, b, c := extended("a", acme, "echo", "only a"), extended("b", acme2, "echo"),
		extended("c", `{}`, "echo", "only c")
	a.Resources, b.Resources = objects("uri", "r://a", "same://x"), objects("uri", "r://b", "same://x")
	b.Templates, c.Templates = objects("uriTemplate", "t://b/{x}"), objects("uriTemplate", "t://c/{x}")
	b.Prompts = objects("name", "greet")
	d := open(t, up, Options{}, a, b, c)
	x, old := declaring(ada, acme), declaring(ada, `{"experimental":{"old":{}}}`)
	const several = "Method not found: acme/do: several servers have an extension that you declare (a, b): name a tool, prompt or resource of one of them"
	for _, tt := range []struct {
		name   string
		caller drawbridge.Caller
		params string
		heard  string
		fault  string
	}{
		{"nothing is declared", ada, `{}`, "", "unknown method acme/do"},
		{"another extension is declared", declaring(ada, `{"extensions":{"com.acme/y":{}}}`), `{}`, "",
			"unknown method acme/do"},
		{"only what we know is declared", declaring(ada, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`), `{}`, "",
			"unknown method acme/do"},
		{"one server has it", old, `{"n":1.0}`, `b acme/do {"n":1.0}`, ""},
		{"one server has it, no params", old, ``, `b acme/do `, ""},
		{"one server has it, a name", old, `{"name":"b__echo","z":[1.0]}`, `b acme/do {"name":"echo","z":[1.0]}`, ""},
		{"one server has it, a URI", old, `{"uri":"drawbridge+b:same://x"}`, `b acme/do {"uri":"same://x"}`, ""},
		{"one server has it, a name of another", old, `{"name":"a__echo"}`, `b acme/do {"name":"a__echo"}`, ""},
		{"one server has it, by position", old, `[1]`, "", "acme/do: params must be a JSON object"},
		{"several have it", x, `{}`, "", several},
		{"the caller may know one of them", declaring(bob, acme), `{}`, `b acme/do {}`, ""},
		{"a name decides", x, `{"name":"b__echo"}`, `b acme/do {"name":"echo"}`, ""},
		{"a name of another style decides", x, `{"name":"mcp_a_echo"}`, `a acme/do {"name":"echo"}`, ""},
		{"an own name decides", x, `{"name":"only a"}`, `a acme/do {"name":"only a"}`, ""},
		{"an own name of two does not", x, `{"name":"echo"}`, "", several},
		{"a name of a third server does not", x, `{"name":"c__echo"}`, "", several},
		{"a prompt decides", x, `{"name":"b__greet"}`, `b acme/do {"name":"greet"}`, ""},
		{"a URI decides", x, `{"uri":"r://a"}`, `a acme/do {"uri":"r://a"}`, ""},
		{"a qualified URI decides", x, `{"uri":"drawbridge+b:same://x"}`, `b acme/do {"uri":"same://x"}`, ""},
		{"a template decides", x, `{"uri":"t://b/7"}`, `b acme/do {"uri":"t://b/7"}`, ""},
		{"a template of a third server does not", x, `{"uri":"t://c/7"}`, "", several},
		{"a name and a URI that agree", x, `{"uri":"drawbridge+b:same://x","name":"b__echo"}`,
			`b acme/do {"uri":"same://x","name":"echo"}`, ""},
		{"a name and a URI that do not", x, `{"name":"a__echo","uri":"r://b"}`, "", several},
		{"two names", x, `{"name":"a__echo","name":"b__echo"}`, "", "acme/do: params have two name"},
	} {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: tt.caller, Method: "acme/do",
			Params: json.RawMessage(tt.params)})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != tt.fault {
			t.Errorf("%s: fault %q, want %q", tt.name, text, tt.fault)
		}
		var want []string
		if tt.heard != "" {
			want = []string{tt.heard}
		}
		if diff := cmp.Diff(want, up.told()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestGuardsDecideOnRequestsOfUnknownExtensions(t *testing.T) {
	var asked []Question
	verdict := drawbridge.Verdict{Effect: drawbridge.Allow}
	up := &fake{}
	d := open(t, up, Options{Guards: []Guard{guard(func(q Question) drawbridge.Verdict {
		asked = append(asked, q)
		return verdict
	})}}, extended("a", acme, "echo"))
	do := func() error {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: declaring(ada, acme), Method: "acme/do",
			Params: json.RawMessage(`{"name":"a__echo"}`)})
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if q := asked[0]; q.Method != "acme/do" || q.Spec.Server != "a" || q.Spec.Name != "a__echo" ||
		string(q.Params) != `{"name":"a__echo"}` {
		t.Errorf("the guard is asked %+v", q)
	}
	up.told()
	verdict = drawbridge.Verdict{Reason: "no"}
	wantFault(t, do(), drawbridge.PolicyBlocked, "acme/do a__echo: no")
	verdict = drawbridge.Verdict{Hide: true}
	wantFault(t, do(), drawbridge.NotFound, "unknown method acme/do")
	wantList(t, up.told())
}

func TestARequestStateOfAnUnknownExtensionIsSealedToItsParams(t *testing.T) {
	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"resultType":"input_required","requestState":"own"}`)}, nil
	}}
	d := open(t, up, Options{}, extended("a", acme))
	do := func(params string) (drawbridge.Result, error) {
		return d.Do(t.Context(), drawbridge.Call{Caller: declaring(ada, acme), Method: "acme/do",
			Params: json.RawMessage(params)})
	}
	first, err := do(`{"what":1,"_meta":{"a":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	state := string(rawjson.Get(first.Raw, "requestState"))
	up.told()
	if _, err := do(`{"what":1,"requestState":` + state + `,"inputResponses":{},"_meta":{"a":2}}`); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), `a acme/do {"what":1,"requestState":"own","inputResponses":{},"_meta":{"a":2}}`)
	_, err = do(`{"what":2,"requestState":` + state + `}`)
	wantFault(t, err, drawbridge.InvalidInput, "acme/do: requestState: it was not given out for this request")
}

// FuzzDeclarations reads what servers and callers declare: whatever it is, what a caller is told is JSON, and an
// unknown extension is told only where both have it.
func FuzzDeclarations(f *testing.F) {
	f.Add(acme, acme2)
	f.Add(`{"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}`, `{}`)
	f.Add(`{"extensions":[],"experimental":{"":{}}}`, `{"experimental":{"":{}}}`)
	f.Fuzz(func(t *testing.T, servers, callers string) {
		if rawjson.Valid([]byte(servers)) != nil || rawjson.Valid([]byte(callers)) != nil {
			t.Skip()
		}
		d := open(t, &fake{}, Options{}, extended("a", servers))
		caps := d.Capabilities(declaring(ada, callers))
		if err := rawjson.Valid(caps); err != nil {
			t.Fatalf("capabilities %s: %v", caps, err)
		}
		theirs := mcp.UnknownExtensions(json.RawMessage(callers))
		for id := range mcp.UnknownExtensions(caps) {
			if !theirs[id] {
				t.Errorf("%q is told to a caller who declares %s", id, callers)
			}
		}
	})
}

// TestWhatARequestOfAnUnknownExtensionNamesIsGuarded names things in a request whose meaning only its server knows:
// guards decide on each of them as on a call of it.
func TestWhatARequestOfAnUnknownExtensionNamesIsGuarded(t *testing.T) {
	up := &fake{}
	bar := ""
	shut := &shutter{}
	a := extended("a", `{"resources":{},"extensions":{"com.acme/x":{}}}`, "echo", "secret")
	a.Prompts, a.Resources = objects("name", "greet", "veiled"), objects("uri", "r://a")
	d := open(t, up, Options{Guards: []Guard{shut, guard(func(q Question) drawbridge.Verdict {
		if q.Kind+" "+q.Spec.Tool == bar {
			return drawbridge.Verdict{Reason: "no"}
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})}}, a)
	do := func(params string) error {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: declaring(ada, acme), Method: "acme/do",
			Params: json.RawMessage(params)})
		return err
	}
	for params, what := range map[string]string{
		`{"name":"a__echo"}`:                 "tool echo",
		`{"name":"a__greet"}`:                "prompt greet",
		`{"uri":"r://a"}`:                    "resource r://a",
		`{"uri":"unlisted://a"}`:             "resource unlisted://a",
		`{"name":"a__echo","uri":"r://a"}`:   "resource r://a",
		`{"uri":"far://a","name":"a__echo"}`: "resource far://a",
		`{"n":1}`:                            " acme/do",
	} {
		bar = what
		if f := drawbridge.AsFault(do(params)); f == nil || f.Code != drawbridge.PolicyBlocked {
			t.Errorf("%s passes a guard that bars the %s: %v", params, what, f)
		}
		wantList(t, up.told())
		bar = ""
		if err := do(params); err != nil || len(up.told()) != 1 {
			t.Errorf("%s: %v", params, err)
		}
	}
	shut.names = []string{"secret", "veiled"}
	d.Refresh()
	for _, name := range []string{"secret", "a__secret", "veiled", "a__veiled"} {
		wantFault(t, do(`{"name":"`+name+`"}`), drawbridge.NotFound, "unknown method acme/do")
	}
	wantList(t, up.told())
}

// A shutter hides what has one of its names.
type shutter struct{ names []string }

var _ HidingGuard = (*shutter)(nil)

func (*shutter) Decide(context.Context, Question) drawbridge.Verdict {
	return drawbridge.Verdict{Effect: drawbridge.Allow}
}
func (s *shutter) Hides(_ drawbridge.Caller, _ string, spec drawbridge.Spec) bool {
	return slices.Contains(s.names, spec.Tool)
}
func (*shutter) CallerClass(drawbridge.Caller) string { return "" }
func (*shutter) HidesAnything() bool                  { return true }
