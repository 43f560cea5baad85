//go:build !nomcp

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"go.uber.org/goleak"
)

// seeded prints a seed, which the variable MATRIX_SEED sets, and returns what makes a source of randomness of it for
// each of several actors.
func seeded(t *testing.T) func(actor uint64) *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("MATRIX_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("MATRIX_SEED=%d", seed)
	return func(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, actor)) }
}

// An actor is a caller made directly, and what it came to know.
type actor struct {
	caller drawbridge.Caller
	deck   *deck.Deck
	rand   *rand.Rand
	// secrets counts what it has told servers.
	secrets int

	mu sync.Mutex
	// learnt is every byte that reached it; secret is what it answers questions with now.
	learnt []string
	secret string
}

var _ drawbridge.Peer = (*actor)(nil)

func (a *actor) learn(bytes ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.learnt = append(a.learnt, fmt.Sprint(bytes...))
}

// Notify takes what a server says during a call.
func (a *actor) Notify(_ context.Context, method string, params json.RawMessage) error {
	a.learn(method, " ", string(params))
	return nil
}

// Request answers with the secret.
func (a *actor) Request(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	a.learn(method, " ", string(params))
	return a.reveal(), nil
}

func (a *actor) reveal() json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return json.RawMessage(`{"action":"accept","content":{"name":"` + a.secret + `"}}`)
}

// conceal makes a new secret, which begins with the principal's name.
func (a *actor) conceal() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets++
	a.secret = fmt.Sprintf("<%s %x>", a.caller.Principal, a.rand.Uint64())
	return a.secret
}

// do calls a tool, and learns what comes back.
func (a *actor) do(ctx context.Context, params string) json.RawMessage {
	result, err := a.deck.Do(ctx, drawbridge.Call{Caller: a.caller, Method: mcp.MethodToolsCall,
		Params: a.dress(params), Peer: a})
	if err != nil {
		f := drawbridge.AsFault(err)
		a.learn(f.Error(), string(f.Raw))
	}
	a.learn(string(result.Raw))
	return result.Raw
}

// dress has a stateless request say what it must.
func (a *actor) dress(params string) json.RawMessage {
	if a.caller.Era == drawbridge.Legacy {
		return json.RawMessage(params)
	}
	return rawjson.Apply(json.RawMessage(params),
		rawjson.Put(rawjson.Quote(mcp.Version20260728), "_meta", mcp.MetaProtocolVersion),
		rawjson.Put(a.caller.Capabilities, "_meta", mcp.MetaClientCapabilities),
		rawjson.Put(rawjson.Quote("debug"), "_meta", mcp.MetaLogLevel))
}

// A stolen request is one that someone else was asked to retry.
type stolen struct {
	owner  string
	params string
}

// act does one thing at random with a server. thieves has what others may try to steal.
func (a *actor) act(ctx context.Context, server string, loot *sync.Map) {
	secret := string(rawjson.Quote(a.conceal()))
	call := func(tool, arguments string) string {
		return `{"name":"` + server + `__` + tool + `","arguments":` + arguments +
			`,"_meta":{"progressToken":` + secret + `}}`
	}
	switch a.rand.IntN(5) {
	case 0:
		a.do(ctx, call("echo", `{"text":`+secret+`}`))
	case 1:
		a.do(ctx, call("log", `{"lines":[{"level":"error","data":`+secret+`},{"level":"info","data":`+secret+`}]}`))
	case 2:
		a.do(ctx, call("progress", `{"steps":3}`))
	case 3:
		params := call("ask", `{"rounds":[["form"],["form"]],"about":`+secret+`}`)
		result := a.do(ctx, params)
		for rawjson.GetString(result, "resultType") == "input_required" {
			retry := a.answered(params, result)
			loot.Store(a.caller.Principal, stolen{a.caller.Principal, retry})
			result = a.do(ctx, retry)
		}
	case 4:
		loot.Range(func(_, what any) bool {
			if s := what.(stolen); s.owner != a.caller.Principal {
				a.do(ctx, s.params)
			}
			return true
		})
	}
}

// answered returns the params of a retry.
func (a *actor) answered(params string, result json.RawMessage) string {
	out := rawjson.Apply(json.RawMessage(params), rawjson.Put(rawjson.Get(result, "requestState"), "requestState"))
	for key := range questionsIn(result) {
		out = rawjson.Apply(out, rawjson.Put(a.reveal(), "inputResponses", key))
	}
	return string(out)
}

// talkersRow writes the rows of talkers of both generations, over both transports, and starts those over HTTP.
func talkersRows(t *testing.T) (rows string, servers []string) {
	t.Helper()
	var all []string
	for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
		h, err := mcptest.HTTPTalker(era == drawbridge.Modern, "")
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(func() {
			web.CloseClientConnections()
			h.Close()
			web.Close()
		})
		onHTTP, onStdio := era.String()+"-http", era.String()+"-stdio"
		servers = append(servers, onHTTP, onStdio)
		all = append(all, fmt.Sprintf(`%q:{"type":"http","url":%q}`, onHTTP, web.URL),
			fmt.Sprintf(`%q:%s`, onStdio, mcptest.ServerRow(t, "talker", era.String())))
	}
	return strings.Join(all, ","), servers
}

// TestNothingPrivateCrossesPrincipals has callers of three principals, of both generations, do all kinds of things with
// the same servers at the same time, and steal from one another. No one learns a byte of another principal's.
func TestNothingPrivateCrossesPrincipals(t *testing.T) {
	source := seeded(t)
	rows, servers := talkersRows(t)
	g := runGateway(t, `{"servers":{`+rows+`}}`, "")
	principals := []string{g.Owner().Principal, "ann", "bob"}
	var actors []*actor
	for i := range 12 {
		a := &actor{caller: g.Owner(), deck: g.Deck(), rand: source(uint64(i))}
		a.caller.Principal = principals[i%3]
		a.caller.Era, a.caller.Protocol = drawbridge.Modern, mcp.Version20260728
		a.caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		if i%2 == 0 {
			a.caller.Era, a.caller.Protocol, a.caller.Session = drawbridge.Legacy, mcp.Version20251125,
				fmt.Sprintf("session %d", i)
		}
		if i%4 > 1 { // one that no one can ask shares connections
			a.caller.Capabilities = json.RawMessage(`{}`)
		}
		actors = append(actors, a)
		t.Cleanup(g.Deck().OnEvent(func(e deck.Event) {
			if e.VisibleTo(a.caller) {
				a.learn(e.Notification.Method, string(e.Notification.Params))
			}
		}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var work sync.WaitGroup
	var loot sync.Map
	for _, a := range actors {
		work.Go(func() {
			if a.caller.Era == drawbridge.Legacy {
				if err := g.Deck().SetLogLevel(ctx, a.caller, "debug"); err != nil {
					t.Error(err)
				}
			}
			for range 25 {
				a.act(ctx, servers[a.rand.IntN(len(servers))], &loot)
			}
			g.Deck().EndSession(a.caller)
		})
	}
	work.Wait()
	for _, a := range actors {
		own := 0
		for _, text := range a.learnt {
			for _, other := range principals {
				switch {
				case !strings.Contains(text, `<`+other+" ") && !strings.Contains(text, `\u003c`+other+" "):
				case other == a.caller.Principal:
					own++
				default:
					t.Errorf("%s, %s, learnt of %s: %s", a.caller.Principal, a.caller.Era, other, text)
				}
			}
		}
		if own < a.secrets/4 {
			t.Errorf("%s learnt only %d times of its own %d secrets", a.caller.Principal, own, a.secrets)
		}
	}
	if ctx.Err() != nil {
		t.Error("it took too long")
	}
}

// TestParkedCallsAllEnd parks a hundred calls at stateful servers, on HTTP and on stdio, and has their callers answer,
// decline, cancel, come back twice, or never, while the servers are killed. Every request is answered, and nothing is
// left.
func TestParkedCallsAllEnd(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("calls", func(t *testing.T) {
		source := seeded(t)
		for i, upstream := range []string{"stdio", "HTTP"} {
			t.Run(upstream, func(t *testing.T) {
				t.Parallel()
				parkAll(t, newRig(t, plan{server: drawbridge.Legacy, upstream: upstream, row: `"timeout":600`}),
					upstream, func(actor uint64) *rand.Rand {
						return source(actor + uint64(1000*i))
					})
			})
		}
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

const parkedCalls = 50 // of each kind of server

func parkAll(t *testing.T, r *rig, upstream string, source func(uint64) *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var asked atomic.Int64
	var work sync.WaitGroup
	killAt := int64(10 + source(0).IntN(parkedCalls/2))
	for i := range parkedCalls {
		a := &actor{caller: r.Owner(), deck: r.Deck(), rand: source(uint64(i + 1))}
		a.caller.Capabilities = json.RawMessage(`{"elicitation":{}}`)
		work.Go(func() {
			a.conceal()
			never := filepath.Join(t.TempDir(), "never")
			parkOne(ctx, a, never, func() {
				if asked.Add(1) == killAt {
					r.restart()
				}
			})
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		t.Error("a request was not answered")
	}
	if n := asked.Load(); n < parkedCalls/5 {
		t.Errorf("only %d calls were parked", n)
	}
	t.Logf("%d calls were parked on %s", asked.Load(), upstream)
	defer func() {
		if t.Failed() {
			t.Logf("open are %v", r.open())
		}
	}()
	eventually(t, "calls stay open", func() bool { return len(r.open()) == 0 })
	b := &box{t, r, cell{drawbridge.Modern, drawbridge.Legacy}, path{"HTTP", upstream}}
	b.worksAgain()
	b.leavesNothing()
}

// parkOne is the life of one call.
func parkOne(ctx context.Context, a *actor, never string, asked func()) {
	fate := a.rand.IntN(6)
	arguments := `{"rounds":[["form"]]}`
	if fate == 3 {
		arguments = `{"rounds":[["form"]],"when":` + string(rawjson.Quote(never)) + `}`
	}
	params := toolParams("ask", arguments)
	result := a.do(ctx, params)
	if rawjson.GetString(result, "resultType") != "input_required" {
		return // the server was not there, or had no time
	}
	asked()
	retry := a.answered(params, result)
	switch fate {
	case 0, 1: // answer
		a.do(ctx, retry)
	case 2: // decline
		decline := json.RawMessage(`{"action":"decline"}`)
		for key := range questionsIn(result) {
			retry = string(rawjson.Apply(json.RawMessage(retry), rawjson.Put(decline, "inputResponses", key)))
		}
		a.do(ctx, retry)
	case 3: // cancel, at any time
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(time.Duration(a.rand.IntN(20))*time.Millisecond, cancel)
		a.do(ctx, retry)
		timer.Stop()
		cancel()
	case 4: // come back twice
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { a.do(ctx, retry) })
		}
		both.Wait()
	case 5: // never come back
	}
}
