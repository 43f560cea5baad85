package deck

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// modernJobs and legacyJobs are listings of servers with tasks, of one generation each.
func modernJobs(server string) drawbridge.Listing {
	l := listing(server, "x")
	l.Era, l.Capabilities = drawbridge.Modern,
		json.RawMessage(`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{"v":1.0}}}`)
	return l
}

func legacyJobs(server string) drawbridge.Listing {
	l := listing(server, "x")
	l.Era, l.Capabilities = drawbridge.Legacy,
		json.RawMessage(`{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}`)
	return l
}

// stateless and stateful are callers of one generation each, who know tasks.
func stateless(principal string) drawbridge.Caller {
	c := ada
	c.Principal, c.Capabilities = principal, json.RawMessage(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	return c
}

func stateful(principal string) drawbridge.Caller {
	c := ada
	c.Principal, c.Era, c.Session, c.Protocol = principal, drawbridge.Legacy, "s-"+principal, mcp.Version20251125
	return c
}

var masters = [][]byte{[]byte("master")}

// ticketOf is the ticket that a deck with these master keys issues.
func ticketOf(principal string, kind idKind, server drawbridge.ServerID, own string) string {
	return newTokenSealer(masters, nil).sealID(principal, sealedID{Kind: kind, Server: server, Own: own})
}

// ask sends params in which $T stands for a ticket, and returns the result with $T for it, so that all else shows as
// bytes.
func ask(t *testing.T, d *Deck, caller drawbridge.Caller, method, params, ticket string) (string, error) {
	t.Helper()
	result, err := d.Do(t.Context(), drawbridge.Call{
		Caller: caller, Method: method, Params: json.RawMessage(strings.ReplaceAll(params, "$T", ticket)),
	})
	return strings.ReplaceAll(string(result.Raw), ticket, "$T"), err
}

// TestTasksPassUnderTickets has every place where an id stands, and bytes around it that nothing may touch.
func TestTasksPassUnderTickets(t *testing.T) {
	const related = `"io.modelcontextprotocol/related-task"`
	for _, tt := range []struct {
		name, method, params, sent, answer, want string
		legacy                                   bool
	}{
		{
			"a call becomes a task", mcp.MethodToolsCall, `{"name":"a__x"}`, `{"name":"x"}`,
			`{"resultType":"task", "taskId":"7","status":"working","ttlMs":1e3,"x":{"taskId":"7"}}`,
			`{"resultType":"task", "taskId":"$T","status":"working","ttlMs":1e3,"x":{"taskId":"7"}}`, false,
		}, {
			"a call that says taskId and is none", mcp.MethodToolsCall, `{"name":"a__x"}`, `{"name":"x"}`,
			`{"structuredContent":{"taskId":"7"},"taskId":"7","task":{"taskId":"7"}}`,
			`{"structuredContent":{"taskId":"7"},"taskId":"7","task":{"taskId":"7"}}`, false,
		}, {
			"a task that asks", mcp.MethodTasksGet, `{"taskId":"$T", "n":1.0}`, `{"taskId":"7", "n":1.0}`,
			`{"resultType":"complete","taskId":"7","inputRequests":{"q":{"method":"m","params":{"_meta":{` + related +
				`:{"taskId":"7"}}}}}}`,
			`{"resultType":"complete","taskId":"$T","inputRequests":{"q":{"method":"m","params":{"_meta":{` + related +
				`:{"taskId":"$T"}}}}}}`, false,
		}, {
			"a task that is over", mcp.MethodTasksGet, `{"taskId":"$T"}`, `{"taskId":"7"}`,
			`{"taskId":"7","result":{"content":[],"_meta":{` + related + `:{"taskId":"7"}},"taskId":"7"}}`,
			`{"taskId":"$T","result":{"content":[],"_meta":{` + related + `:{"taskId":"$T"}},"taskId":"7"}}`, false,
		}, {
			"answers for a task", mcp.MethodTasksUpdate, `{"taskId":"$T","inputResponses":{"q":{"taskId":"7"}}}`,
			`{"taskId":"7","inputResponses":{"q":{"taskId":"7"}}}`, `{"resultType":"complete"}`,
			`{"resultType":"complete"}`, false,
		}, {
			"a cancelled task", mcp.MethodTasksCancel, `{"taskId":"$T"}`, `{"taskId":"7"}`, `{}`, `{}`, false,
		}, {
			"a call that asks for a task", mcp.MethodToolsCall, `{"name":"a__x","task":{"ttl":1e3}}`,
			`{"name":"x","task":{"ttl":1e3}}`,
			`{"task":{"taskId":"7", "ttl":1e3},"_meta":{` + related + `:{"taskId":"7","x":1}}}`,
			`{"task":{"taskId":"$T", "ttl":1e3},"_meta":{` + related + `:{"taskId":"$T","x":1}}}`, true,
		}, {
			"a legacy task", mcp.MethodTasksGet, `{"taskId":"$T"}`, `{"taskId":"7"}`,
			`{"taskId":"7","status":"working"}`, `{"taskId":"$T","status":"working"}`, true,
		}, {
			"the result of a legacy task", mcp.MethodTasksResult, `{"taskId":"$T"}`, `{"taskId":"7"}`,
			`{"content":[],"taskId":"7","_meta":{` + related + `:{"taskId":"7"}}}`,
			`{"content":[],"taskId":"7","_meta":{` + related + `:{"taskId":"$T"}}}`, true,
		}, {
			"a legacy task that is cancelled", mcp.MethodTasksCancel, `{"taskId":"$T"}`, `{"taskId":"7"}`,
			`{"taskId":"7","status":"cancelled"}`, `{"taskId":"$T","status":"cancelled"}`, true,
		}, {
			"a call on behalf of a task", mcp.MethodToolsCall, `{"name":"a__x","_meta":{` + related +
				`:{"taskId":"$T"},"n":1.0}}`,
			`{"name":"x","_meta":{` + related + `:{"taskId":"7"},"n":1.0}}`, `{}`, `{}`, true,
		}, {
			"a call on behalf of a task without owner", mcp.MethodToolsCall, `{"name":"a__x","_meta":{` + related +
				`:{"taskId":"7"},"n":1.0}}`,
			`{"name":"x","_meta":{"n":1.0}}`, `{}`, `{}`, true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up, caller, form, jobs := &fake{}, stateless("ada"), modernTaskID, modernJobs
			if tt.legacy {
				caller, form, jobs = stateful("ada"), legacyTaskID, legacyJobs
			}
			up.answer = func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
				return drawbridge.Result{Raw: json.RawMessage(tt.answer)}, nil
			}
			d := open(t, up, Options{SealKeys: masters}, jobs("a"))
			got, err := ask(t, d, caller, tt.method, tt.params, ticketOf("ada", form, "a", "7"))
			if err != nil || got != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			wantList(t, up.told(), "a "+tt.method+" "+tt.sent)
		})
	}
}

// TestATaskOfAnotherIsUnknown: anyone who asks for what is not theirs hears the same, and the server hears nothing.
func TestATaskOfAnotherIsUnknown(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{SealKeys: masters}, modernJobs("a"), modernJobs("b"), legacyJobs("c"))
	narrow := stateless("ada")
	narrow.Scopes = []drawbridge.Scope{"mcp:b"}
	mine := ticketOf("ada", modernTaskID, "a", "7")
	for _, tt := range []struct {
		name, id string
		caller   drawbridge.Caller
	}{
		{"the server's own id", "7", stateless("ada")},
		{"another principal's", mine, stateless("bob")},
		{"a tampered one", mine[:len(mine)-1] + "A", stateless("ada")},
		{"of a server that the caller may not know of", mine, narrow},
		{"of a server that is gone", ticketOf("ada", modernTaskID, "gone", "7"), stateless("ada")},
		{"of the other form", ticketOf("ada", legacyTaskID, "c", "7"), stateless("ada")},
		{"a cursor", ticketOf("ada", listCursorID, "a", "7"), stateless("ada")},
		{"of the other form, for a stateful caller", mine, stateful("ada")},
	} {
		for _, method := range []string{mcp.MethodTasksGet, mcp.MethodTasksCancel, mcp.MethodTasksUpdate} {
			if method == mcp.MethodTasksUpdate && tt.caller.Era == drawbridge.Legacy {
				continue
			}
			_, err := ask(t, d, tt.caller, method, `{"taskId":"`+tt.id+`"}`, "-")
			t.Log(tt.name, method)
			wantFault(t, err, drawbridge.NotFound, "unknown task "+tt.id)
		}
		if err := d.WatchTask(t.Context(), tt.caller, tt.id); err == nil {
			t.Errorf("%s: it can be watched", tt.name)
		}
	}
	wantList(t, up.told())

	if _, err := ask(t, d, stateless("ada"), mcp.MethodTasksGet, `{"taskId":"$T"}`, mine); err != nil {
		t.Errorf("its own principal: %v", err)
	}
	// A deck that was started again with a new key, and has the old one still.
	again := open(t, up, Options{SealKeys: [][]byte{[]byte("new"), masters[0]}}, modernJobs("a"))
	up.answer = func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"taskId":"7"}`)}, nil
	}
	if got, err := ask(t, again, stateless("ada"), mcp.MethodTasksGet, `{"taskId":"$T"}`, mine); err != nil ||
		got != `{"taskId":"$T"}` {
		t.Errorf("after a restart: %s, %v", got, err)
	}
}

func TestWhoMayUseTheMethodsOfTasks(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, modernJobs("a"), legacyJobs("c"))
	narrow := stateful("ada")
	narrow.Scopes = []drawbridge.Scope{"mcp:a"}
	undeclared := stateless("ada")
	undeclared.Capabilities = json.RawMessage(`{}`)
	for _, tt := range []struct {
		caller drawbridge.Caller
		method string
		code   int
	}{
		{stateless("ada"), mcp.MethodTasksResult, mcp.CodeMethodNotFound},
		{stateless("ada"), mcp.MethodTasksList, mcp.CodeMethodNotFound},
		{stateless("ada"), "tasks/else", mcp.CodeMethodNotFound},
		{stateful("ada"), mcp.MethodTasksUpdate, mcp.CodeMethodNotFound},
		{narrow, mcp.MethodTasksGet, mcp.CodeMethodNotFound},
		{narrow, mcp.MethodTasksList, mcp.CodeMethodNotFound},
		{undeclared, mcp.MethodTasksGet, mcp.CodeMissingCapability},
		{undeclared, mcp.MethodTasksUpdate, mcp.CodeMissingCapability},
		{undeclared, mcp.MethodTasksCancel, mcp.CodeMissingCapability},
	} {
		_, err := ask(t, d, tt.caller, tt.method, `{"taskId":"7"}`, "-")
		f, ok := errors.AsType[*drawbridge.Fault](err)
		if !ok || mcp.ErrorCode(f.Raw) != tt.code {
			t.Errorf("%s %s: %v, want code %d", tt.caller.Era, tt.method, err, tt.code)
		}
	}
	wantList(t, up.told())
	_, err := ask(t, d, stateless("ada"), mcp.MethodTasksGet, `{}`, "-")
	wantFault(t, err, drawbridge.InvalidInput, "tasks/get: params have no taskId")
	_, err = ask(t, d, stateless("ada"), mcp.MethodTasksGet, `{"taskId":"1","taskId":"2"}`, "-")
	wantFault(t, err, drawbridge.InvalidInput, "tasks/get: params have two taskId")
}

func TestGuardsDecideOnTasks(t *testing.T) {
	var asked []string
	verdict := drawbridge.Verdict{}
	g := guard(func(q Question) drawbridge.Verdict {
		asked = append(asked, q.Method+" "+string(q.Spec.Server)+" "+q.Spec.Tool)
		return verdict
	})
	up := &fake{}
	d := open(t, up, Options{SealKeys: masters, Guards: []Guard{g}}, modernJobs("a"))
	mine := ticketOf("ada", modernTaskID, "a", "7")
	_, err := ask(t, d, stateless("ada"), mcp.MethodTasksCancel, `{"taskId":"$T"}`, mine)
	wantFault(t, err, drawbridge.PolicyBlocked, "tasks/cancel "+mine+": it is not allowed")
	verdict.Hide = true
	_, err = ask(t, d, stateless("ada"), mcp.MethodTasksGet, `{"taskId":"$T"}`, mine)
	wantFault(t, err, drawbridge.NotFound, "unknown task "+mine)
	wantList(t, up.told())
	wantList(t, asked, "tasks/cancel a 7", "tasks/get a 7")
}

// TestTasksDoNotPassBetweenTheForms: what one form has and the other has no words for goes no further.
func TestTasksDoNotPassBetweenTheForms(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{SealKeys: masters}, modernJobs("m"), legacyJobs("l"))
	eager := stateful("ada")
	eager.Capabilities = json.RawMessage(`{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{},"x":{}}}`)
	for _, tt := range []struct {
		caller     drawbridge.Caller
		tool, sent string
	}{
		{stateful("ada"), "m__x", `{"name":"x","n":1.0}`},
		{stateless("ada"), "l__x", `{"name":"x","n":1.0}`},
		{stateful("ada"), "l__x", `{"name":"x","n":1.0,"task":{}}`},
		{stateless("ada"), "m__x", `{"name":"x","n":1.0,"task":{}}`}, // which the extension wants tolerated
		{eager, "m__x", `{"name":"x","n":1.0}`},
	} {
		up.answer = func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
			if c.Caller.Era == drawbridge.Legacy && strings.Contains(string(c.Caller.Capabilities), "tasks") {
				t.Errorf("the server hears of %s", c.Caller.Capabilities)
			}
			return drawbridge.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		}
		if _, err := ask(t, d, tt.caller, mcp.MethodToolsCall, `{"name":"`+tt.tool+`","n":1.0,"task":{}}`,
			"-"); err != nil {
			t.Error(err)
		}
		server, _, _ := strings.Cut(tt.tool, "_")
		wantList(t, up.told(), server+" tools/call "+tt.sent)
	}
	up.answer = func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(`{"resultType":"task","taskId":"7"}`)}, nil
	}
	_, err := ask(t, d, stateful("ada"), mcp.MethodToolsCall, `{"name":"m__x"}`, "-")
	wantFault(t, err, drawbridge.ServerError,
		"tools/call on m: the server turned the call into a task, which the caller's protocol does not support")
}

func TestCapabilitiesForTasksAreOfTheCallersForm(t *testing.T) {
	other := legacyJobs("c")
	other.Capabilities = json.RawMessage(`{"tasks":{"cancel":{}}}`)
	d := open(t, &fake{}, Options{}, modernJobs("a"), legacyJobs("b"), other)
	old := stateful("ada")
	old.Protocol = mcp.Version20250618
	narrow := stateless("ada")
	narrow.Scopes = []drawbridge.Scope{"mcp:b"}
	for _, tt := range []struct {
		caller              drawbridge.Caller
		extension, inTheOld string
	}{
		{stateless("ada"), `{"v":1.0}`, ""},
		{narrow, "", ""},
		{stateful("ada"), "", `{"list":{},"requests":{"tools":{"call":{}}},"cancel":{}}`},
		{old, "", ""},
	} {
		caps := d.Capabilities(tt.caller)
		extension, inTheOld := string(rawjson.Get(caps, "extensions", mcp.ExtensionTasks)),
			string(rawjson.Get(caps, "tasks"))
		if extension != tt.extension || inTheOld != tt.inTheOld {
			t.Errorf("%s %s: %s", tt.caller.Era, tt.caller.Protocol, caps)
		}
	}
}

// heardPeer is a caller that writes down what reaches it, and answers about a task.
type heardPeer struct {
	heard  []string
	answer string
}

func (p *heardPeer) Notify(_ context.Context, method string, params json.RawMessage) error {
	p.heard = append(p.heard, method+" "+string(params))
	return nil
}

func (p *heardPeer) Request(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	p.heard = append(p.heard, method+" "+string(params))
	return json.RawMessage(p.answer), nil
}

// TestWhatAServerSaysOfATaskInACall: under the ticket, both ways, and not to someone who is not known to have the
// task.
func TestWhatAServerSaysOfATaskInACall(t *testing.T) {
	about := func(id string) json.RawMessage {
		return json.RawMessage(`{"n":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"` + id + `"}}}`)
	}
	mine := ticketOf("ada", legacyTaskID, "c", "7")
	up, p := &fake{}, &heardPeer{answer: string(about(mine))}
	up.answer = func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		for _, id := range []string{"7", "8"} {
			if err := c.Peer.Notify(t.Context(), mcp.NoteMessage, about(id)); err != nil {
				t.Error(err)
			}
			answer, err := c.Peer.Request(t.Context(), mcp.MethodElicitation, about(id))
			if id == "7" && (err != nil || string(answer) != string(about("7"))) || id == "8" && err == nil {
				t.Errorf("about %s the server hears %s, %v", id, answer, err)
			}
		}
		return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
	}
	d := open(t, up, Options{SealKeys: masters}, legacyJobs("c"))
	for _, call := range []drawbridge.Call{
		{Method: mcp.MethodTasksResult, Params: json.RawMessage(`{"taskId":"` + mine + `"}`)},
		{Method: mcp.MethodToolsCall, Params: json.RawMessage(`{"name":"c__x"}`)},
	} {
		p.heard = nil
		call.Caller, call.Peer = stateful("ada"), p
		if _, err := d.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		want := []string{mcp.NoteMessage + " " + string(about(mine)), mcp.MethodElicitation + " " + string(about(mine))}
		if diff := cmp.Diff(want, p.heard); diff != "" {
			t.Errorf("%s (-want +got):\n%s", call.Method, diff)
		}
	}
}

// TestTasksOfAServerThatIsNotShownAreUnknown has all that a server offers taken off the deck, as where it is
// quarantined: what it has to say of its tasks is off it too.
func TestTasksOfAServerThatIsNotShownAreUnknown(t *testing.T) {
	up, hidden := &fake{}, false
	vet := censor(func(v VettedListing) (VettedListing, error) {
		if hidden {
			return VettedListing{}, nil
		}
		return v, nil
	})
	d := openVetted(t, vet, up, Options{SealKeys: masters}, modernJobs("a"))
	// b may yet have tasks
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a"},
		{ID: "b", ConfigHash: "row-b"}}); err != nil {
		t.Fatal(err)
	}
	ticket := ticketOf("ada", modernTaskID, "a", "7")
	get := func() error {
		_, err := ask(t, d, stateless("ada"), mcp.MethodTasksGet, `{"taskId":"$T"}`, ticket)
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	up.told()
	hidden = true
	if err := vet.reenrol(t.Context(), d, "a"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, get(), drawbridge.NotFound, "unknown task "+ticket)
	wantList(t, up.told())
}
