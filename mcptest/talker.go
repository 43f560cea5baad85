package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A talker is a server, made by hand, that says and asks all that a server can, in one generation: "talker" on stdio, a
// [Talker] over HTTP. What it hears and does it writes to its record, see [ReadTalkerEvents]. Its tools:
//
//	echo {text}        says the text again
//	fail {}            reports an error as a result
//	broken {}          answers with an error object that has data
//	ask {rounds, when, about}
//	                   asks what each round names, all of a round at once: {"rounds":[["form"],["sampling","roots"]]}.
//	                   The kinds are form (whose message is "about", where that is given), url, sampling, tools (sampling
//	                   with tools) and roots. It notifies progress after each round, and returns the answers as
//	                   structured content, once the file "when" is there, where one is named. What the client did not
//	                   declare is asked for in the stateful generation, where a client may refuse, and left out as
//	                   {"undeclared":KIND} in the other
//	again {times}      sends the client back that many times with nothing but a requestState (stateless generation)
//	retract {when}     asks for a form, takes that back when the file is there, and ends (stateful generation)
//	log {lines}        writes log lines, those that the level asked for admits: {"lines":[{"level":…,"data":…}]}
//	progress {steps}   notifies progress if there is a token, and returns the token
//	wait {}            is there until it is cancelled
//	hold {when}        is there until the file is
//	meta {}            returns the request's _meta as it came
//	caps {}            returns what the client declared
//	region {region}    returns the header Mcp-Param-Region, which mirrors its argument
//	change {}          adds a tool, a prompt and a resource named extra, or takes them away, and says so twice
//	touch {uri}        tells those who watch the resource that it was updated
//	exit {}            ends the process, or loses every session, when it has answered
//
// Its prompts are plain and ask {rounds}, its resources talk://plain and talk://ask/{kinds}, which asks one round.
type talker struct {
	modern bool
	record *eventRecorder
	calls  atomic.Int64
	// quit ends this life of the server.
	quit func()

	mu      sync.Mutex
	extra   bool
	hearers map[*hearer]struct{}
}

func newTalker(modern bool, record *eventRecorder, quit func()) *talker {
	return &talker{modern: modern, record: record, quit: quit, hearers: map[*hearer]struct{}{}}
}

// A talkerTurn is one request that is carried out.
type talkerTurn struct {
	t      *talker
	ctx    context.Context
	params json.RawMessage
	header http.Header // nil where there is none
	// say sends what belongs to the request. asker is its client, level the least severe line that it wants to hear;
	// empty is all of them in the stateful generation, and none in the other.
	say   func(mcp.Message)
	asker turnClient
	level string
}

// An turnClient is the client of a request, who can be asked.
type turnClient interface {
	// ask returns the answers to one round of questions. An error ends the turn: a later, a refusal, or the context's.
	ask(c *talkerTurn, kinds []string) ([]json.RawMessage, error)
	// fresh reports whether a round was answered in this very request.
	fresh(round int) bool
	// declared is the client's capabilities.
	declared() json.RawMessage
}

// A inputRequiredResult is the result of a turn that goes on with another request.
type inputRequiredResult string

func (inputRequiredResult) Error() string { return "asked" }

// A refusal is the error object that a turn ends with.
type refusal json.RawMessage

func (r refusal) Error() string { return string(r) }

func refuseTurn(code int, format string, args ...any) error {
	return refusal(mcp.NewErrorObject(code, fmt.Sprintf(format, args...), nil))
}

// errSilent is for a turn that was cancelled: it has no answer.
var errSilent = errors.New("cancelled")

// take carries out a request of both generations, and returns its response; false for any other.
func (t *talker) take(c *talkerTurn, m mcp.Message) (mcp.Message, bool) {
	result, err := t.carryOut(c, m)
	reply := mcp.Message{ID: m.ID}
	asked, isLater := errors.AsType[inputRequiredResult](err)
	refused, isRefusal := errors.AsType[refusal](err)
	switch {
	case err == nil && t.modern:
		reply.Result = json.RawMessage(completeResult(result))
	case err == nil:
		reply.Result = json.RawMessage("{" + result + "}")
	case isLater:
		reply.Result = json.RawMessage(asked)
	case isRefusal:
		reply.Error = json.RawMessage(refused)
	default:
		return reply, false
	}
	return reply, true
}

// carryOut returns the members of the result.
func (t *talker) carryOut(c *talkerTurn, m mcp.Message) (string, error) {
	switch m.Method {
	case mcp.MethodToolsList:
		return t.listTools(c)
	case mcp.MethodPromptsList:
		return t.list("prompts", talkerPrompts), nil
	case mcp.MethodResourcesList:
		return t.list("resources", talkerResources), nil
	case mcp.MethodTemplatesList:
		return `"resourceTemplates":[{"uriTemplate":"talk://ask/{kinds}","name":"ask"}]` +
			t.hints(30_000, "public"), nil
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead:
		name, _ := mcp.TargetName(m.Method, m.Params)
		call := t.calls.Add(1)
		t.record.event("begin", call, name)
		result, err := t.run(c, m.Method, name)
		how := "answered"
		if errors.Is(err, errSilent) {
			how = "cancelled"
		} else if _, ok := errors.AsType[inputRequiredResult](err); ok {
			how = "asked"
		}
		t.record.event(how, call, name)
		return result, err
	case mcp.MethodComplete:
		return completeNames(c.params), nil
	}
	return "", refuseTurn(mcp.CodeMethodNotFound, "method not found: %s", m.Method)
}

func (t *talker) run(c *talkerTurn, method, name string) (string, error) {
	arguments := rawjson.Get(c.params, "arguments")
	switch {
	case method == mcp.MethodPromptsGet && name == "ask":
		answers, err := c.rounds(json.RawMessage(rawjson.GetString(arguments, "rounds")))
		return promptText(string(answers)), err
	case method == mcp.MethodPromptsGet:
		return promptText("a prompt: " + name), nil
	case method == mcp.MethodToolsCall:
		if tool := talkerTools[name]; tool.run != nil {
			return tool.run(c, arguments)
		}
		return "", refuseTurn(mcp.CodeInvalidParams, "unknown tool: %s", name)
	}
	if kinds, ok := strings.CutPrefix(name, "talk://ask/"); ok {
		list, _ := json.Marshal([][]string{strings.Split(kinds, ",")}) // strings always can be
		answers, err := c.rounds(list)
		return contentsMember(name, string(answers)) + t.hints(0, "private"), err
	}
	return contentsMember(name, "a resource") + t.hints(20_000, "private"), nil
}

func promptText(text string) string {
	return `"messages":[{"role":"user","content":{"type":"text","text":` + string(rawjson.Quote(text)) + `}}]`
}

func contentsMember(uri, text string) string {
	return `"contents":[{"uri":` + string(rawjson.Quote(uri)) + `,"text":` + string(rawjson.Quote(text)) + `}]`
}

// hints are caching hints as members, which only the stateless generation has.
func (t *talker) hints(ttl int, scope string) string {
	if !t.modern {
		return ""
	}
	return fmt.Sprintf(`,"ttlMs":%d,"cacheScope":%q`, ttl, scope)
}

// completeNames completes whatever it is to one of three names.
func completeNames(params json.RawMessage) string {
	var values []string
	for _, name := range []string{"ada", "alan", "grace"} {
		if strings.HasPrefix(name, rawjson.GetString(params, "argument", "value")) {
			values = append(values, string(rawjson.Quote(name)))
		}
	}
	return fmt.Sprintf(`"completion":{"values":[%s],"total":%d,"hasMore":false}`,
		strings.Join(values, ","), len(values))
}

var (
	talkerPrompts   = []string{`{"name":"plain"}`, `{"name":"ask","arguments":[{"name":"rounds","required":true}]}`}
	talkerResources = []string{`{"uri":"talk://plain","name":"plain"}`, `{"uri":"talk://watched","name":"watched"}`}
)

// list returns a list, with the items that change adds.
func (t *talker) list(member string, items []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.extra {
		items = append(items[:len(items):len(items)], `{"name":"extra","uri":"talk://extra"}`)
	}
	return `"` + member + `":[` + strings.Join(items, ",") + `]` + t.hints(60_000, "public")
}

// pageOfTools is how many tools stand on one page: few, so that a client has to follow cursors.
const pageOfTools = 5

func (t *talker) listTools(c *talkerTurn) (string, error) {
	names := sortedNames(talkerTools)
	t.mu.Lock()
	if t.extra {
		names = append(names, "extra")
	}
	t.mu.Unlock()
	from := 0
	if cursor := rawjson.Get(c.params, "cursor"); cursor != nil {
		if _, err := fmt.Sscanf(string(cursor), `"talker %d"`, &from); err != nil || from > len(names) {
			return "", refuseTurn(mcp.CodeInvalidParams, "the cursor is not mine: %s", cursor)
		}
	}
	to := min(from+pageOfTools, len(names))
	var items []string
	for _, name := range names[from:to] {
		schema := talkerTools[name].schema
		if schema == "" {
			schema = `{"type":"object"}`
		}
		items = append(items, `{"name":"`+name+`","inputSchema":`+schema+`}`)
	}
	next := ""
	if to < len(names) {
		next = fmt.Sprintf(`,"nextCursor":"talker %d"`, to)
	}
	return `"tools":[` + strings.Join(items, ",") + `]` + next + t.hints(60_000, "public"), nil
}

// A hearer is who is told what belongs to no call: a session, or a subscriptions/listen.
type hearer struct {
	// tag is the id of the listening request, lists the kinds of change that it asked for; nil for a session, which
	// hears of all.
	tag   json.RawMessage
	lists json.RawMessage
	uris  map[string]bool
	say   func(mcp.Message)
}

func (t *talker) hear(h *hearer) (forget func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hearers[h] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.hearers, h)
	}
}

// watch has a hearer hear of a resource, or no more.
func (t *talker) watch(h *hearer, uri string, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.uris[uri] = on
}

// tell says to all who want to know that a list changed (kind is its member of a listening request), or a resource.
func (t *talker) tell(kind, method, uri string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h := range t.hearers {
		if uri != "" && !h.uris[uri] || uri == "" && h.tag != nil && string(rawjson.Get(h.lists, kind)) != "true" {
			continue
		}
		var params json.RawMessage
		if uri != "" {
			params = rawjson.Apply(params, rawjson.Put(rawjson.Quote(uri), "uri"))
		}
		if h.tag != nil {
			params = rawjson.Apply(params, rawjson.Put(h.tag, "_meta", mcp.MetaSubscriptionID))
		}
		h.say(mcp.Message{Method: method, Params: params})
	}
}

// awaitFile waits until there is a file, or the turn ends.
func awaitFile(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errSilent
		case <-time.After(2 * time.Millisecond):
		}
	}
}
