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

// A talker is a server of one generation, written without the SDK, that sends every kind of message that a server can
// send. It is the named server "talker" on stdio, and a [Talker] over HTTP. It logs received messages and its own
// actions to a file, its record (see [ReadTalkerEvents]). Its tools:
//
//	echo {text}        returns the text
//	fail {}            reports an error as a result
//	broken {}          answers with an error object that has data
//	ask {rounds, when, about}
//	                   asks the client in rounds, all questions of a round at once:
//	                   {"rounds":[["form"],["sampling","roots"]]}. The kinds are form (with the message "about" if it
//	                   is set), url, sampling, tools (sampling with tools) and roots. It notifies progress after each
//	                   round, and returns the answers as structured content. If "when" names a file, it waits
//	                   until the file exists. Questions that the client did not declare are sent in the stateful
//	                   generation, where a client may refuse. In the stateless one they are answered with
//	                   {"undeclared":KIND}
//	again {times}      answers that many times with only a requestState, so that the client must call again
//	                   (stateless generation)
//	retract {when}     sends a form, cancels it when the file exists, and ends (stateful generation)
//	log {lines}        sends the log lines that the client's log level admits: {"lines":[{"level":…,"data":…}]}
//	progress {steps}   notifies progress if there is a token, and returns the token
//	wait {}            runs until it is cancelled
//	hold {when}        runs until the file exists
//	meta {}            returns the request's _meta unchanged
//	caps {}            returns the capabilities that the client declared
//	region {region}    returns the header Mcp-Param-Region, which repeats its argument
//	change {}          adds or removes a tool, a prompt and a resource named extra, and notifies each change twice
//	touch {uri}        notifies the subscribers of the resource that it was updated
//	exit {}            ends the process, or deletes all sessions, after its response
//
// Its prompts are plain and ask {rounds}. Its resources are talk://plain, talk://watched and talk://ask/{kinds}, which
// asks one round.
type talker struct {
	modern bool
	record *eventRecorder
	calls  atomic.Int64
	// quit ends the server, or restarts it with a new TalkerEvent.Life if it is a Talker.
	quit func()

	mu      sync.Mutex
	extra   bool
	hearers map[*hearer]struct{}
}

func newTalker(modern bool, record *eventRecorder, quit func()) *talker {
	return &talker{modern: modern, record: record, quit: quit, hearers: map[*hearer]struct{}{}}
}

// A talkerTurn is the handling of one request by a talker.
type talkerTurn struct {
	t      *talker
	ctx    context.Context
	params json.RawMessage
	header http.Header // nil if there is no header
	// say sends messages that belong to the request. asker is the client of the request. level is the least severe log
	// level that the client wants. An empty level means all log messages in the stateful generation, and none in the
	// stateless one.
	say   func(mcp.Message)
	asker turnClient
	level string
}

// A turnClient is the client of a request, to which the turn can send questions.
type turnClient interface {
	// ask returns the answers to one round of questions. An error ends the turn: an inputRequiredResult, a refusal, or
	// errSilent.
	ask(c *talkerTurn, kinds []string) ([]json.RawMessage, error)
	// fresh reports whether the client sent the answers of a round in this request. It returns false if it sent them in
	// an earlier request.
	fresh(round int) bool
	// declared returns the client's capabilities.
	declared() json.RawMessage
}

// An inputRequiredResult is an input_required result: the client must call again with answers. It is returned as an
// error, so that it ends the turn.
type inputRequiredResult string

func (inputRequiredResult) Error() string { return "asked" }

// A refusal is the error object with which a turn ends.
type refusal json.RawMessage

func (r refusal) Error() string { return string(r) }

func refuseTurn(code int, format string, args ...any) error {
	return refusal(mcp.NewErrorObject(code, fmt.Sprintf(format, args...), nil))
}

// errSilent is the error of a cancelled turn, which has no response.
var errSilent = errors.New("cancelled")

// take handles a request of either generation and returns its response. It returns false if the turn was cancelled.
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

// carryOut handles a request and returns the members of the result.
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
		list, _ := json.Marshal([][]string{strings.Split(kinds, ",")}) // strings can always be encoded
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

// hints returns caching hints as members of a result. In the stateful generation, which has no caching hints, it
// returns "".
func (t *talker) hints(ttl int, scope string) string {
	if !t.modern {
		return ""
	}
	return fmt.Sprintf(`,"ttlMs":%d,"cacheScope":%q`, ttl, scope)
}

// completeNames returns the completions of any argument: the names among ada, alan and grace that begin with the
// argument's value.
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

// list returns the member of a result that contains a list of items. If the tool change has added them, the list
// includes the extra items.
func (t *talker) list(member string, items []string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.extra {
		items = append(items[:len(items):len(items)], `{"name":"extra","uri":"talk://extra"}`)
	}
	return `"` + member + `":[` + strings.Join(items, ",") + `]` + t.hints(60_000, "public")
}

// pageOfTools is the number of tools on one page. It is small, so that clients must follow cursors.
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

// A hearer is a session or a subscriptions/listen request. It receives the notifications outside of any call.
type hearer struct {
	// tag is the ID of the subscriptions/listen request. lists are the kinds of changes that it requested. Both are nil
	// for a session, which receives the changes of all lists.
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

// watch subscribes a hearer to a resource if on is true, and unsubscribes it otherwise.
func (t *talker) watch(h *hearer, uri string, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h.uris[uri] = on
}

// tell sends a notification with the given method to hearers. If uri is not empty, they are the hearers that have
// subscribed to the resource uri. Otherwise a list has changed. The hearers are then all sessions, and the
// subscriptions/listen requests in which the member kind is true.
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

// awaitFile waits until a file exists, or the turn ends.
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
