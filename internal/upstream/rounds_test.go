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

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// asksInTurn is a stateless tool that answers with these results, one a round, the last for ever.
func (r *rig) asksInTurn(results ...string) {
	round := 0
	r.fake.on(mcp.MethodToolsCall, func(*fakeConn, mcp.Message) string {
		result := results[min(round, len(results)-1)]
		round++
		return result
	})
}

// rounds gives the questions and answers that each call came with.
func (r *rig) rounds() (got []string) {
	for _, p := range r.fake.params(mcp.MethodToolsCall) {
		got = append(got, fmt.Sprintf("%s %s", rawjson.Get(p, "inputResponses"), rawjson.Get(p, "requestState")))
	}
	return got
}

func TestAStatefulCallerIsAskedAsOftenAsTheServerNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{})
		r.asksInTurn(
			`{"resultType":"input_required","inputRequests":{"b":{"method":"elicitation/create","params":{"message":"who?"}},"a":{"method":"roots/list"}},"requestState":"one"}`,
			`{"resultType":"input_required","requestState":{"odd":2.0}}`,
			`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","url":"https://a.test"}}}}`,
			`{"resultType":"complete","content":[]}`)
		c := talker("s")
		c.Capabilities = []byte(`{"roots":{},"elicitation":{"form":{},"url":{}}}`)
		p := &peer{answer: func(method string) (json.RawMessage, error) {
			return json.RawMessage(`{"to":"` +
				method + `"}`), nil
		}}
		call := echo(c)
		call.Peer = p
		if got := string(r.call(call).Raw); got != `{"resultType":"complete","content":[]}` {
			t.Error(got)
		}
		want := []string{
			` `,
			`{"b":{"to":"elicitation/create"},"a":{"to":"roots/list"}} "one"`,
			` {"odd":2.0}`,
			`{"a":{"to":"elicitation/create"}} `,
		}
		if diff := cmp.Diff(want, r.rounds()); diff != "" {
			t.Error(diff)
		}
		questions := p.questions()
		id := rawjson.GetString(json.RawMessage(strings.TrimPrefix(questions[2], "elicitation/create ")),
			"elicitationId")
		if id == "" {
			t.Error("an elicitation by URL has no id, which stateful clients require")
		}
		wantQuestions := []string{
			`elicitation/create {"message":"who?","_meta":{"drawbridge/server":"fake"}}`,
			`roots/list `,
			`elicitation/create {"mode":"url","url":"https://a.test","_meta":{"drawbridge/server":"fake","drawbridge/origin":"https://a.test"},"elicitationId":"` + id + `"}`,
		}
		if diff := cmp.Diff(wantQuestions, questions); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASandboxedServerPutsNoFormsBeforePeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFake(), Options{}, func(row *config.Server) { row.Trust = "sandboxed" })
		r.asksBefore(elicits("7", `{}`), mcp.Message{ID: []byte("8"), Method: mcp.MethodRootsList})
		call := echo(asker())
		asked := r.call(call)
		if got := stateless(asked); strings.Contains(got, "elicitation") || !strings.Contains(got,
			`{"1":{"method":"roots/list"}}`) {
			t.Errorf("the caller is asked %s", got)
		}
		if got := string(r.call(retry(call, asked, `{"1":{"roots":[]}}`)).Raw); !strings.Contains(got,
			"did not declare elicitation") {
			t.Error(got)
		}
		hello := r.fake.params(mcp.MethodInitialize)
		if got := string(rawjson.Get(hello[1], "capabilities")); got != `{"roots":{},"sampling":{}}` {
			t.Errorf("the server was told of %s", got)
		}
		if notes := r.Status()[0].Notes; len(notes) != 1 || !strings.Contains(notes[0],
			`trust = "untrusted" would allow it`) {
			t.Errorf("the status says %q", notes)
		}
	})
}

func TestWhereCallersAreIsolatedAStatelessOneIsOneCall(t *testing.T) {
	for name, fake := range map[string]func() *fake{"legacy": newFake,
		"modern": func() *fake { return newModernFake(onlyModern) }} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fake(), Options{}, func(row *config.Server) { row.Isolate = "session" })
			for range 3 {
				r.call(echo(caller(drawbridge.Modern)))
			}
			synctest.Wait()
			if dialled, open := len(r.fake.dialled()), r.fake.open(); dialled != 1+3 || open != 1 {
				t.Errorf("%s: %d connections were made, %d are open", name, dialled, open)
			}
		})
	}
}

func TestHowRoundsEnd(t *testing.T) {
	const asks = `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}}}`
	refuses := func(string) (json.RawMessage, error) {
		return nil, &drawbridge.Fault{Code: drawbridge.PolicyBlocked, Step: "ask",
			Raw: json.RawMessage(`{"code":-1,"message":"no"}`)}
	}
	never := func(string) (json.RawMessage, error) {
		<-time.After(time.Hour)
		return json.RawMessage(`{}`), nil
	}
	for name, tt := range map[string]struct {
		result       string
		capabilities string
		answer       func(string) (json.RawMessage, error)
		want         string
		calls        int
	}{
		"the server never has enough": {asks, `{"elicitation":{}}`, nil,
			"the server asked for input 17 times and is not done", 17},
		"the server says come again for ever": {`{"resultType":"input_required"}`, `{}`, nil,
			"the server asked for input 17 times and is not done", 17},
		"the client refuses": {asks, `{"elicitation":{}}`, refuses, "", 1},
		"the client did not declare that": {asks, `{"sampling":{}}`, nil,
			`the server sent "elicitation/create", which the client did not declare`, 1},
		"the question is none": {`{"resultType":"input_required","inputRequests":{"a":7}}`,
			`{"elicitation":{}}`, nil, `the server sent ""`, 1},
		"nobody answers": {asks, `{"elicitation":{}}`, never, "not finished after 10m0s", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newModernFake(onlyModern), Options{})
				r.asksInTurn(tt.result)
				c := talker("s")
				c.Capabilities = json.RawMessage(tt.capabilities)
				call := echo(c)
				call.Peer = &peer{answer: tt.answer}
				f := r.fault(call)
				if !strings.Contains(f.Error(), tt.want) || tt.want == "" &&
					string(f.Raw) != `{"code":-1,"message":"no"}` {
					t.Errorf("got %v %s, want %q", f, f.Raw, tt.want)
				}
				if n := r.fake.count(mcp.MethodToolsCall); n != tt.calls {
					t.Errorf("the server was called %d times", n)
				}
			})
		})
	}
}

func TestARoundHasThirtyTwoQuestionsAtMost(t *testing.T) {
	round := func(n int) string {
		var questions []string
		for i := range n {
			questions = append(questions, fmt.Sprintf(`"q%d":{"method":"elicitation/create","params":{"message":"m"}}`,
				i))
		}
		return `{"resultType":"input_required","inputRequests":{` + strings.Join(questions, ",") + `}}`
	}
	for n, want := range map[int]string{32: "", 33: "the server asks 33 questions at once; at most 32 are passed on",
		200: "asks 200 questions"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newModernFake(onlyModern), Options{})
			r.asksInTurn(round(n), `{"resultType":"complete"}`)
			p := &peer{}
			call := echo(talker("s"))
			call.Peer = p
			if want == "" {
				r.call(call)
				answers := 0
				for range rawjson.Members(rawjson.Get(r.fake.params(mcp.MethodToolsCall)[1], "inputResponses")) {
					answers++
				}
				if answers != n || len(p.questions()) != n {
					t.Errorf("of %d questions %d were asked and %d answered", n, len(p.questions()), answers)
				}
				return
			}
			if f := r.fault(call); f.Code != drawbridge.ServerError || !strings.Contains(f.Error(), want) {
				t.Error(f)
			}
			if asked := len(p.questions()); asked > 0 {
				t.Errorf("of %d questions %d were asked", n, asked)
			}
		})
	}
}

func TestOfARoundAllIsDeclaredOrNothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{})
		r.asksInTurn(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}},"b":{"method":"roots/list"}}}`)
		p := &peer{}
		call := echo(talker("s"))
		call.Peer = p
		if f := r.fault(call); !strings.Contains(f.Error(), `"roots/list", which the client did not declare`) ||
			len(p.questions()) > 0 {
			t.Errorf("%v, after the questions %q", f, p.questions())
		}
	})
}

func TestWhoGoesAwayIsAskedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newModernFake(onlyModern), Options{})
		r.asksInTurn(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"elicitation/create"}}}`)
		ctx, leave := context.WithCancel(t.Context())
		p := &peer{answer: func(string) (json.RawMessage, error) { leave(); return json.RawMessage(`{}`), nil }}
		call := echo(talker("s"))
		call.Peer = p
		if _, err := r.Do(ctx, "fake", call); !errors.Is(err, context.Canceled) || len(p.questions()) != 1 {
			t.Errorf("%v, after the questions %q", err, p.questions())
		}
	})
}
