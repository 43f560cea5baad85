package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

const note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"

// A script answers each GET of a server with the next of its steps, and notes when each came and where it wanted to go
// on.
type script struct {
	mu    sync.Mutex
	begun time.Time
	steps []func(w http.ResponseWriter, r *http.Request)
	log   []string
}

func (s *script) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	line := time.Since(s.begun).Round(time.Millisecond).String()
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		line += " after " + last
	}
	s.log = append(s.log, line)
	var step func(http.ResponseWriter, *http.Request)
	if len(s.steps) > 0 {
		step, s.steps = s.steps[0], s.steps[1:]
	}
	s.mu.Unlock()
	if step == nil {
		say(w, 200, events, mcp.Message{}, ": still here\n\n")
		<-r.Context().Done()
		return
	}
	step(w, r)
}

// stream makes a step that writes events and ends; status one that refuses.
func stream(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { say(w, 200, events, mcp.Message{}, text) }
}

func status(code int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { say(w, code, "text/plain", mcp.Message{}, text) }
}

var listenCases = []struct {
	name  string
	steps []func(http.ResponseWriter, *http.Request)
	gets  []string
	notes int
	gaps  int64
	gone  bool
}{
	{name: "it stays open", gets: []string{"0s"}},
	{
		name: "it breaks off and goes on",
		steps: []func(http.ResponseWriter, *http.Request){stream("retry: 2000\n\nid: a1\n" + note),
			stream("id: a2\n" + note)},
		gets:  []string{"0s", "2s after a1", "4s after a2"},
		notes: 2,
	},
	{
		name:  "it cannot be resumed",
		steps: []func(http.ResponseWriter, *http.Request){stream("retry: 5000\n\n" + note), stream(note)},
		gets:  []string{"0s", "5s", "10s"},
		notes: 2,
		gaps:  2,
	},
	{name: "the server has none", steps: []func(http.ResponseWriter, *http.Request){status(405, "")},
		gets: []string{"0s"}},
	{name: "the server has none and says 404", steps: []func(http.ResponseWriter, *http.Request){status(404, "")},
		gets: []string{"0s"}},
	{name: "the server has none and says 400", steps: []func(http.ResponseWriter, *http.Request){status(400, "no")},
		gets: []string{"0s"}},
	{name: "the server has a page there", steps: []func(http.ResponseWriter, *http.Request){status(200, "<p>")},
		gets: []string{"0s"}},
	{
		name:  "the session ends",
		steps: []func(http.ResponseWriter, *http.Request){stream("retry: 1000\n\n" + note), status(404, "")},
		gets:  []string{"0s", "1s"},
		notes: 1,
		gone:  true,
	},
	{
		name: "the session ends at server-everything",
		steps: []func(http.ResponseWriter, *http.Request){stream("retry: 1000\n\n" + note),
			func(w http.ResponseWriter, _ *http.Request) {
				say(w, 400, plain, mcp.Message{},
					`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`)
			}},
		gets:  []string{"0s", "1s"},
		notes: 1,
		gone:  true,
	},
	{
		name:  "the server stops offering it",
		steps: []func(http.ResponseWriter, *http.Request){stream("retry: 1000\n\n" + note), status(405, "")},
		gets:  []string{"0s", "1s"},
		notes: 1,
	},
}

// TestListen has what happens to the stream of a legacy server, over an hour. Attempts come at the times that the
// server asked for, which makes them exact.
func TestListen(t *testing.T) { overBoth(t, testListen) }

func testListen(t *testing.T) {
	for _, tt := range listenCases {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{begun: time.Now(), steps: tt.steps}
				rest, gaps := &httpHeard{}, atomic.Int64{}
				h := dial(t, transport.HTTPOptions{Handler: rest, OnGap: func() { gaps.Add(1) },
					Client: serve(t, legacy(t, nil, s.get))})
				greet(t, h)
				select {
				case <-h.Done():
				case <-time.After(time.Hour):
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if diff := cmp.Diff(tt.gets, s.log); diff != "" {
					t.Error(diff)
				}
				if gone := h.Err() != nil; gone != tt.gone {
					t.Errorf("Err = %v", h.Err())
				}
				if notes, _ := rest.take(); len(notes) != tt.notes || gaps.Load() != tt.gaps {
					t.Errorf("%d notifications and %d gaps, want %d and %d", len(notes), gaps.Load(), tt.notes, tt.gaps)
				}
			})
		})
	}
}

// TestListenBacksOff has a server that is away for an hour: attempts become rare, and go on.
func TestListenBacksOff(t *testing.T) { overBoth(t, testListenBacksOff) }

func testListenBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, attempts, opened := time.Now(), 0, make(chan time.Duration, 1)
		h := dial(t, transport.HTTPOptions{Client: serve(t,
			legacy(t, nil, func(w http.ResponseWriter, r *http.Request) {
				attempts++ // one at a time
				if time.Since(begun) < time.Hour {
					drop(w)
					return
				}
				opened <- time.Since(begun)
				stream("")(w, r)
				<-r.Context().Done()
			}))})
		greet(t, h)
		if late := <-opened - time.Hour; late > time.Minute || attempts < 60 || attempts > 200 {
			t.Errorf("opened %v late, at attempt %d", late, attempts)
		}
	})
}

// TestListenAsk has a request of the server on its own stream: the Handler answers, in a POST.
func TestListenAsk(t *testing.T) { overBoth(t, testListenAsk) }

func testListenAsk(t *testing.T) {
	answered := make(chan mcp.Message, 1)
	get := func(w http.ResponseWriter, r *http.Request) {
		say(w, 200, events, mcp.Message{}, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n")
		<-r.Context().Done()
	}
	post := func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Mcp-Session-Id"); got != "s1" {
			t.Errorf("session %q", got)
		}
		answered <- read(t, r)
		w.WriteHeader(http.StatusAccepted)
	}
	h := dial(t, transport.HTTPOptions{Handler: &httpHeard{answer: `{"roots":[]}`},
		Client: serve(t, legacy(t, post, get))})
	greet(t, h)
	if m := <-answered; string(m.ID) != `"q"` || string(m.Result) != `{"roots":[]}` {
		t.Errorf("the server got %+v", m)
	}
}

// TestResume has a server that ends the stream of an answer in the middle, as one of 2025-11-25 may, and what a call
// makes of it.
func TestResume(t *testing.T) { overBoth(t, testResume) }

func testResume(t *testing.T) {
	prime := "id: p1\nretry: 700\n\n"
	later := "id: p2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true}}\n\n"
	busy := status(503, "")
	for _, tt := range []struct {
		name  string
		first string
		steps []func(http.ResponseWriter, *http.Request)
		gets  []string
		want  httpReply
	}{
		{
			name: "resumed", first: prime, steps: []func(http.ResponseWriter, *http.Request){stream(later)},
			gets: []string{"700ms after p1"}, want: httpReply{Answer: `{"ok":true}`},
		},
		{
			name: "polled", first: prime,
			steps: []func(http.ResponseWriter, *http.Request){stream(""),
				stream("id: p7\nretry: 100\n\n"), stream(later)},
			gets: []string{"700ms after p1", "1.4s after p1", "1.5s after p7"}, want: httpReply{Answer: `{"ok":true}`},
		},
		{
			name: "no id to go on from", first: "retry: 700\n\ndata: {\"method\":\"x\"}\n\n", want: lost,
		},
		{
			name: "not offered", first: prime, steps: []func(http.ResponseWriter, *http.Request){status(405, "")},
			gets: []string{"700ms after p1"}, want: httpReply{Is: []string{"lost", "status"}},
		},
		{
			name: "session gone", first: prime, steps: []func(http.ResponseWriter, *http.Request){status(404, "")},
			gets: []string{"700ms after p1"}, want: lost,
		},
		{
			name: "away for good", first: "id: p1\nretry: 60000\n\n", steps: []func(http.ResponseWriter,
				*http.Request){busy, busy, busy, busy, busy, busy},
			gets: []string{"1m0s after p1", "2m0s after p1", "3m0s after p1", "4m0s after p1", "5m0s after p1"},
			want: httpReply{Is: []string{"lost", "status"}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: append([]func(http.ResponseWriter, *http.Request){status(405, "")}, tt.steps...)}
				post := func(w http.ResponseWriter, r *http.Request) { say(w, 200, events, read(t, r), tt.first) }
				h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, s.get))})
				greet(t, h)
				synctest.Wait()
				s.mu.Lock()
				s.begun, s.log = time.Now(), nil
				s.mu.Unlock()
				got, err := do(t, h, mcp.MethodToolsCall, `{}`, nil)
				if diff := cmp.Diff(tt.want, got, sorted); diff != "" {
					t.Errorf("%v %s", err, diff)
				}
				if diff := cmp.Diff(tt.gets, s.log); diff != "" {
					t.Error(diff)
				}
				if gone := errors.Is(h.Err(), transport.ErrSessionExpired); gone != (tt.name == "session gone") {
					t.Errorf("Err = %v", h.Err())
				}
			})
		})
	}
}

// A patient hears what belongs to a call, and when it is to come back for the rest.
type patient struct {
	httpHeard
	polled []time.Duration
}

func (p *patient) OnReconnectRequest(after time.Duration) { p.polled = append(p.polled, after) }

// TestPolled: who makes a call hears that its server wants it to come back. One that only broke off says nothing of
// that.
func TestPolled(t *testing.T) { overBoth(t, testPolled) }

func testPolled(t *testing.T) {
	later := stream("id: p2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true}}\n\n")
	for first, want := range map[string][]time.Duration{
		"id: p1\nretry: 700\n\n": {700 * time.Millisecond},
		"id: p1\ndata:\n\n":      nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{begun: time.Now(), steps: []func(http.ResponseWriter, *http.Request){status(405, ""), later}}
			post := func(w http.ResponseWriter, r *http.Request) { say(w, 200, events, read(t, r), first) }
			h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, s.get))})
			greet(t, h)
			synctest.Wait()
			p := &patient{}
			if _, err := h.Call(t.Context(), mcp.MethodToolsCall, []byte(`{}`), p); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, p.polled); diff != "" {
				t.Errorf("%q: %s", first, diff)
			}
		})
	}
}

// TestAnswerOnTheOtherStream has a server that ends the stream of an answer and takes the stream outside requests,
// which opens only then, for the one that resumes. An answer to nothing that is waited for is dropped there.
func TestAnswerOnTheOtherStream(t *testing.T) { overBoth(t, testAnswerOnTheOtherStream) }

func testAnswerOnTheOtherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string)
		s := &script{begun: time.Now(), steps: []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter,
			r *http.Request) {
			id := <-asked
			say(w, 200, events, mcp.Message{}, `data: {"jsonrpc":"2.0","id":99,"result":{"ok":false}}

data: {"jsonrpc":"2.0","id":`+id+`,"result":{"ok":true}}

`)
			<-r.Context().Done()
		}}}
		post := func(w http.ResponseWriter, r *http.Request) {
			m := read(t, r)
			asked <- string(m.ID)
			say(w, 200, events, m, "id: p1\nretry: 700\n\n")
		}
		h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, s.get))})
		greet(t, h)
		got, err := do(t, h, mcp.MethodToolsCall, `{}`, nil)
		if diff := cmp.Diff(httpReply{Answer: `{"ok":true}`}, got, sorted); diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// TestACallWaitsForTheStream has a server that takes its time to open the stream outside requests: what it may ask
// there is asked in the course of a call. A list asks nothing, and a server that never answers delays the first call
// alone.
func TestACallWaitsForTheStream(t *testing.T) { overBoth(t, testACallWaitsForTheStream) }

func testACallWaitsForTheStream(t *testing.T) {
	for _, tt := range []struct {
		name           string
		opens          time.Duration
		listed, called time.Duration
	}{
		{"in a while", 300 * time.Millisecond, 0, 300 * time.Millisecond},
		{"not before it has something to say", time.Hour, 0, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				get := func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(tt.opens):
						say(w, 200, events, mcp.Message{}, ": open\n\n")
						<-r.Context().Done()
					case <-r.Context().Done():
					}
				}
				post := func(w http.ResponseWriter, r *http.Request) { say(w, 200, plain, read(t, r), answer) }
				h := dial(t, transport.HTTPOptions{Client: serve(t, legacy(t, post, get))})
				greet(t, h)
				for _, step := range []struct {
					method string
					took   time.Duration
				}{{mcp.MethodToolsList, tt.listed}, {mcp.MethodToolsCall, tt.called}, {mcp.MethodToolsCall, 0}} {
					began := time.Now()
					if _, err := do(t, h, step.method, `{}`, nil); err != nil || time.Since(began) != step.took {
						t.Errorf("%s took %v, want %v: %v", step.method, time.Since(began), step.took, err)
					}
				}
			})
		})
	}
}

// TestStreamOfACall shows that what comes on the stream of a call belongs to it, even where several calls wait.
func TestStreamOfACall(t *testing.T) { overBoth(t, testStreamOfACall) }

func testStreamOfACall(t *testing.T) {
	const calls = 5
	var together sync.WaitGroup
	together.Add(calls)
	answers := make(chan string, calls)
	post := func(w http.ResponseWriter, r *http.Request) {
		m := read(t, r)
		if m.IsResponse() {
			answers <- string(m.ID) + string(m.Result)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		together.Done()
		together.Wait()
		say(w, 200, events, m, strings.ReplaceAll(`data: {"method":"notifications/message"}

data: {"method":"notifications/progress","params":{"progressToken":$}}

data: {"id":"ask$","method":"elicitation/create"}

`+note+`data: {"id":$,"result":{}}

`, "$", string(m.ID)))
	}
	rest := &httpHeard{}
	h := dial(t, transport.HTTPOptions{Handler: rest, Client: serve(t, legacy(t, post, nil))})
	greet(t, h)
	var work sync.WaitGroup
	for i := range calls {
		work.Go(func() {
			in := &httpHeard{answer: fmt.Sprintf(`{"call":%d}`, i)}
			if got, err := do(t, h, mcp.MethodToolsCall, `{}`, in); err != nil {
				t.Errorf("%v %v", got, err)
			}
			notes, _ := in.take()
			if diff := cmp.Diff([]string{"notifications/message", "notifications/progress"}, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
	work.Wait()
	seen := map[string]bool{}
	for range calls {
		seen[<-answers] = true
	}
	if len(seen) != calls {
		t.Errorf("the server got %v", seen)
	}
	if notes, asks := rest.take(); len(notes) != calls || len(asks) != 0 {
		t.Errorf("outside the calls: %q and %q", notes, asks)
	}
}
