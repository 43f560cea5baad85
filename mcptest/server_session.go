package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A serverSession is the state of one client: a stdio connection, an HTTP session, or, in the stateless generation, one
// HTTP request.
type serverSession struct {
	*Server
	// ctx ends with the session. All its requests then end.
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex
	caps json.RawMessage
	// asked contains the server's requests that wait for a response. open contains the client's requests that can be
	// cancelled. The keys are the bytes of the IDs.
	asked map[string]chan mcp.Message
	open  map[string]context.CancelFunc
}

func (s *Server) session() *serverSession {
	c := &serverSession{Server: s, asked: map[string]chan mcp.Message{}, open: map[string]context.CancelFunc{}}
	c.ctx, c.end = context.WithCancel(s.ctx)
	return c
}

// A responseWriter sends the response to one request, and the messages before it.
type responseWriter struct {
	// say sends a message. raw sends bytes, which may not be a message.
	say func(mcp.Message)
	raw func(...repeatedBytes)
}

// A repeatedBytes represents bytes that are written repeatedly. The number of repetitions is in times. A message of a
// gigabyte thus needs little memory. pause, if not nil, is called after each repetition; if it returns false, the
// writing ends.
type repeatedBytes struct {
	bytes []byte
	times int
	pause func() bool
}

// handleMessage handles one message. A request is handled in a goroutine of the session. done is called when the
// message has been handled.
func (c *serverSession) handleMessage(m mcp.Message, out responseWriter, done func()) {
	c.recordRequest(m)
	switch {
	case m.IsResponse():
		c.answered(m)
	case m.Method == mcp.NoteCancelled:
		c.cancel(string(rawjson.Get(m.Params, "requestId")))
	case m.IsRequest():
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		c.open[string(m.ID)] = cancel
		c.mu.Unlock()
		c.work.Go(func() {
			defer done()
			defer c.cancel(string(m.ID))
			c.handleRequest(ctx, m, out)
		})
		return
	}
	done()
}

// handleRequest handles a request and sends the response.
func (c *serverSession) handleRequest(ctx context.Context, m mcp.Message, out responseWriter) {
	if c.deed.answerBadly != nil && c.deed.answerBadly(ctx, c, m, out) {
		return
	}
	era, caps, refused := c.eraOf(m)
	switch {
	case refused != nil:
		out.say(*refused)
	case m.Method == mcp.MethodListen && era == drawbridge.Modern:
		c.listen(ctx, m, out)
	default:
		if reply, ok := c.reply(ctx, era, caps, m, out); ok && ctx.Err() == nil {
			out.say(reply)
		}
	}
}

// eraOf returns the generation of a request and the capabilities of its client. If the server does not speak that
// generation, refused is the error response.
func (c *serverSession) eraOf(m mcp.Message) (era drawbridge.ProtocolEra, caps json.RawMessage, refused *mcp.Message) {
	version := mcp.ProtocolVersion(m.Params)
	eras := c.currentFeatures().eras
	switch {
	case version == "" && m.Method == mcp.MethodInitialize:
		c.mu.Lock()
		c.caps = rawjson.Get(m.Params, "capabilities")
		c.mu.Unlock()
		fallthrough
	case version == "":
		if !eras.Has(drawbridge.Legacy) {
			reply := mcp.Message{ID: m.ID, Error: unsupported(version)}
			return 0, nil, &reply
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return drawbridge.Legacy, c.caps, nil
	case !eras.Has(drawbridge.Modern):
		reply := errorMessage(m.ID, mcp.CodeMethodNotFound, "method not found: "+m.Method)
		return 0, nil, &reply
	case !slices.Contains(mcp.ModernVersions(), version):
		reply := mcp.Message{ID: m.ID, Error: unsupported(version)}
		return 0, nil, &reply
	}
	return drawbridge.Modern, rawjson.Get(m.Params, "_meta", mcp.MetaClientCapabilities), nil
}

func unsupported(version string) json.RawMessage {
	return mcp.NewErrorObject(mcp.CodeUnsupportedVersion, "unsupported protocol version",
		jsonObject("supported", mcp.ModernVersions(), "requested", version))
}

// reply returns the response to any request except a subscription. It returns false if there is nothing to send.
func (c *serverSession) reply(ctx context.Context, era drawbridge.ProtocolEra, caps json.RawMessage, m mcp.Message,
	out responseWriter) (mcp.Message, bool) {
	has := c.currentFeatures()
	result := func(members string) (mcp.Message, bool) {
		return mcp.Message{ID: m.ID, Result: c.complete(era, m.Method, members)}, true
	}
	switch m.Method {
	case mcp.MethodInitialize:
		return result(`"protocolVersion":` + string(rawjson.Quote(versionFor(m))) + `,"capabilities":` +
			string(has.capabilities(era)) +
			`,"serverInfo":` + string(c.info()) + has.instructionsMember())
	case mcp.MethodDiscover:
		versions, _ := json.Marshal(mcp.ModernVersions())
		return result(`"supportedVersions":` + string(versions) + `,"capabilities":` + string(has.capabilities(era)) +
			has.instructionsMember())
	case mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return result("")
	case mcp.MethodToolsList:
		return result(`"tools":` + joinDefinitions(has.tools))
	case mcp.MethodPromptsList:
		return result(`"prompts":` + joinDefinitions(has.prompts))
	case mcp.MethodResourcesList:
		return result(`"resources":` + joinDefinitions(has.resources))
	case mcp.MethodTemplatesList:
		return result(`"resourceTemplates":[]`)
	}
	name, ok := mcp.TargetName(m.Method, m.Params)
	list := map[string][]listedFeature{mcp.MethodToolsCall: has.tools, mcp.MethodPromptsGet: has.prompts,
		mcp.MethodResourcesRead: has.resources}[m.Method]
	if !ok || list == nil && m.Method != mcp.MethodToolsCall {
		return errorMessage(m.ID, mcp.CodeMethodNotFound, "method not found: "+m.Method), true
	}
	i := slices.IndexFunc(list, func(f listedFeature) bool { return f.name == name })
	if i < 0 {
		return errorMessage(m.ID, mcp.CodeInvalidParams, "there is no "+name), true
	}
	call := &ServerCall{Method: m.Method, Name: name, Params: m.Params, Era: era, s: c, send: out.say, caps: caps}
	call.Arguments = orEmpty(rawjson.Get(m.Params, "arguments"))
	return call.respond(ctx, m.ID, list[i].answer), true
}

// listen serves a stateless subscription until it is cancelled.
func (c *serverSession) listen(ctx context.Context, m mcp.Message, out responseWriter) {
	wanted := rawjson.Get(m.Params, "notifications")
	meta := jsonObject("_meta", map[string]json.RawMessage{mcp.MetaSubscriptionID: m.ID})
	ear := &notificationSink{say: func(n mcp.Message) {
		if string(rawjson.Get(wanted, noticeOf(n.Method))) == "true" {
			n.Params = meta
			out.say(n)
		}
	}}
	out.say(mcp.Message{Method: mcp.NoteListenAck, Params: rawjson.Apply(meta, rawjson.Put(orEmpty(wanted),
		"notifications"))})
	c.addSink(ear)
	defer c.removeSink(ear)
	<-ctx.Done()
	if c.ctx.Err() == nil {
		out.say(mcp.Message{ID: m.ID, Result: rawjson.Apply(meta, rawjson.Put(rawjson.Quote("complete"),
			"resultType"))})
	}
}

// noticeOf returns the member of a subscriptions/listen request that requests the notification with the given method.
func noticeOf(method string) string {
	return map[string]string{
		mcp.NoteToolsChanged: "toolsListChanged", mcp.NotePromptsChanged: "promptsListChanged",
		mcp.NoteResourcesChanged: "resourcesListChanged",
	}[method]
}

func (c *serverSession) cancel(id string) {
	c.mu.Lock()
	cancel := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// ask sends the client a request and waits for the response.
func (c *serverSession) ask(ctx context.Context, say func(mcp.Message), method string, params json.RawMessage) (
	json.RawMessage, error) {
	id, answer := c.number(), make(chan mcp.Message, 1)
	c.mu.Lock()
	c.asked[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, id)
		c.mu.Unlock()
	}()
	say(mcp.Message{ID: json.RawMessage(id), Method: method, Params: params})
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, errors.New(method + ": " + rawjson.GetString(m.Error, "message"))
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *serverSession) answered(m mcp.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[string(m.ID)]; answer != nil {
		delete(c.asked, string(m.ID))
		answer <- m
	}
}

// close ends the session and waits for its requests.
func (c *serverSession) close() {
	c.end()
	c.work.Wait()
}

// number returns an ID that is unique among the server's requests to clients.
func (s *Server) number() string { return strconv.FormatInt(s.last.Add(1), 10) }

func orEmpty(obj json.RawMessage) json.RawMessage {
	if obj == nil {
		return json.RawMessage("{}")
	}
	return obj
}
