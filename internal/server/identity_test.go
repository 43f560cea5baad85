package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// What is private carries a mark: of the session that it is for, or of the principal.
func markOf(name string) string { return "<mark " + name + ">" }

var marks = regexp.MustCompile(`<mark ([a-z0-9 ]+)>`)

// A town is a deck on which several principals have sessions. Whatever a call says to its caller has the mark of the
// session that the deck was told, and what is said outside calls that of whom it is for.
type town struct {
	*fakeDeck
	t  *testing.T
	mu sync.Mutex
	// people has who lives where: by the id of their session.
	people map[string]*person
}

// A person is the client of one session, who keeps every byte that it gets.
type person struct {
	name, principal string
	url, session    string
	town            *town
	rand            *rand.Rand
	web             *http.Client
	calls, resumed  atomic.Int64

	mu sync.Mutex
	// heard has what came, by response; seen the event ids. cancelled are the calls that were given up.
	heard     []*bytes.Buffer
	seen      []string
	cancelled map[string]bool
}

func (p *person) mark() string { return markOf(p.name) }

// Do carries out the steps that a call's arguments name, and checks that nobody else takes part.
func (d *town) Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	d.mu.Lock()
	p := d.people[call.Caller.Session]
	d.mu.Unlock()
	if p == nil || p.principal != call.Caller.Principal {
		d.t.Errorf("somebody calls as %q in the session %q", call.Caller.Principal, call.Caller.Session)
		return drawbridge.Result{}, errors.New("no such person")
	}
	arguments := rawjson.Get(call.Params, "arguments")
	if got := rawjson.GetString(arguments, "mark"); got != p.mark() {
		d.t.Errorf("%s calls with the arguments of %s", p.name, got)
	}
	said := json.RawMessage(`{"level":"info","data":` + string(rawjson.Quote(p.mark())) + `}`)
	for _, step := range strings.Fields(rawjson.GetString(arguments, "steps")) {
		switch step {
		case "log":
			_ = call.Peer.Notify(ctx, mcp.NoteMessage, said)
		case "progress":
			_ = call.Peer.Notify(ctx, mcp.NoteProgress, json.RawMessage(`{"progressToken":1,"message":`+
				string(rawjson.Quote(p.mark()))+`}`))
		case "poll":
			call.Peer.(drawbridge.ReconnectRequester).RequestReconnect(0)
		case "ask":
			answer, err := call.Peer.Request(ctx, mcp.MethodElicitation, json.RawMessage(`{"message":`+
				string(rawjson.Quote(p.mark()))+`}`))
			if err == nil && rawjson.GetString(answer, "content") != p.mark() {
				d.t.Errorf("%s was asked, and somebody else answers: %s", p.name, answer)
			}
		case "wait":
			<-ctx.Done()
		}
	}
	if n := rawjson.GetString(arguments, "call"); ctx.Err() != nil && !p.gaveUp(n) {
		d.t.Errorf("call %s of %s was cancelled by somebody else: %v", n, p.name, context.Cause(ctx))
	}
	if ctx.Err() != nil {
		return drawbridge.Result{}, ctx.Err()
	}
	return drawbridge.Result{Raw: json.RawMessage(`{"content":[],"_meta":{"for":` +
		string(rawjson.Quote(p.mark())) + `}}`)}, nil
}

// List gives each principal a list of its own.
func (d *town) ListDirect(_ context.Context, caller drawbridge.Caller) deck.List {
	list, _ := d.List(context.Background(), caller, "")
	return list
}

func (d *town) List(_ context.Context, caller drawbridge.Caller, _ string) (deck.List, error) {
	item := `{"name":"x","inputSchema":{},"description":` + string(rawjson.Quote(markOf(caller.Principal))) + `}`
	return deck.List{Items: []json.RawMessage{json.RawMessage(item)}, Version: 1}, nil
}

// cry has the deck say something outside calls, to one person or to all of a principal.
func (d *town) cry(p *person, what int) {
	to, notice := p.principal, drawbridge.ServerNotification{Principal: p.principal}
	if what%2 == 0 {
		to, notice.Session = p.name, p.session
	}
	e := deck.Event{Kind: deck.ServerNotified, Notification: notice}
	switch what / 2 % 3 {
	case 0:
		e.Notification.Method, e.Notification.Params = mcp.NoteMessage, json.RawMessage(`{"level":"info","data":`+
			string(rawjson.Quote(markOf(to)))+`}`)
	case 1:
		e.Kind, e.URI = deck.ResourceUpdated, watchedURI
		e.Notification.Params = json.RawMessage(`{"uri":"test://watched","for":` +
			string(rawjson.Quote(markOf(to))) + `}`)
	case 2:
		e.Kind, e.Principal = deck.ToolsChanged, p.principal
	}
	d.tell(e)
}

// RoundTrip keeps what comes back.
func (p *person) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	kept := &bytes.Buffer{}
	_ = resp.Header.Write(kept)
	p.mu.Lock()
	p.heard = append(p.heard, kept)
	p.mu.Unlock()
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, kept), resp.Body}
	return resp, nil
}

// send sends a request in a session. The caller closes the body; nil where ctx has ended.
func (p *person) send(ctx context.Context, method, session, last, body string) *http.Response {
	r, err := http.NewRequestWithContext(ctx, method, p.url, strings.NewReader(body))
	if err != nil {
		p.town.t.Error(err)
		return nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", jsonBoth)
	for name, value := range map[string]string{mcp.HeaderSession: session, mcp.HeaderLastEvent: last} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := p.web.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			p.town.t.Errorf("%s: %v", p.name, err)
		}
		return nil
	}
	return resp
}

// status sends a request and reads all of its answer.
func (p *person) status(ctx context.Context, method, session, last, body string) int {
	resp := p.send(ctx, method, session, last, body)
	if resp == nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (p *person) post(ctx context.Context, body string) int {
	return p.status(ctx, http.MethodPost, p.session, "", body)
}

// gaveUp says whether a call was given up by the person.
func (p *person) gaveUp(call string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cancelled[call]
}

func (p *person) giveUp(ctx context.Context, call string) {
	p.mu.Lock()
	p.cancelled[call] = true
	p.mu.Unlock()
	p.post(ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+call+`}}`)
}

// call calls a tool that takes random steps, and reads what comes, breaking connections off and coming back, up to the
// answer.
func (p *person) call(ctx context.Context) {
	steps := []string{"log", "progress", "poll", "ask"}
	var do []string
	for range p.rand.IntN(6) {
		do = append(do, steps[p.rand.IntN(len(steps))])
	}
	n := strconv.FormatInt(p.calls.Add(1), 10)
	giveUp := p.rand.IntN(8) == 0
	if giveUp {
		do = append(do, "log", "wait")
	}
	resp := p.send(ctx, http.MethodPost, p.session, "", fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"call":%q,"mark":%q,"steps":%q}}}`,
		n, n, p.mark(), strings.Join(do, " ")))
	for resp != nil {
		if media := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || media != "text/event-stream" {
			if resp.StatusCode != 200 {
				p.town.t.Errorf("%s: call %s ends with status %d", p.name, n, resp.StatusCode)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return
		}
		if giveUp {
			p.giveUp(ctx, n)
		}
		last, done := p.listen(ctx, resp, n, 1+p.rand.IntN(4))
		resp.Body.Close()
		if done || last == "" {
			return // a connection is not broken off before there is an id to come back with
		}
		if resp = p.send(ctx, http.MethodGet, p.session, last, ""); resp != nil {
			p.resumed.Add(1)
		}
	}
}

// listen reads so many events of a stream, and answers its questions. It gives the last id, and whether the answer to
// the call was among them.
func (p *person) listen(ctx context.Context, resp *http.Response, call string, most int) (last string, done bool) {
	events := mcp.NewSSEReader(resp.Body, 0)
	for range most {
		e, err := events.Next()
		if err != nil {
			return last, false
		}
		if e.ID != "" {
			last = e.ID
			p.mu.Lock()
			p.seen = append(p.seen, e.ID)
			p.mu.Unlock()
		}
		m, err := mcp.ParseMessage(e.Data)
		switch {
		case err != nil:
		case m.IsResponse():
			return last, string(m.ID) == call
		case m.IsRequest():
			p.post(ctx, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":`+
				string(rawjson.Quote(p.mark()))+`}}`)
		}
	}
	return last, false
}

// watch listens to the session's own stream, and comes back to it again and again.
func (p *person) watch(ctx context.Context, random *rand.Rand) {
	last := ""
	for ctx.Err() == nil {
		if random.IntN(4) == 0 {
			last = ""
		}
		resp := p.send(ctx, http.MethodGet, p.session, last, "")
		if resp == nil {
			return
		}
		if resp.StatusCode != 200 {
			p.town.t.Errorf("%s: the own stream behind %q: status %d", p.name, last, resp.StatusCode)
		}
		if id, _ := p.listen(ctx, resp, "", 1+random.IntN(3)); id != "" {
			last = id
		}
		resp.Body.Close()
	}
}

// intrude tries what is somebody else's.
func (p *person) intrude(ctx context.Context, other *person) {
	other.mu.Lock()
	last := ""
	if n := len(other.seen); n > 0 {
		last = other.seen[p.rand.IntN(n)]
	}
	other.mu.Unlock()
	if last != "" && other != p {
		if status := p.status(ctx, http.MethodGet, p.session, last, ""); status != 400 && ctx.Err() == nil {
			p.town.t.Errorf("%s resumes with an event of %s: status %d", p.name, other.name, status)
		}
	}
	guess := []byte(p.session)
	guess[p.rand.IntN(len(guess))] = 'a' // ids have no lower case
	sessions := []string{string(guess)}
	if other.principal != p.principal {
		sessions = append(sessions, other.session)
	}
	for _, session := range sessions {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			if status := p.status(ctx, method, session, last,
				`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != 404 && ctx.Err() == nil {
				p.town.t.Errorf("%s in the session of %s: %s has status %d", p.name, other.name, method, status)
			}
		}
	}
	// Ids of questions and of requests are easy to guess, and mean the own session's only.
	id := strconv.Itoa(1 + p.rand.IntN(5))
	p.post(ctx, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":`+string(rawjson.Quote(p.mark()))+`}}`)
	p.post(ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+
		strconv.FormatInt(other.calls.Load()+1000, 10)+`}}`)
}

// act does something.
func (p *person) act(ctx context.Context, others []*person) {
	other := others[p.rand.IntN(len(others))]
	switch p.rand.IntN(8) {
	case 0:
		p.post(ctx, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	case 1:
		p.intrude(ctx, other)
	case 2, 3:
		p.town.cry(other, p.rand.IntN(6))
	default:
		p.call(ctx)
	}
}

// settle opens a session.
func (d *town) settle(url, principal, name string, random *rand.Rand) *person {
	p := &person{name: name, principal: principal, url: url, town: d, rand: random, cancelled: map[string]bool{}}
	p.web = &http.Client{Transport: p}
	resp := p.send(d.t.Context(), http.MethodPost, "", "",
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	if resp == nil {
		d.t.Fatal("there is no session")
	}
	resp.Body.Close()
	p.session = resp.Header.Get(mcp.HeaderSession)
	d.mu.Lock()
	d.people[p.session] = p
	d.mu.Unlock()
	p.post(d.t.Context(), `{"jsonrpc":"2.0","id":"s","method":"resources/subscribe","params":{"uri":"test://watched"}}`)
	return p
}

// strangers gives what the person heard that is for somebody else, and how much was for them.
func (p *person) strangers() (foreign []string, own int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.heard {
		for _, m := range marks.FindAllStringSubmatch(b.String(), -1) {
			if m[1] == p.name || m[1] == p.principal {
				own++
			} else {
				foreign = append(foreign, b.String())
			}
		}
	}
	return foreign, own
}

// TestIdentity has several sessions of two principals do random things on one deck, each with a door of its own, break
// off connections and come back, and try what is another's. Nobody gets a byte that is marked for somebody else.
func TestIdentity(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := func(actor int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(actor))) }
	d := &town{fakeDeck: newFakeDeck(), t: t, people: map[string]*person{}}
	var all []*person
	for _, principal := range []string{"ada", "bob"} {
		caller := owner
		caller.Principal = principal
		url := serveHTTP(t, d, Options{Caller: caller})
		for n := range 3 {
			all = append(all, d.settle(url, principal, fmt.Sprintf("%s %d", principal, n), source(len(all))))
		}
	}
	watching, stop := context.WithCancel(t.Context())
	var acting, watchers sync.WaitGroup
	for i, p := range all {
		watchers.Go(func() { p.watch(watching, source(100+i)) })
		acting.Go(func() {
			for range 30 {
				p.act(t.Context(), all)
			}
		})
	}
	acting.Wait()
	stop()
	watchers.Wait()
	for _, p := range all {
		foreign, own := p.strangers()
		if own == 0 || p.resumed.Load() == 0 {
			t.Errorf("%s heard %d marks, and came back %d times: nothing is shown", p.name, own, p.resumed.Load())
		}
		for _, text := range foreign {
			t.Errorf("%s heard what is for somebody else:\n%s", p.name, text)
		}
	}
}
