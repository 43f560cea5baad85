package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lineTo makes the line to a server that is a function. Anyone who ends the test waits for what runs on it.
func lineTo(t *testing.T, carry func(ctx context.Context, call drawbridge.Call) (string, error)) interop.CallEnv {
	t.Helper()
	life, end := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { end(); work.Wait() })
	return interop.CallEnv{
		Server: "up", Step: "call x on up", Limit: time.Hour, Lifetime: life, Logger: slog.New(slog.DiscardHandler),
		Start: func(f func()) error { work.Go(f); return nil },
		Call: func(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
			raw, err := carry(ctx, call)
			return drawbridge.Result{Raw: json.RawMessage(raw)}, err
		},
	}
}

func stateless(principal string) drawbridge.Call {
	return drawbridge.Call{
		Caller: drawbridge.Caller{
			Kind: drawbridge.External, Principal: principal, Era: drawbridge.Modern,
			Capabilities: json.RawMessage(`{"roots":{},"elicitation":{"url":{}}}`),
		},
		Method: mcp.MethodToolsCall, Params: json.RawMessage(`{"name":"x"}`),
	}
}

// again is the call as its caller makes it again.
func again(call drawbridge.Call, result drawbridge.Result, answers string) (drawbridge.Call, string) {
	call.Params = rawjson.Apply(call.Params,
		rawjson.Put(rawjson.Get(result.Raw, "requestState"), "requestState"), rawjson.Put(json.RawMessage(answers),
			"inputResponses"))
	handle, _ := interop.ParkedCallHandle(call.Params)
	return call, handle
}

// asksRoots is a server that asks for roots as often as told, and answers with what it heard.
func asksRoots(times int) func(context.Context, drawbridge.Call) (string, error) {
	return func(ctx context.Context, call drawbridge.Call) (string, error) {
		var heard []string
		for range times {
			answer, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
			if err != nil {
				return "", err
			}
			heard = append(heard, string(answer))
		}
		return fmt.Sprintf(`{"heard":[%s]}`, strings.Join(heard, ",")), nil
	}
}

func TestATalkGoesOnFromRequestToRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, line, call := interop.NewParkedCalls(time.Minute, 10), lineTo(t, asksRoots(3)), stateless("ada")
		result, err := p.BeginCall(t.Context(), line, call)
		handles := map[string]bool{}
		for n := range 3 {
			if err != nil || rawjson.GetString(result.Raw, "resultType") != "input_required" || p.Len() != 1 {
				t.Fatalf("round %d: %s, %v, %d parked", n, result.Raw, err, p.Len())
			}
			next, handle := again(call, result, fmt.Sprintf(`{"%d":{"n":%d}}`, n+1, n+1))
			handles[handle] = true
			result, err = p.ResumeCall(t.Context(), "up", "again", handle, next)
		}
		if string(result.Raw) != `{"heard":[{"n":1},{"n":2},{"n":3}]}` || err != nil || p.Len() != 0 ||
			len(handles) != 3 {
			t.Errorf("%s, %v, %d parked, %d handles", result.Raw, err, p.Len(), len(handles))
		}
	})
}

func TestWhoMayResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		result, err := p.BeginCall(t.Context(), lineTo(t, asksRoots(1)), call)
		if err != nil {
			t.Fatal(err)
		}
		mine, handle := again(call, result, `{"1":{}}`)
		theirs := mine
		theirs.Caller.Principal = "bob"
		for name, try := range map[string]func() error{
			"another principal": func() error {
				_, err := p.ResumeCall(t.Context(), "up", "s", handle,
					theirs)
				return err
			},
			"another server": func() error {
				_, err := p.ResumeCall(t.Context(), "down", "s", handle,
					mine)
				return err
			},
			"another handle": func() error {
				_, err := p.ResumeCall(t.Context(), "up", "s", handle+"A",
					mine)
				return err
			},
		} {
			var f *drawbridge.Fault
			if err := try(); !errors.As(err, &f) || f.Code != drawbridge.InvalidInput || !strings.Contains(f.Error(),
				"requestState: no call waits") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := p.ResumeCall(t.Context(), "up", "s", handle, mine); err != nil {
			t.Errorf("whose it is: %v", err)
		}
	})
}

func TestTheEndOfAParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
			_, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
			ended <- err
			return "", err
		})
		p := interop.NewParkedCalls(time.Minute, 1)
		if _, err := p.BeginCall(t.Context(), line, stateless("ada")); err != nil {
			t.Fatal(err)
		}
		if _, err := p.BeginCall(t.Context(), line, stateless("ada")); err == nil || !strings.Contains(err.Error(),
			"too many of its calls") {
			t.Errorf("one more than there may be: %v", err)
		}
		<-ended
		p.Close()
		if err := <-ended; err == nil || p.Len() != 0 {
			t.Errorf("%v, %d parked", err, p.Len())
		}
		if _, err := p.BeginCall(t.Context(), line, stateless("bob")); err == nil {
			t.Error("a call is parked after the end")
		}
	})
}

// asksAtOnce is a server that asks for all this at once, and answers with what it heard, in that order.
func asksAtOnce(methods ...string) func(context.Context, drawbridge.Call) (string, error) {
	return func(ctx context.Context, call drawbridge.Call) (string, error) {
		heard := make([]string, len(methods))
		var work sync.WaitGroup
		for i, method := range methods {
			work.Go(func() {
				answer, err := call.Peer.Request(ctx, method, nil)
				if f := drawbridge.AsFault(err); f != nil && f.Raw != nil {
					heard[i] = string(f.Raw)
				} else if f != nil {
					heard[i] = f.Error()
				} else {
					heard[i] = string(answer)
				}
			})
		}
		work.Wait()
		return strings.Join(heard, "\n"), nil
	}
}

func TestATalkHasThirtyTwoOpenQuestionsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		line := lineTo(t, asksAtOnce(strings.Split(strings.Repeat(mcp.MethodRootsList+" ", 33), " ")[:33]...))
		result, err := p.BeginCall(t.Context(), line, call)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // all have asked by now
		next, handle := again(call, result, `{}`)
		if result, err = p.ResumeCall(t.Context(), "up", "again", handle, next); err != nil {
			t.Fatal(err)
		}
		answers := json.RawMessage(`{}`)
		for i := range 40 {
			answers = rawjson.Apply(answers, rawjson.Put(json.RawMessage(`{}`), fmt.Sprint(i+1)))
		}
		next, handle = again(call, result, string(answers))
		result, err = p.ResumeCall(t.Context(), "up", "again", handle, next)
		refusal := "ask the caller: roots/list: the server asks 33 questions at once; at most 32 are passed on"
		if heard := string(result.Raw); err != nil || strings.Count(heard, "{}") != 32 ||
			strings.Count(heard, refusal) != 1 {
			t.Errorf("%v, the server heard\n%s", err, heard)
		}
	})
}

func TestCallersAreAskedOnlyForWhatTheyDeclared(t *testing.T) {
	const undeclared = `{"code":-32601,"message":"roots/list: the client did not declare roots"}`
	synctest.Test(t, func(t *testing.T) {
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		call.Caller.Capabilities = json.RawMessage(`{"sampling":{}}`)
		result, err := p.BeginCall(t.Context(), lineTo(t, asksAtOnce(mcp.MethodRootsList, "x/choose")), call)
		if want := undeclared + "\n" + `{"code":-32601,"message":"method not found"}`; err != nil ||
			string(result.Raw) != want {
			t.Errorf("the first request: %s, %v", result.Raw, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		result, err := p.BeginCall(t.Context(), lineTo(t, asksAtOnce(mcp.MethodRootsList)), call)
		if err != nil {
			t.Fatal(err)
		}
		next, handle := again(call, result, `{}`)
		next.Caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		if result, err = p.ResumeCall(t.Context(), "up", "again", handle, next); err != nil ||
			string(result.Raw) != undeclared {
			t.Errorf("what was open when a retry declared less: %s, %v", result.Raw, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		result, err := p.BeginCall(t.Context(), lineTo(t, asksRoots(2)), call)
		if err != nil {
			t.Fatal(err)
		}
		next, handle := again(call, result, `{"1":{}}`)
		next.Caller.Capabilities = json.RawMessage(`{}`)
		if _, err = p.ResumeCall(t.Context(), "up", "again", handle, next); err == nil ||
			string(drawbridge.AsFault(err).Raw) != undeclared {
			t.Errorf("what is asked after a retry declared less: %v", err)
		}
	})
}

// TestARetryThatDeclaresLessIsSentToNoPage has an error demand two pages, and the retry after the first not take the
// second.
func TestARetryThatDeclaresLessIsSentToNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = `{"mode":"url","url":"https://a.test","message":"go"}`
		line := lineTo(t, func(context.Context, drawbridge.Call) (string, error) {
			return "", &drawbridge.Fault{Raw: mcp.NewErrorObject(mcp.CodeURLElicitation, "sign in",
				json.RawMessage(`{"elicitations":[`+page+`,`+page+`]}`))}
		})
		p, call := interop.NewParkedCalls(time.Minute, 10), stateless("ada")
		result, err := p.BeginCall(t.Context(), line, call)
		if err != nil {
			t.Fatal(err)
		}
		next, handle := again(call, result, `{"1":{"action":"accept"}}`)
		next.Caller.Capabilities = json.RawMessage(`{}`)
		if _, err = p.ResumeCall(t.Context(), "up", "again", handle, next); err == nil ||
			mcp.ErrorCode(drawbridge.AsFault(err).Raw) != mcp.CodeMissingCapability {
			t.Error(err)
		}
	})
}

// FuzzHandle reads params: only a text that we issued is a handle, and it is read whole.
func FuzzHandle(f *testing.F) {
	f.Add(`{"requestState":"drawbridge/parked:A"}`)
	f.Add(`{"requestState":"drawbridge\/parked:\u0041"}`)
	f.Add(`{"requestState":{"x":"drawbridge/parked:A"}}`)
	f.Add(`{"requestState":null}`)
	f.Add(``)
	f.Fuzz(func(t *testing.T, params string) {
		handle, ok := interop.ParkedCallHandle(json.RawMessage(params))
		if !ok {
			return
		}
		var said struct{ RequestState string }
		if json.Unmarshal([]byte(params), &said) == nil && said.RequestState != handle &&
			!strings.Contains(strings.ToLower(params), `requeststate`) {
			t.Errorf("%s has the handle %q", params, handle)
		}
		if !strings.HasPrefix(handle, "drawbridge/parked:") {
			t.Errorf("%q is a handle", handle)
		}
	})
}
