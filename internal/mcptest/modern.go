package mcptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// modern is a server of the stateless generation only, made by hand, and strict about it. Its tools:
//
//	echo {text}     says the text again
//	confirm {}      asks the user for a name (inputRequests and requestState), then greets them
//	wait {rounds}   sends the client back that many times with nothing but a requestState
//	meta {}         gives back the request's _meta as it came
//	change {}       tells its listeners that the tools changed
//	touch {uri}     tells its listeners that a resource was updated
type modern struct {
	methods   handMade
	listeners []listener
}

// A listener is a subscriptions/listen request that is still open, and where it is answered.
type listener struct {
	id, filter json.RawMessage
	stream     *conversation
}

func newModern() *modern {
	s := &modern{}
	s.methods = handMade{
		wire.MethodDiscover: alwaysComplete(`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},` +
			`"resources":{"listChanged":true,"subscribe":true}},"instructions":"Modern only.","ttlMs":60000,"cacheScope":"public"`),
		wire.MethodToolsList:     alwaysComplete(`"tools":[` + strings.Join(modernTools, ",") + `],"ttlMs":60000,"cacheScope":"public"`),
		wire.MethodResourcesList: alwaysComplete(`"resources":[{"uri":"test://touched","name":"touched"}],"ttlMs":1000,"cacheScope":"private"`),
		wire.MethodTemplatesList: alwaysComplete(`"resourceTemplates":[],"ttlMs":1000,"cacheScope":"private"`),
		wire.MethodResourcesRead: s.read,
		wire.MethodToolsCall:     s.call,
		wire.MethodListen:        s.listen,
		wire.NoteCancelled:       s.cancel,
	}
	return s
}

var modernTools = []string{
	echoTool,
	`{"name":"confirm","inputSchema":{"type":"object"}}`,
	`{"name":"wait","inputSchema":{"type":"object","properties":{"rounds":{"type":"integer"}}}}`,
	`{"name":"meta","inputSchema":{"type":"object"}}`,
	`{"name":"change","inputSchema":{"type":"object"}}`,
	`{"name":"touch","inputSchema":{"type":"object","properties":{"uri":{"type":"string"}}}}`,
}

// modernInfo is what every result says of the server.
const modernInfo = `"_meta":{"` + wire.MetaServerInfo + `":{"name":"modern","version":"1.0.0"}}`

// alwaysComplete answers with a complete result of these members.
func alwaysComplete(members string) func(*conversation, wire.Message) {
	return always(completeResult(members))
}

func completeResult(members string) string {
	return `{"resultType":"complete",` + members + `,` + modernInfo + `}`
}

func (s *modern) answer(c *conversation, m wire.Message) {
	meta := wire.MetaOf(m.Params)
	version := wire.VersionOf(m.Params)
	switch {
	case !m.IsRequest():
		s.methods.answer(c, m)
	case m.Method == wire.MethodInitialize || version != "" && version != wire.Version20260728:
		asked := version + wire.GetText(m.Params, "protocolVersion")
		data := `{"supported":["2026-07-28"],"requested":` + string(wire.Quote(asked)) + `}`
		c.say(wire.Message{ID: m.ID, Error: wire.ErrorObject(wire.CodeUnsupportedVersion, "unsupported protocol version", json.RawMessage(data))})
	case version == "" || wire.Get(meta, wire.MetaClientCapabilities) == nil:
		c.fail(m, wire.CodeInvalidParams, "missing protocolVersion or clientCapabilities in _meta")
	default:
		s.methods.answer(c, m)
	}
}

func (s *modern) read(c *conversation, m wire.Message) {
	uri := wire.GetText(m.Params, "uri")
	if uri != "test://touched" {
		c.fail(m, wire.CodeInvalidParams, "no such resource: "+uri)
		return
	}
	c.result(m, completeResult(`"contents":[{"uri":"test://touched","text":""}],"ttlMs":1000,"cacheScope":"private"`))
}

func (s *modern) call(c *conversation, m wire.Message) {
	say := func(text string) {
		c.result(m, completeResult(`"content":[{"type":"text","text":`+string(wire.Quote(text))+`}]`))
	}
	switch name := wire.GetText(m.Params, "name"); name {
	case "echo":
		say(wire.GetText(m.Params, "arguments", "text"))
	case "meta":
		say(string(wire.MetaOf(m.Params)))
	case "confirm":
		s.confirm(c, m, say)
	case "wait":
		s.wait(c, m, say)
	case "change":
		s.tell("toolsListChanged", wire.NoteToolsChanged, "")
		say("changed")
	case "touch":
		uri := wire.GetText(m.Params, "arguments", "uri")
		s.tell("resourceSubscriptions", wire.NoteResourceUpdated, uri)
		say("touched " + uri)
	default:
		c.fail(m, wire.CodeInvalidParams, "unknown tool: "+name)
	}
}

// confirmState is opaque to everybody else; what stands in it must come back byte for byte.
const confirmState = `{"step": 1, "é": "\u00e9"}`

func (s *modern) confirm(c *conversation, m wire.Message, say func(string)) {
	state := wire.Get(m.Params, "requestState")
	answer := wire.Get(m.Params, "inputResponses", "who")
	text, _ := wire.Text(state)
	switch {
	case state == nil && wire.Get(m.Params, "_meta", wire.MetaClientCapabilities, "elicitation") == nil:
		c.say(wire.Message{ID: m.ID, Error: wire.ErrorObject(wire.CodeMissingCapability, "confirm needs elicitation",
			json.RawMessage(`{"requiredCapabilities":{"elicitation":{}}}`))})
	case state == nil:
		c.result(m, `{"resultType":"input_required","requestState":`+string(wire.Quote(confirmState))+`,"inputRequests":{"who":{`+
			`"method":"elicitation/create","params":{"mode":"form","message":"Who are you?","requestedSchema":`+
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},`+modernInfo+`}`)
	case text != confirmState:
		c.fail(m, wire.CodeInvalidParams, "the requestState is not mine")
	case wire.GetText(answer, "action") != "accept":
		say("the user chose to " + wire.GetText(answer, "action"))
	default:
		say("hello, " + wire.GetText(answer, "content", "name"))
	}
}

func (s *modern) wait(c *conversation, m wire.Message, say func(string)) {
	round, rounds := 0, 1
	_, _ = fmt.Sscanf(wire.GetText(m.Params, "requestState"), "round %d", &round)
	_ = json.Unmarshal(wire.Get(m.Params, "arguments", "rounds"), &rounds)
	if round >= rounds {
		say(fmt.Sprintf("waited %d rounds", round))
		return
	}
	c.result(m, fmt.Sprintf(`{"resultType":"input_required","requestState":"round %d",%s}`, round+1, modernInfo))
}

// listen acknowledges a subscription and keeps it until it is cancelled.
func (s *modern) listen(c *conversation, m wire.Message) {
	filter := wire.Get(m.Params, "notifications")
	if filter == nil {
		c.fail(m, wire.CodeInvalidParams, "missing notifications")
		return
	}
	c.notify(wire.NoteListenAck, `{`+subscription(m.ID)+`,"notifications":`+string(filter)+`}`)
	s.listeners = append(s.listeners, listener{m.ID, filter, c})
}

func (s *modern) cancel(c *conversation, m wire.Message) {
	id := string(wire.Get(m.Params, "requestId"))
	s.listeners = slices.DeleteFunc(s.listeners, func(l listener) bool {
		if string(l.id) != id || l.stream != c {
			return false
		}
		c.say(wire.Message{ID: l.id, Result: json.RawMessage(`{"resultType":"complete",` + subscription(l.id) + `}`)})
		return true
	})
}

// forget drops the listeners of a stream that is gone.
func (s *modern) forget(stream *conversation) {
	s.listeners = slices.DeleteFunc(s.listeners, func(l listener) bool { return l.stream == stream })
}

// tell notifies the listeners that asked for this kind of notice: for any, or for this URI.
func (s *modern) tell(kind, method, uri string) {
	for _, l := range s.listeners {
		wanted := wire.Get(l.filter, kind)
		params := `{` + subscription(l.id) + `}`
		if uri == "" && string(wanted) == "true" {
			l.stream.notify(method, params)
		}
		for u := range wire.Elements(wanted) {
			if s, _ := wire.Text(u); s == uri {
				l.stream.notify(method, string(wire.Apply(json.RawMessage(params), wire.Put(u, "uri"))))
			}
		}
	}
}

func subscription(id json.RawMessage) string {
	return `"_meta":{"` + wire.MetaSubscriptionID + `":` + string(id) + `}`
}
