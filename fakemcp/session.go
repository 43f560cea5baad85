package fakemcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A session is a server's conversation with one client: a connection of stdio, a session of HTTP, or, in the stateless
// generation, one request of HTTP.
type session struct {
	*Server
	// ctx ends with the session, and every request with it.
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex
	caps json.RawMessage
	// asked are questions without an answer, open the requests that can be cancelled, by the bytes of their ids.
	asked map[string]chan wire.Message
	open  map[string]context.CancelFunc
}

func (s *Server) session() *session {
	c := &session{Server: s, asked: map[string]chan wire.Message{}, open: map[string]context.CancelFunc{}}
	c.ctx, c.end = context.WithCancel(s.ctx)
	return c
}

// An outlet is where the answer to one request goes, and what is said before it.
type outlet struct {
	// say sends a message, raw bytes that may be none.
	say func(wire.Message)
	raw func(...chunk)
}

// A chunk is bytes, so many times over: a message of a gigabyte takes no memory before it is sent. A pause comes behind each time, and
// says whether there is to be another one.
type chunk struct {
	bytes []byte
	times int
	pause func() bool
}

// take handles one message. A request is answered in a goroutine of the session; done is called when that is over.
func (c *session) take(m wire.Message, out outlet, done func()) {
	c.note(m)
	switch {
	case m.IsResponse():
		c.answered(m)
	case m.Method == wire.NoteCancelled:
		c.cancel(string(wire.Get(m.Params, "requestId")))
	case m.IsRequest():
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		c.open[string(m.ID)] = cancel
		c.mu.Unlock()
		c.work.Go(func() {
			defer done()
			defer c.cancel(string(m.ID))
			c.serve(ctx, m, out)
		})
		return
	}
	done()
}

// serve answers a request.
func (c *session) serve(ctx context.Context, m wire.Message, out outlet) {
	if c.deed.asked != nil && c.deed.asked(ctx, c, m, out) {
		return
	}
	era, caps, refused := c.eraOf(m)
	switch {
	case refused != nil:
		out.say(*refused)
	case m.Method == wire.MethodListen && era == drawbridge.Modern:
		c.listen(ctx, m, out)
	default:
		if reply, ok := c.reply(ctx, era, caps, m, out); ok && ctx.Err() == nil {
			out.say(reply)
		}
	}
}

// eraOf says in which generation a request comes, and what its client can be asked.
func (c *session) eraOf(m wire.Message) (era drawbridge.Era, caps json.RawMessage, refused *wire.Message) {
	version := wire.VersionOf(m.Params)
	eras := c.has().eras
	switch {
	case version == "" && m.Method == wire.MethodInitialize:
		c.mu.Lock()
		c.caps = wire.Get(m.Params, "capabilities")
		c.mu.Unlock()
		fallthrough
	case version == "":
		if !eras.Has(drawbridge.Legacy) {
			reply := wire.Message{ID: m.ID, Error: unsupported(version)}
			return 0, nil, &reply
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		return drawbridge.Legacy, c.caps, nil
	case !eras.Has(drawbridge.Modern):
		reply := fault(m.ID, wire.CodeMethodNotFound, "method not found: "+m.Method)
		return 0, nil, &reply
	case !slices.Contains(wire.ModernVersions(), version):
		reply := wire.Message{ID: m.ID, Error: unsupported(version)}
		return 0, nil, &reply
	}
	return drawbridge.Modern, wire.Get(m.Params, "_meta", wire.MetaClientCapabilities), nil
}

func unsupported(version string) json.RawMessage {
	return wire.ErrorObject(wire.CodeUnsupportedVersion, "unsupported protocol version",
		object("supported", wire.ModernVersions(), "requested", version))
}

// reply answers what is no subscription. It says false where nothing is to be said.
func (c *session) reply(ctx context.Context, era drawbridge.Era, caps json.RawMessage, m wire.Message, out outlet) (wire.Message, bool) {
	has := c.has()
	result := func(members string) (wire.Message, bool) {
		return wire.Message{ID: m.ID, Result: c.complete(era, m.Method, members)}, true
	}
	switch m.Method {
	case wire.MethodInitialize:
		return result(`"protocolVersion":` + string(wire.Quote(versionFor(m))) + `,"capabilities":` + string(has.capabilities(era)) +
			`,"serverInfo":` + string(c.info()) + has.said())
	case wire.MethodDiscover:
		versions, _ := json.Marshal(wire.ModernVersions())
		return result(`"supportedVersions":` + string(versions) + `,"capabilities":` + string(has.capabilities(era)) + has.said())
	case wire.MethodPing, wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe:
		return result("")
	case wire.MethodToolsList:
		return result(`"tools":` + listed(has.tools))
	case wire.MethodPromptsList:
		return result(`"prompts":` + listed(has.prompts))
	case wire.MethodResourcesList:
		return result(`"resources":` + listed(has.resources))
	case wire.MethodTemplatesList:
		return result(`"resourceTemplates":[]`)
	}
	name, ok := wire.NameOf(m.Method, m.Params)
	list := map[string][]feature{wire.MethodToolsCall: has.tools, wire.MethodPromptsGet: has.prompts, wire.MethodResourcesRead: has.resources}[m.Method]
	if !ok || list == nil && m.Method != wire.MethodToolsCall {
		return fault(m.ID, wire.CodeMethodNotFound, "method not found: "+m.Method), true
	}
	i := slices.IndexFunc(list, func(f feature) bool { return f.name == name })
	if i < 0 {
		return fault(m.ID, wire.CodeInvalidParams, "there is no "+name), true
	}
	call := &Call{Method: m.Method, Name: name, Params: m.Params, Era: era, s: c, say: out.say, caps: caps}
	call.Arguments = orEmpty(wire.Get(m.Params, "arguments"))
	return call.run(ctx, m.ID, list[i].answer), true
}

// listen keeps a stateless subscription until it is cancelled.
func (c *session) listen(ctx context.Context, m wire.Message, out outlet) {
	wanted := wire.Get(m.Params, "notifications")
	meta := object("_meta", map[string]json.RawMessage{wire.MetaSubscriptionID: m.ID})
	ear := &hearer{say: func(n wire.Message) {
		if string(wire.Get(wanted, noticeOf(n.Method))) == "true" {
			n.Params = meta
			out.say(n)
		}
	}}
	out.say(wire.Message{Method: wire.NoteListenAck, Params: wire.Apply(meta, wire.Put(orEmpty(wanted), "notifications"))})
	c.hear(ear)
	defer c.unhear(ear)
	<-ctx.Done()
	if c.ctx.Err() == nil {
		out.say(wire.Message{ID: m.ID, Result: wire.Apply(meta, wire.Put(wire.Quote("complete"), "resultType"))})
	}
}

// noticeOf is how a subscription names a notification.
func noticeOf(method string) string {
	return map[string]string{
		wire.NoteToolsChanged: "toolsListChanged", wire.NotePromptsChanged: "promptsListChanged",
		wire.NoteResourcesChanged: "resourcesListChanged",
	}[method]
}

func (c *session) cancel(id string) {
	c.mu.Lock()
	cancel := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// ask sends the client a request and waits for its answer.
func (c *session) ask(ctx context.Context, say func(wire.Message), method string, params json.RawMessage) (json.RawMessage, error) {
	id, answer := c.number(), make(chan wire.Message, 1)
	c.mu.Lock()
	c.asked[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, id)
		c.mu.Unlock()
	}()
	say(wire.Message{ID: json.RawMessage(id), Method: method, Params: params})
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, errors.New(method + ": " + wire.GetText(m.Error, "message"))
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *session) answered(m wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.asked[string(m.ID)]; answer != nil {
		delete(c.asked, string(m.ID))
		answer <- m
	}
}

// close ends the session and waits for its requests.
func (c *session) close() {
	c.end()
	c.work.Wait()
}

// number is an id that no other question of the server's has.
func (s *Server) number() string { return strconv.FormatInt(s.last.Add(1), 10) }

func orEmpty(obj json.RawMessage) json.RawMessage {
	if obj == nil {
		return json.RawMessage("{}")
	}
	return obj
}
