//go:build !nomcp

package gateway

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// asScript returns the caller of a script that c has started.
func asScript(c drawbridge.Caller) drawbridge.Caller {
	c.StartedBy, c.Kind = c.Kind, drawbridge.Sandbox
	return c
}

// TestCallers has a row for each kind of caller: what becomes of the page that it writes.
func TestCallers(t *testing.T) {
	l := openLibrary(t)
	all := []drawbridge.Scope{"*"}
	named := []drawbridge.Scope{"workspace:*"}
	claims := l.Owner()
	claims.Kind = drawbridge.Author
	claimsAgent := claims
	claimsAgent.Kind, claimsAgent.Thread, claimsAgent.Run = drawbridge.Agent, "thread", "r1"
	anotherRun, withoutRun, moreScopes := l.agent("r1"), l.agent(""), l.agent("r1")
	anotherRun.Run = "r2"
	moreScopes.Scopes = append(moreScopes.Scopes[:0:0], "workspace:author", "*")
	moreScopes.Principal = "bob"
	becomesPerson := l.agent("r1")
	becomesPerson.Kind = drawbridge.Author
	registered := func(origin string, scopes []drawbridge.Scope) drawbridge.Caller {
		c := l.client(scopes...)
		c.Origin = origin
		return c
	}
	for _, tt := range []struct {
		name              string
		caller            drawbridge.Caller
		asked             string
		origin, lifecycle string // empty if it is refused
	}{
		{"a person", l.person(), "", "authored", "canonical"},
		{"a person's draft", l.person(), "draft", "authored", "draft"},
		{"an agent", l.agent("r1"), "", "agent-produced", "candidate"},
		{"an agent that asks for more", l.agent("r1"), "canonical", "", ""},
		{"an agent without a run", withoutRun, "", "", ""},
		{"a script of an agent", asScript(l.agent("r1")), "", "agent-produced", "candidate"},
		{"a script of a person", asScript(l.person()), "", "authored", "candidate"},
		{"a script of a person that asks for more", asScript(l.person()), "canonical", "", ""},
		{"a client", l.client(all...), "", "agent-produced", "candidate"},
		{"a client that asks for more", l.client(named...), "canonical", "", ""},
		{"a client that imports", registered("imported", all), "", "imported", "draft"},
		{"a client that observes", registered("observed", all), "", "observed", "draft"},
		{"a client that authors", registered("authored", named), "", "authored", "candidate"},
		{"a client that authors and asks", registered("authored", named), "canonical", "authored", "canonical"},
		{"a client that authors without the scope", registered("authored", all), "", "", ""},
		{"a client with an unknown origin", registered("divine", all), "", "", ""},
		{"a client without the scope", l.client("workspace:read"), "", "", ""},
		{"an unknown caller", drawbridge.Caller{Scopes: all}, "", "", ""},
		{"a caller that says it is a person", claims, "", "agent-produced", "candidate"},
		{"a caller that says it is a person, and asks", claims, "canonical", "", ""},
		{"a caller that says it is an agent", claimsAgent, "", "agent-produced", "candidate"},
		{"an agent's caller with another run", anotherRun, "", "agent-produced", "candidate"},
		{"an agent's caller with another principal", moreScopes, "", "agent-produced", "candidate"},
		{"an agent's caller that becomes a person", becomesPerson, "canonical", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made, err := l.call(tt.caller, "page_create", arguments{"title": tt.name, "text": "text", "lifecycle": tt.asked})
			if got := rawjson.GetString(made, "receipt", "origin"); got != tt.origin || (err == nil) != (tt.origin != "") {
				t.Errorf("the origin is %q, %v; want %q", got, err, tt.origin)
			}
			if got := rawjson.GetString(made, "receipt", "lifecycle"); got != tt.lifecycle {
				t.Errorf("the lifecycle is %q, want %q", got, tt.lifecycle)
			}
		})
	}
}

// TestOnlyAPersonDecides: no other caller promotes, rejects, revalidates, grants or scrubs, whatever scopes it holds.
func TestOnlyAPersonDecides(t *testing.T) {
	l := openLibrary(t)
	made := l.does(l.agent("r1"), "page_create", arguments{"title": "Page", "text": "text"})
	revision, page := rawjson.GetString(made, "receipt", "revision"), rawjson.GetString(made, "receipt", "page")
	claims := l.Owner()
	claims.Kind, claims.Scopes = drawbridge.Author, []drawbridge.Scope{"*", "workspace:*"}
	wide := l.agent("r1")
	callers := map[string]drawbridge.Caller{"agent": wide, "client": l.client("*", "workspace:*"), "claims": claims,
		"script": asScript(l.person()), "script of an agent": asScript(wide)}
	for tool, args := range map[string]arguments{
		"review_promote": {"revision": revision}, "review_reject": {"revision": revision}, "review_revalidate": {"entity": page},
		"workspace_grant": {"principal": "kind:agent", "capabilities": []string{"workspace:scrub"}},
		"workspace_scrub": {"revisions": []string{revision}},
	} {
		for name, c := range callers {
			if _, err := l.call(c, tool, args); err == nil {
				t.Errorf("%s: %s was carried out", name, tool)
			}
		}
	}
	l.does(l.person(), "workspace_grant", arguments{"principal": "kind:agent", "capabilities": []string{"workspace:read"}})
	if _, err := l.call(wide, "page_create", arguments{"title": "More"}); err == nil {
		t.Error("an agent that was narrowed to reading has written")
	}
	l.does(wide, "page_read", arguments{"page": page})
}

// TestScopesOfAClient: a client is refused without the scopes of a tool, and does not see it.
func TestScopesOfAClient(t *testing.T) {
	l := openLibrary(t)
	listed := func(c drawbridge.Caller, name string) bool {
		list, err := l.Deck().List(t.Context(), c, mcp.MethodToolsList)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range list.Items {
			if rawjson.GetString(raw, "name") == name {
				return true
			}
		}
		return false
	}
	for _, tt := range []struct {
		scopes []drawbridge.Scope
		tool   string
		want   bool
	}{
		{[]drawbridge.Scope{"workspace:read"}, "page_read", true},
		{[]drawbridge.Scope{"workspace:read"}, "page_create", false},
		{[]drawbridge.Scope{"workspace:read", "workspace:propose"}, "page_create", true},
		{[]drawbridge.Scope{"*"}, "page_create", true},
		{[]drawbridge.Scope{"*"}, "memory_write", true},
		{[]drawbridge.Scope{"*"}, "page_delete", false},
		{[]drawbridge.Scope{"*", "workspace:author"}, "page_delete", true},
		{[]drawbridge.Scope{"*", "workspace:*"}, "review_promote", false},
		{[]drawbridge.Scope{"*"}, "workspace_import", false},
	} {
		if got := listed(l.client(tt.scopes...), tt.tool); got != tt.want {
			t.Errorf("%v: %s is listed: %v", tt.scopes, tt.tool, got)
		}
	}
	if !listed(l.person(), "review_promote") || listed(l.agent("r"), "review_promote") {
		t.Error("review_promote is not listed for the person only")
	}
}

// TestEmbeddingProgramsCannotForgeCallers: what a program gets from Drawbridge proves nothing when it is used again, and
// the store cannot be reached by reflection.
func TestEmbeddingProgramsCannotForgeCallers(t *testing.T) {
	l := openLibrary(t)
	var copied drawbridge.Caller
	guard := guardFunc(func(q deck.Question) drawbridge.Verdict {
		copied = q.Caller
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})
	g := open(t, Config{Dir: l.config.Dir, LookupEnv: l.config.LookupEnv, Guards: []deck.Guard{guard}})
	second := library{g, t}
	second.does(second.person(), "page_create", arguments{"title": "Mine"})
	if copied.Kind != drawbridge.Author {
		t.Fatalf("the guard saw %v", copied)
	}
	made := second.does(copied, "page_create", arguments{"title": "Forged"})
	if got := rawjson.GetString(made, "receipt", "origin"); got != "agent-produced" {
		t.Errorf("a copied caller writes as %s", got)
	}
	if p := reflect.ValueOf(l.person()).FieldByName("Proof").Elem().Elem().FieldByName("principal"); p.CanSet() || p.CanInterface() {
		t.Error("a proof can be changed by reflection")
	}
	shared := reflect.ValueOf(l.Gateway).Elem().FieldByName("shared")
	if f := shared.Elem().FieldByName("workspace"); f.CanInterface() || f.CanSet() {
		t.Error("the store of the workspace can be reached by reflection")
	}
	if _, ok := any(l.Deck()).(deck.Boundary); ok {
		t.Error("a program can write through the deck")
	}
}

type guardFunc func(q deck.Question) drawbridge.Verdict

func (f guardFunc) Name() string { return "test" }

func (f guardFunc) Decide(_ context.Context, q deck.Question) drawbridge.Verdict { return f(q) }

// TestReadTrail: what a run has read becomes the sources of what it writes, from the workspace and from elsewhere; what
// other runs have read does not.
func TestReadTrail(t *testing.T) {
	l := openLibrary(t)
	one := rawjson.GetString(l.does(l.person(), "page_create", arguments{"title": "One", "text": "x"}), "receipt", "page")
	l.does(l.person(), "page_create", arguments{"title": "Two", "text": "x"})
	l.does(l.agent("r1"), "page_read", arguments{"page": "one"})
	l.does(l.agent("r2"), "page_read", arguments{"page": "two"})
	notes := filepath.Join(l.config.Dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := asScript(l.agent("r1"))
	l.does(l.agent("r1"), "read", arguments{"path": notes})
	l.does(script, "page_create", arguments{"title": "Derived", "text": "x"})
	links := rawjson.Get(l.does(l.person(), "page_links", arguments{"page": "derived"}), "links")
	if got := string(rawjson.Get(links, "sources")); got != `["`+one+`"]` {
		t.Errorf("the sources are %s", got)
	}
	if got := string(rawjson.Get(links, "outside")); !strings.Contains(got, `"kind":"file"`) || !strings.Contains(got, "notes.txt") {
		t.Errorf("the sources outside are %s", got)
	}
	if _, err := l.call(l.agent("r3"), "page_create", arguments{"title": "Wrong", "sources": []string{"none"}}); !isCode(err, drawbridge.NotFound) {
		t.Errorf("a source that does not exist: %v", err)
	}
}

func isCode(err error, code drawbridge.FaultCode) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Code == code
}

// TestAgentsWritesNameTheirRun: the writes of the runs of an agent belong to its thread and run.
func TestAgentsWritesNameTheirRun(t *testing.T) {
	l := openLibrary(t)
	c := l.AgentTools("thread", AgentOptions{}).callerOf(agent.Identity{Session: "r1", Agent: "helper", Mode: agent.Bypass})
	l.does(c, "page_create", arguments{"title": "Page"})
	page := rawjson.Get(l.does(l.person(), "page_read", arguments{"page": "page"}), "page")
	if rawjson.GetString(page, "thread") != "thread" || rawjson.GetString(page, "run") != "r1/helper" {
		t.Errorf("the page is %s", page)
	}
}

// TestMemoryOfOthersIsNotShown: the history, the candidates and the revisions of a caller have no memory of other
// conversations and accounts.
func TestMemoryOfOthersIsNotShown(t *testing.T) {
	const secret = "only for this conversation"
	l := openLibrary(t)
	owner, other := l.agent("r1"), l.client("workspace:read", "workspace:memory")
	made := l.does(owner, "memory_write", arguments{"tier": "conversation", "name": "note", "text": secret})
	entity, revision := rawjson.GetString(made, "receipt", "entity"), rawjson.GetString(made, "receipt", "revision")
	reads := map[string]arguments{"page_history": {"entity": entity}, "review_list": {}, "page_diff": {"revision": revision}}
	shows := func(c drawbridge.Caller, tool string) bool {
		out, err := l.call(c, tool, reads[tool])
		return strings.Contains(string(out), secret) || err != nil && strings.Contains(err.Error(), secret)
	}
	for tool := range reads {
		if !shows(owner, tool) {
			t.Errorf("%s does not show its own memory to an agent", tool)
		}
		if shows(other, tool) {
			t.Errorf("%s shows the memory of a conversation to a client", tool)
		}
	}
}
