package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An around is an interceptor that notes its calls in seen.
type around struct {
	name   string
	before func(c *InterceptedCall) (Interception, error)
	after  func(o CallOutcome) (json.RawMessage, error)
	seen   *[]string
}

func (a around) Name() string                      { return a.name }
func (a around) Intercepts(s drawbridge.Spec) bool { return s.Tool != "other" }

func (a around) Before(_ context.Context, c *InterceptedCall) (Interception, error) {
	*a.seen = append(*a.seen, fmt.Sprintf("%s< %s %s", a.name, c.Spec.Name, c.Arguments))
	if a.before == nil {
		return Interception{}, nil
	}
	return a.before(c)
}

func (a around) After(_ context.Context, _ *InterceptedCall, o CallOutcome) (json.RawMessage, error) {
	*a.seen = append(*a.seen, fmt.Sprintf("%s> %s %v", a.name, o.Result, o.Err != nil))
	if a.after == nil {
		return nil, nil
	}
	return a.after(o)
}

func arguments(text string) func(*InterceptedCall) (Interception, error) {
	return func(*InterceptedCall) (Interception, error) {
		return Interception{Arguments: json.RawMessage(text)}, nil
	}
}

func result(text string) func(CallOutcome) (json.RawMessage, error) {
	return func(CallOutcome) (json.RawMessage, error) { return json.RawMessage(text), nil }
}

// TestInterceptors walks the onion: each case has two interceptors, a and b, around a call with the arguments {"x":1}.
func TestInterceptors(t *testing.T) {
	onlySafe := guard(func(q Question) drawbridge.Verdict {
		if strings.Contains(string(q.Params), "evil") {
			return drawbridge.Verdict{Rule: "rule 1", Reason: "evil"}
		}
		return drawbridge.Verdict{Effect: drawbridge.Allow}
	})
	for _, tt := range []struct {
		name string
		a, b around
		// sent are the arguments that the server gets, and answer is the result that the caller gets. err is a part of the
		// error, and recorded a part of the audit. seen are the calls of the interceptors' methods.
		sent, answer, err, seen, recorded string
	}{
		{name: "nothing", sent: `{"x":1}`, answer: `{"ok":1}`,
			seen: `a< s__do {"x":1}; b< s__do {"x":1}; b> {"ok":1} false; a> {"ok":1} false`},
		{name: "rewritten", a: around{before: arguments(`{"x":2}`), after: result(`{"ok":3}`)},
			b: around{before: arguments(`{"x":3}`), after: result(`{"ok":2}`)}, sent: `{"x":3}`, answer: `{"ok":3}`,
			seen:     `a< s__do {"x":1}; b< s__do {"x":2}; b> {"ok":1} false; a> {"ok":2} false`,
			recorded: "a: arguments sha256:5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22; b: arguments"},
		{name: "blocked", b: around{before: func(*InterceptedCall) (Interception, error) {
			return Interception{Blocked: "no"}, nil
		}}, err: "blocked by b: no", seen: `a< s__do {"x":1}; b< s__do {"x":1}; a>  true`, recorded: "interceptor b"},
		{name: "failed", b: around{before: func(*InterceptedCall) (Interception, error) {
			return Interception{}, errors.New("oops")
		}}, err: "blocked by b: oops", seen: `a< s__do {"x":1}; b< s__do {"x":1}; a>  true`},
		{name: "panicked", a: around{before: func(*InterceptedCall) (Interception, error) { panic("secret") }},
			err: "blocked by a: it panicked", seen: `a< s__do {"x":1}`},
		{name: "no object", a: around{before: arguments(`[1]`)}, err: "its arguments are not usable: not a JSON object",
			seen: `a< s__do {"x":1}`},
		{name: "no JSON", a: around{before: arguments(`{"x":}`)}, err: "its arguments are not usable: ", seen: `a< s__do {"x":1}`},
		{name: "the guards decide on rewritten arguments", a: around{before: arguments(`{"x":"evil"}`)}, err: "evil",
			seen: `a< s__do {"x":1}; b< s__do {"x":"evil"}; b>  true; a>  true`, recorded: "rule 1"},
		{name: "a result that is withheld", b: around{after: func(CallOutcome) (json.RawMessage, error) {
			return nil, errors.New("cannot redact")
		}}, sent: `{"x":1}`, err: "the call was made, and interceptor b withholds its result: cannot redact",
			seen: `a< s__do {"x":1}; b< s__do {"x":1}; b> {"ok":1} false; a>  true`},
		{name: "a result that is none", a: around{after: result(`7`)}, sent: `{"x":1}`, err: "not a JSON object",
			seen: `a< s__do {"x":1}; b< s__do {"x":1}; b> {"ok":1} false; a> {"ok":1} false`},
		{name: "a panic after the call", a: around{after: func(CallOutcome) (json.RawMessage, error) { panic("x") }},
			sent: `{"x":1}`, err: "it panicked", seen: `a< s__do {"x":1}; b< s__do {"x":1}; b> {"ok":1} false; a> {"ok":1} false`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen []string
			records := &pages{broken: -1}
			tt.a.name, tt.b.name, tt.a.seen, tt.b.seen = "a", "b", &seen, &seen
			f := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
				return drawbridge.Result{Raw: json.RawMessage(`{"ok":1}`)}, nil
			}}
			d := open(t, f, Options{Interceptors: []Interceptor{tt.a, tt.b}, Audit: records, Guards: []Guard{onlySafe}},
				listing("s", "do", "other"))
			f.told()
			got, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
				Params: json.RawMessage(`{"name":"s__do","arguments":{"x":1}}`)})
			if string(got.Raw) != tt.answer || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s, %v; want %s, %s", got.Raw, err, tt.answer, tt.err)
			}
			sent := ""
			for _, heard := range f.told() {
				_, params, _ := strings.Cut(heard, "tools/call ")
				sent += string(rawjson.Get([]byte(params), "arguments"))
			}
			if all := strings.Join(seen, "; "); all != tt.seen || sent != tt.sent {
				t.Errorf("seen %s\nsent %s\nwant %s\nsent %s", all, sent, tt.seen, tt.sent)
			}
			recorded, err := json.Marshal(records.taken())
			if err != nil || !strings.Contains(string(recorded), tt.recorded) {
				t.Errorf("%s has no %q", recorded, tt.recorded)
			}
		})
	}
}

// TestInterceptorsSeeToolsOnly calls a tool that the interceptor does not want, and a tool that does not exist.
func TestInterceptorsSeeToolsOnly(t *testing.T) {
	var seen []string
	d := open(t, &fake{}, Options{Interceptors: []Interceptor{around{name: "a", seen: &seen}}}, listing("s", "other"))
	_, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: json.RawMessage(`{"name":"s__other"}`)})
	if err != nil || len(seen) != 0 {
		t.Errorf("%v, %q", err, seen)
	}
	_, err = d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: json.RawMessage(`{"name":"s__none"}`)})
	if err == nil || len(seen) != 0 {
		t.Errorf("%v, %q", err, seen)
	}
}

// idle is an interceptor that changes nothing.
type idle struct{}

func (idle) Name() string                    { return "idle" }
func (idle) Intercepts(drawbridge.Spec) bool { return true }
func (idle) Before(context.Context, *InterceptedCall) (Interception, error) {
	return Interception{}, nil
}
func (idle) After(context.Context, *InterceptedCall, CallOutcome) (json.RawMessage, error) {
	return nil, nil
}

// BenchmarkInterceptors is what a chain of five that change nothing adds to a call: compare 5 with 0.
func BenchmarkInterceptors(b *testing.B) {
	for _, n := range []int{0, 5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := Options{}
			for range n {
				o.Interceptors = append(o.Interceptors, idle{})
			}
			d := open(b, &fake{}, o, crowd(1, 10)...)
			d.upstream, d.maker.upstream = quiet{}, quiet{}
			call := drawbridge.Call{Caller: ada, Params: json.RawMessage(`{"name":"server0__tool_4","arguments":{"path":"a"}}`)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Call(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
