package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/llm"
	"github.com/google/go-cmp/cmp"
)

// A behaviour is a behaviour that all kinds of providers share.
type behaviour struct {
	name  string
	todo  func(files map[string]string, kind string) []reply
	code  drawbridge.ModelErrorCode // of the error; empty for success
	says  string                    // a part of the error
	sent  int                       // requests
	waits []time.Duration           // pauses before repeated requests; nil for kinds that differ
	stop  drawbridge.StopReason
}

// recorded returns a reply with a recorded stream.
func recorded(name string) func(map[string]string, string) []reply {
	return func(f map[string]string, _ string) []reply { return []reply{streams(f[name])} }
}

// behaviours are the shared behaviours. Each has its own clock.
func behaviours() []behaviour {
	text := func(f map[string]string) reply { return streams(f["text"]) }
	return []behaviour{
		{name: "a text", todo: recorded("text"), sent: 1, stop: drawbridge.StopEnd},
		{name: "calls", todo: recorded("calls"), sent: 1, stop: drawbridge.StopToolCalls},
		{name: "the limit of the answer", todo: recorded("length"), sent: 1, stop: drawbridge.StopMaxOutput},
		{name: "a refusal", todo: recorded("refusal"), sent: 1, stop: drawbridge.StopRefusal},
		{name: "an error inside the stream", todo: func(f map[string]string, _ string) []reply {
			return []reply{streams(f["error"]), text(f)}
		}, sent: 2, waits: seconds(0.5), stop: drawbridge.StopEnd},
		{name: "a broken connection", todo: func(f map[string]string, _ string) []reply {
			return []reply{breaks(f["text"][:len(f["text"])/3]), text(f)}
		}, sent: 2, waits: seconds(0.5), stop: drawbridge.StopEnd},
		{name: "a stream without its end", todo: func(f map[string]string, _ string) []reply {
			return []reply{streams(f["text"][:len(f["text"])/3])}
		}, code: drawbridge.ModelBroken, sent: 4, waits: seconds(0.5, 1, 2), says: "broken answer: "},
		{name: "an empty answer", todo: func(map[string]string, string) []reply { return []reply{streams("")} },
			code: drawbridge.ModelBroken, sent: 4, waits: seconds(0.5, 1, 2)},
		{name: "a rate limit", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(429, f["limited.json"], "Retry-After", "7"), text(f)}
		}, sent: 2, waits: seconds(7), stop: drawbridge.StopEnd},
		{name: "a rate limit in milliseconds", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(429, f["limited.json"], "Retry-After-Ms", "1500", "Retry-After", "2"), text(f)}
		}, sent: 2, waits: seconds(1.5), stop: drawbridge.StopEnd},
		{name: "a rate limit for an hour", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(429, f["limited.json"], "Retry-After", "3600"), text(f)}
		}, sent: 1, code: drawbridge.ModelRateLimited},
		{name: "busy", todo: func(f map[string]string, kind string) []reply {
			return []reply{refuses(busyStatus(kind), f["busy.json"])}
		}, sent: 4, code: drawbridge.ModelOverloaded, waits: seconds(0.5, 1, 2)},
		{name: "busy, and a retry is not wanted", todo: func(f map[string]string, kind string) []reply {
			return []reply{refuses(busyStatus(kind), f["busy.json"], "X-Should-Retry", "false")}
		}, sent: 1, code: drawbridge.ModelOverloaded},
		{name: "a rejection, and a retry is wanted", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(400, f["rejected.json"], "X-Should-Retry", "true"), text(f)}
		}, sent: 2, waits: seconds(0.5), stop: drawbridge.StopEnd},
		{name: "no money", todo: func(f map[string]string, kind string) []reply {
			status := map[string]int{llm.KindAnthropic: 400, llm.KindOpenAI: 429, llm.KindOpenAIChat: 402, llm.KindGemini: 429}
			return []reply{refuses(status[kind], f["quota.json"])}
		}, sent: 1, code: drawbridge.ModelQuota},
		{name: "too long", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(400, f["too_long.json"])}
		}, sent: 1, code: drawbridge.ModelContextTooLong},
		{name: "a rejection", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(400, f["rejected.json"])}
		}, sent: 1, code: drawbridge.ModelRejected, says: "the request is refused (400"},
		{name: "an unknown model", todo: func(f map[string]string, _ string) []reply {
			return []reply{refuses(404, f["unknown.json"])}
		}, sent: 1, code: drawbridge.ModelUnknown, says: "drawbridge models p"},
		{name: "a refused key", todo: func(map[string]string, string) []reply {
			return []reply{refuses(401, `{"error":{"message":"Incorrect API key provided: `+chatKey+`"}}`)}
		}, sent: 1, code: drawbridge.ModelKeyRejected, says: "the key is refused (401)"},
		{name: "an error page", todo: func(map[string]string, string) []reply {
			return []reply{refuses(502, "<html>"+chatKey+"</html>", "Content-Type", "text/html")}
		}, sent: 4, code: drawbridge.ModelUnreachable, waits: seconds(0.5, 1, 2)},
		{name: "a page instead of an answer", todo: func(map[string]string, string) []reply {
			return []reply{refuses(200, "<html>Sign in</html>", "Content-Type", "text/html; charset=utf-8")}
		}, sent: 1, code: drawbridge.ModelBroken, says: "not a stream of events"},
		{name: "an error with status 200", todo: func(map[string]string, string) []reply {
			return []reply{refuses(200, `{"error":{"code":429,"message":"slow down"}}`)}
		}, sent: 4, code: drawbridge.ModelRateLimited, waits: seconds(0.5, 1, 2)},
		{name: "another address", todo: func(map[string]string, string) []reply {
			return []reply{refuses(307, "", "Location", "http://evil.example/")}
		}, sent: 1, code: drawbridge.ModelUnreachable, says: "leads elsewhere"},
		{name: "no JSON", todo: func(map[string]string, string) []reply {
			return []reply{streams("data: {\"half\n\n")}
		}, sent: 4, code: drawbridge.ModelBroken, waits: seconds(0.5, 1, 2)},
		{name: "a stalled stream", todo: func(f map[string]string, _ string) []reply {
			return []reply{stalls(f["text"][:len(f["text"])/3]), text(f)}
		}, sent: 2, waits: seconds(0.5), stop: drawbridge.StopEnd},
	}
}

// TestChatBehaviour runs every shared behaviour with every kind of provider.
func TestChatBehaviour(t *testing.T) {
	for _, kind := range chatKinds {
		for _, b := range behaviours() {
			t.Run(kind+"/"+b.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkBehaviour(t, kind, b) })
			})
		}
	}
}

func checkBehaviour(t *testing.T, kind string, b behaviour) {
	s := serveChat(t, kind, b.todo(chatFiles(t, kind), kind)...)
	var d told
	response, err := s.model().Generate(t.Context(), ask(), d.add)
	if got := codeOf(t, err); got != b.code {
		t.Fatalf("the code is %q (%v), want %q", got, err, b.code)
	}
	if n := len(s.requests()); n != b.sent {
		t.Errorf("%d requests, want %d", n, b.sent)
	}
	if diff := cmp.Diff(b.waits, d.retries); diff != "" {
		t.Error("pauses:", diff)
	}
	if err != nil {
		if text := err.Error(); strings.Contains(text, "very-secret") || !strings.Contains(text, b.says) ||
			strings.ContainsAny(text, "\n\x1b") || len(text) > 600 {
			t.Errorf("the error is %q", text)
		}
		return
	}
	if response.Stop != b.stop || response.Model != "p/"+modelNames[kind] || response.Message.Text() != d.text {
		t.Errorf("%+v, told %+v", response, d)
	}
	for i, r := range s.requests() {
		if auth := r.header.Get("Authorization") + r.header.Get("X-Api-Key") + r.header.Get("X-Goog-Api-Key"); !strings.HasSuffix(auth, chatKey) ||
			r.header.Get("X-Team") != "blue" || strings.Contains(r.path, "secret") {
			t.Errorf("request %d: %s with the headers %v", i, r.path, r.header)
		}
	}
}

// TestChatAnswer compares whole answers of all kinds: a text, and thinking with two calls.
func TestChatAnswer(t *testing.T) {
	for _, kind := range chatKinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := chatFiles(t, kind)
				s := serveChat(t, kind, streams(files["text"]), streams(files["calls"]))
				m := s.model()
				text, err := m.Generate(t.Context(), ask(), nil)
				if err != nil {
					t.Fatal(err)
				}
				usage := drawbridge.ModelUsage{Input: 142, Output: 7, CacheRead: 100}
				if kind == llm.KindAnthropic {
					usage.CacheWrite = 30
				}
				want := drawbridge.ModelResponse{Stop: drawbridge.StopEnd, Usage: usage, Model: m.Info().String(),
					Message: drawbridge.Message{Role: drawbridge.AssistantRole,
						Parts: []drawbridge.MessagePart{{Text: "Hello, wörld."}}}}
				if diff := cmp.Diff(want, text); diff != "" {
					t.Error(diff)
				}
				var d told
				calls, err := m.Generate(t.Context(), ask(), d.add)
				if err != nil {
					t.Fatal(err)
				}
				checkCalls(t, m, calls)
				if diff := cmp.Diff([]drawbridge.CardName{"fs__read", "fs__read"}, d.calls); diff != "" ||
					d.thinking != "I read both files." {
					t.Error(diff, d.thinking)
				}
			})
		})
	}
}

// checkCalls compares an answer with thinking, a text and two calls. IDs and the provider's own objects differ by kind.
func checkCalls(t *testing.T, m *llm.ChatModel, r drawbridge.ModelResponse) {
	t.Helper()
	var got []drawbridge.MessagePart
	ids := map[string]bool{}
	for _, p := range r.Message.Parts {
		if p.ToolCall != nil {
			call := *p.ToolCall
			ids[call.ID] = true
			var arguments map[string]any
			if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
				t.Errorf("%s: %v", call.Arguments, err)
			}
			call.Arguments, _ = json.Marshal(arguments)
			call.ID, call.Provider, call.Model = "", nil, ""
			p.ToolCall = &call
		}
		if p.Thinking != nil {
			p.Thinking = &drawbridge.Thinking{Text: p.Thinking.Text, Model: p.Thinking.Model}
		}
		got = append(got, p)
	}
	want := []drawbridge.MessagePart{
		{Thinking: &drawbridge.Thinking{Text: "I read both files.", Model: m.Info().String()}},
		{Text: "I look."},
		{ToolCall: &drawbridge.ToolCall{Name: "fs__read", Arguments: json.RawMessage(`{"path":"a.txt"}`)}},
		{ToolCall: &drawbridge.ToolCall{Name: "fs__read", Arguments: json.RawMessage(`{"path":"b.txt"}`)}},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != 2 || ids[""] {
		t.Error(diff, ids)
	}
	if usage := (drawbridge.ModelUsage{Input: 142, Output: 60}); r.Usage != usage || r.Stop != drawbridge.StopToolCalls {
		t.Error(r.Usage, r.Stop)
	}
}

// TestChatCancelled ends a call in the middle of its stream and during a pause: the error is the cause.
func TestChatCancelled(t *testing.T) {
	stopped := errors.New("the person pressed Escape")
	for _, kind := range chatKinds {
		for _, during := range []string{"stream", "pause"} {
			t.Run(kind+"/"+during, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					files := chatFiles(t, kind)
					reply := stalls(files["text"][:strings.Index(files["text"], "wörld")-200])
					if during == "pause" {
						reply = refuses(429, files["limited.json"], "Retry-After", "30")
					}
					s := serveChat(t, kind, reply)
					m := s.model()
					ctx, cancel := context.WithCancelCause(t.Context())
					began := time.Now()
					time.AfterFunc(3*time.Second, func() { cancel(stopped) })
					_, err := m.Generate(ctx, ask(), nil)
					if err != stopped || time.Since(began) != 3*time.Second {
						t.Errorf("%v after %v", err, time.Since(began))
					}
				})
			})
		}
	}
}

// TestChatTimeouts shows how long an answer may be silent: before its first part, and between two parts.
func TestChatTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		s := serveChat(t, llm.KindAnthropic, silent)
		m, began := s.model(), time.Now()
		_, err := m.Generate(t.Context(), ask(), nil)
		if codeOf(t, err) != drawbridge.ModelUnreachable || time.Since(began) != 5*time.Minute || len(s.requests()) != 1 {
			t.Error(err, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		drips := func(w http.ResponseWriter, r *http.Request) { // slow, but alive
			streams("")(w, r)
			c := http.NewResponseController(w)
			for range 5 {
				_, _ = w.Write([]byte(": alive\n\n"))
				_ = c.Flush()
				select {
				case <-time.After(110 * time.Second):
				case <-r.Context().Done():
					return
				}
			}
			streams(chatFiles(t, llm.KindAnthropic)["text"])(w, r)
		}
		s := serveChat(t, llm.KindAnthropic, drips)
		if r, err := s.model().Generate(t.Context(), ask(), nil); err != nil || r.Message.Text() != "Hello, wörld." {
			t.Error(r, err)
		}
	})
}
