package mcptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// modernServer is a strict server of the stateless generation only, written without the SDK. Its tools:
//
//	echo {text}     returns the text
//	confirm {}      asks the user for a name (inputRequests and requestState), then greets the user
//	wait {rounds}   answers that many times with only a requestState, so that the client must call again
//	meta {}         returns the request's _meta unchanged
//	change {}       notifies the open subscriptions that the tools changed
//	touch {uri}     notifies the open subscriptions that a resource was updated
type modernServer struct {
	methods   methodTable
	listeners []listener
}

// A listener is an open subscriptions/listen request, with the stream of its response.
type listener struct {
	id, filter json.RawMessage
	stream     *messageStream
}

func newModern() *modernServer {
	s := &modernServer{}
	s.methods = methodTable{
		mcp.MethodDiscover: alwaysComplete(
			`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},` +
				`"resources":{"listChanged":true,"subscribe":true}},"instructions":"Modern only.","ttlMs":60000,"cacheScope":"public"`),
		mcp.MethodToolsList: alwaysComplete(`"tools":[` + strings.Join(modernTools, ",") +
			`],"ttlMs":60000,"cacheScope":"public"`),
		mcp.MethodResourcesList: alwaysComplete(
			`"resources":[{"uri":"test://touched","name":"touched"}],"ttlMs":1000,"cacheScope":"private"`),
		mcp.MethodTemplatesList: alwaysComplete(`"resourceTemplates":[],"ttlMs":1000,"cacheScope":"private"`),
		mcp.MethodResourcesRead: s.read,
		mcp.MethodToolsCall:     s.call,
		mcp.MethodListen:        s.listen,
		mcp.NoteCancelled:       s.cancel,
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

// modernInfo is the member _meta of every result, which contains the name and the version of the server.
const modernInfo = `"_meta":{"` + mcp.MetaServerInfo + `":{"name":"modern","version":"1.0.0"}}`

// alwaysComplete returns a function that answers each request with a result of type "complete" with the given members.
func alwaysComplete(members string) func(*messageStream, mcp.Message) {
	return alwaysAnswer(completeResult(members))
}

func completeResult(members string) string {
	return `{"resultType":"complete",` + members + `,` + modernInfo + `}`
}

func (s *modernServer) handle(c *messageStream, m mcp.Message) {
	meta := mcp.MetaOf(m.Params)
	version := mcp.ProtocolVersion(m.Params)
	switch {
	case !m.IsRequest():
		s.methods.handle(c, m)
	case m.Method == mcp.MethodInitialize || version != "" && version != mcp.Version20260728:
		asked := version + rawjson.GetString(m.Params, "protocolVersion")
		data := `{"supported":["2026-07-28"],"requested":` + string(rawjson.Quote(asked)) + `}`
		c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeUnsupportedVersion,
			"unsupported protocol version", json.RawMessage(data))})
	case version == "" || rawjson.Get(meta, mcp.MetaClientCapabilities) == nil:
		c.fail(m, mcp.CodeInvalidParams, "missing protocolVersion or clientCapabilities in _meta")
	default:
		s.methods.handle(c, m)
	}
}

func (s *modernServer) read(c *messageStream, m mcp.Message) {
	uri := rawjson.GetString(m.Params, "uri")
	if uri != "test://touched" {
		c.fail(m, mcp.CodeInvalidParams, "no such resource: "+uri)
		return
	}
	c.result(m, completeResult(`"contents":[{"uri":"test://touched","text":""}],"ttlMs":1000,"cacheScope":"private"`))
}

func (s *modernServer) call(c *messageStream, m mcp.Message) {
	say := func(text string) {
		c.result(m, completeResult(`"content":[{"type":"text","text":`+string(rawjson.Quote(text))+`}]`))
	}
	switch name := rawjson.GetString(m.Params, "name"); name {
	case "echo":
		say(rawjson.GetString(m.Params, "arguments", "text"))
	case "meta":
		say(string(mcp.MetaOf(m.Params)))
	case "confirm":
		s.confirm(c, m, say)
	case "wait":
		s.wait(c, m, say)
	case "change":
		s.tell("toolsListChanged", mcp.NoteToolsChanged, "")
		say("changed")
	case "touch":
		uri := rawjson.GetString(m.Params, "arguments", "uri")
		s.tell("resourceSubscriptions", mcp.NoteResourceUpdated, uri)
		say("touched " + uri)
	default:
		c.fail(m, mcp.CodeInvalidParams, "unknown tool: "+name)
	}
}

// confirmState is the requestState of the tool confirm. It is opaque to clients, which must send it back byte for byte.
const confirmState = `{"step": 1, "é": "\u00e9"}`

func (s *modernServer) confirm(c *messageStream, m mcp.Message, say func(string)) {
	state := rawjson.Get(m.Params, "requestState")
	answer := rawjson.Get(m.Params, "inputResponses", "who")
	text, _ := rawjson.DecodeString(state)
	switch {
	case state == nil && rawjson.Get(m.Params, "_meta", mcp.MetaClientCapabilities, "elicitation") == nil:
		c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeMissingCapability, "confirm needs elicitation",
			json.RawMessage(`{"requiredCapabilities":{"elicitation":{}}}`))})
	case state == nil:
		c.result(m, `{"resultType":"input_required","requestState":`+string(rawjson.Quote(confirmState))+
			`,"inputRequests":{"who":{`+
			`"method":"elicitation/create","params":{"mode":"form","message":"Who are you?","requestedSchema":`+
			`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}},`+modernInfo+`}`)
	case text != confirmState:
		c.fail(m, mcp.CodeInvalidParams, "the requestState is not mine")
	case rawjson.GetString(answer, "action") != "accept":
		say("the user chose to " + rawjson.GetString(answer, "action"))
	default:
		say("hello, " + rawjson.GetString(answer, "content", "name"))
	}
}

func (s *modernServer) wait(c *messageStream, m mcp.Message, say func(string)) {
	round, rounds := 0, 1
	_, _ = fmt.Sscanf(rawjson.GetString(m.Params, "requestState"), "round %d", &round)
	_ = json.Unmarshal(rawjson.Get(m.Params, "arguments", "rounds"), &rounds)
	if round >= rounds {
		say(fmt.Sprintf("waited %d rounds", round))
		return
	}
	c.result(m, fmt.Sprintf(`{"resultType":"input_required","requestState":"round %d",%s}`, round+1, modernInfo))
}

// listen acknowledges a subscriptions/listen request and stores it until it is cancelled.
func (s *modernServer) listen(c *messageStream, m mcp.Message) {
	filter := rawjson.Get(m.Params, "notifications")
	if filter == nil {
		c.fail(m, mcp.CodeInvalidParams, "missing notifications")
		return
	}
	c.notify(mcp.NoteListenAck, `{`+subscriptionMetaMember(m.ID)+`,"notifications":`+string(filter)+`}`)
	s.listeners = append(s.listeners, listener{m.ID, filter, c})
}

func (s *modernServer) cancel(c *messageStream, m mcp.Message) {
	id := string(rawjson.Get(m.Params, "requestId"))
	s.listeners = slices.DeleteFunc(s.listeners, func(l listener) bool {
		if string(l.id) != id || l.stream != c {
			return false
		}
		c.say(mcp.Message{ID: l.id, Result: json.RawMessage(`{"resultType":"complete",` + subscriptionMetaMember(l.id) + `}`)})
		return true
	})
}

// forget removes the listeners of a stream that has ended.
func (s *modernServer) forget(stream *messageStream) {
	s.listeners = slices.DeleteFunc(s.listeners, func(l listener) bool { return l.stream == stream })
}

// tell sends a notification with the given method to listeners. If uri is empty, these are the listeners whose filter
// contains the member kind with the value true. Otherwise, they are the listeners whose member kind lists the URI.
func (s *modernServer) tell(kind, method, uri string) {
	for _, l := range s.listeners {
		wanted := rawjson.Get(l.filter, kind)
		params := `{` + subscriptionMetaMember(l.id) + `}`
		if uri == "" && string(wanted) == "true" {
			l.stream.notify(method, params)
		}
		for u := range rawjson.Elements(wanted) {
			if s, _ := rawjson.DecodeString(u); s == uri {
				l.stream.notify(method, string(rawjson.Apply(json.RawMessage(params), rawjson.Put(u, "uri"))))
			}
		}
	}
}

func subscriptionMetaMember(id json.RawMessage) string {
	return `"_meta":{"` + mcp.MetaSubscriptionID + `":` + string(id) + `}`
}
