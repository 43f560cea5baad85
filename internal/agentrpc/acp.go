package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/agent"
)

// acpVersion is the version of the Agent Client Protocol.
const acpVersion = 1

// An acpServer is one connection of an editor.
type acpServer struct {
	*connection
	host    Host
	version string
	// work are the goroutines that hold sessions and close them. ServeACP waits for them.
	work   sync.WaitGroup
	models modelList

	// mu guards the fields below. sessions are those that are open, by their IDs. asked are the requests to the client
	// that have no response yet.
	mu          sync.Mutex
	initialized bool
	able        clientAbilities
	sessions    map[string]*acpSession
	asked       map[string]chan message
	lastID      int64
}

// ServeACP speaks the Agent Client Protocol with the program at the other end of p. It returns when that program or ctx
// ends, after all sessions are closed. version is that of this program.
func ServeACP(ctx context.Context, p Pipes, host Host, version string) error {
	s := &acpServer{connection: connect(ctx, p), host: host, version: version, sessions: map[string]*acpSession{},
		asked: map[string]chan message{}, models: modelList{ready: make(chan struct{})}}
	defer s.close()
	defer s.work.Wait()
	defer s.end(errClientGone)
	for {
		select {
		case <-s.ctx.Done():
			return clientEnd(ctx)
		case m, ok := <-s.in:
			if !ok {
				return clientEnd(ctx)
			}
			s.receive(m)
		}
	}
}

// clientEnd returns the error of a connection that ended: that the client has ended is none.
func clientEnd(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// receive handles one message. What takes long runs in a goroutine.
func (s *acpServer) receive(m incoming) {
	switch {
	case m.problem != nil:
		id := m.ID
		if id == nil {
			id = json.RawMessage("null")
		}
		s.respond(id, nil, m.problem)
	case m.isResponse():
		s.deliver(m.message)
	default:
		result, problem, later := s.dispatch(m.message)
		if !later {
			s.respond(m.ID, result, problem)
		}
	}
}

// dispatch handles a request or a notification. later is true if the response is sent by another goroutine.
func (s *acpServer) dispatch(m message) (result any, problem *rpcError, later bool) {
	s.mu.Lock()
	ready := s.initialized
	s.mu.Unlock()
	if !ready && m.Method != "initialize" {
		return nil, &rpcError{Code: codeRequest, Message: "the first request is initialize"}, false
	}
	var p acpParams
	if problem = decodeParams(m.Params, &p); problem != nil {
		return nil, problem, false
	}
	switch m.Method {
	case "initialize":
		return s.initialize(readAbilities(m.Params)), nil, false
	case "session/new", "session/load", "session/resume":
		problem = s.open(m, p)
		return nil, problem, problem == nil
	case "session/prompt":
		problem = s.prompt(m.ID, p)
		return nil, problem, problem == nil
	case "session/cancel":
		if session := s.session(p.Session); session != nil {
			session.cancel()
		}
		return struct{}{}, nil, false
	case "session/set_mode":
		problem = s.setMode(p)
		return struct{}{}, problem, false
	case "session/list":
		problem = s.listSessions(m.ID, p)
		return nil, problem, problem == nil
	case "session/set_config_option":
		problem = s.setOption(m.ID, p)
		return nil, problem, problem == nil
	case "$/cancel_request":
		s.cancelRequest(p.Request)
		return struct{}{}, nil, false
	case "session/close":
		problem = s.closeSession(m.ID, p.Session)
		return nil, problem, problem == nil
	}
	return nil, unknownMethod(m.Method), false
}

// acpParams are the params of all requests of the client.
type acpParams struct {
	Session string          `json:"sessionId"`
	Dir     string          `json:"cwd"`
	Servers []acpMCPServer  `json:"mcpServers"`
	Mode    string          `json:"modeId"`
	Prompt  []contentBlock  `json:"prompt"`
	Cursor  string          `json:"cursor"`
	Option  string          `json:"configId"`
	Value   json.RawMessage `json:"value"`
	Request json.RawMessage `json:"requestId"`
}

// initialize returns what this agent can do.
func (s *acpServer) initialize(able clientAbilities) any {
	s.mu.Lock()
	s.initialized, s.able = true, able
	s.mu.Unlock()
	s.models.once.Do(func() { s.work.Go(s.loadModels) })
	type none struct{}
	return map[string]any{
		"protocolVersion": acpVersion,
		"agentCapabilities": map[string]any{
			"loadSession":         true,
			"promptCapabilities":  map[string]bool{"image": true, "audio": false, "embeddedContext": true},
			"mcpCapabilities":     map[string]bool{"http": false, "sse": false},
			"sessionCapabilities": map[string]any{"close": none{}, "list": none{}, "resume": none{}},
		},
		"authMethods": []none{},
		"agentInfo":   map[string]string{"name": "drawbridge", "title": "Drawbridge", "version": s.version},
	}
}

// abilities returns the optional features of the client.
func (s *acpServer) abilities() clientAbilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.able
}

// session returns an open session; nil if there is none.
func (s *acpServer) session(id string) *acpSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// sessionNotFound is the error for a session that is not open.
func sessionNotFound() *rpcError {
	return &rpcError{Code: codeNotFound, Message: "the session is not open in this connection: load or resume it first"}
}

// open opens a session, in a goroutine that holds it until it is closed.
func (s *acpServer) open(m message, p acpParams) *rpcError {
	switch fresh := m.Method == "session/new"; {
	case m.ID == nil:
		return invalidParams("a session is opened by a request with an id")
	case !filepath.IsAbs(p.Dir):
		return invalidParams("cwd is not an absolute path")
	case fresh:
		p.Session = ""
	case p.Session == "":
		return invalidParams("sessionId is missing")
	case s.session(p.Session) != nil:
		return &rpcError{Code: codeRequest, Message: "the session is open in this connection already"}
	}
	servers, problem := clientServers(p.Servers)
	if problem != nil {
		return problem
	}
	able := s.abilities()
	opening := Opening{Dir: p.Dir, Session: p.Session, Servers: servers, Elicitation: able.form || able.url}
	s.work.Go(func() {
		answered, closed := false, make(chan struct{})
		defer close(closed)
		err := s.host.Hold(s.ctx, opening, func(ctx context.Context, o Opened) error {
			session, problem := s.register(newACPSession(ctx, s, o, p.Dir, closed))
			if problem != nil {
				return problem
			}
			defer s.unregister(session)
			if m.Method == "session/load" {
				if err := session.replay(ctx); err != nil {
					return err
				}
			}
			complete := session.awaitModels()
			s.respond(m.ID, session.opened(m.Method == "session/new"), nil)
			answered = true
			session.sendSessionState(o.Notices)
			if !complete {
				session.showModels()
			}
			<-session.ctx.Done()
			return nil
		})
		if !answered {
			s.respond(m.ID, nil, openProblem(err))
		}
	})
	return nil
}

// An acpMCPServer is an MCP server as the client sends it. Without a type, it is a program.
type acpMCPServer struct {
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Command string     `json:"command"`
	Args    []string   `json:"args"`
	Env     []Variable `json:"env"`
	URL     string     `json:"url"`
	Headers []Variable `json:"headers"`
}

// clientServers returns the MCP servers of a client. Errors name no values, which may be secret.
func clientServers(all []acpMCPServer) (servers []ClientServer, problem *rpcError) {
	for i, m := range all {
		c := ClientServer{Name: m.Name, Transport: m.Type}
		switch m.Type {
		case "", "stdio":
			c.Transport, c.Command, c.Args, c.Env = "stdio", m.Command, m.Args, m.Env
		case "http", "sse":
			c.URL, c.Headers = m.URL, m.Headers
		}
		if c.Name == "" || c.Command == "" && c.URL == "" {
			return nil, invalidParams(fmt.Sprintf(
				"entry %d of mcpServers needs a name, and a command or a type (http or sse) with a url", i+1))
		}
		servers = append(servers, c)
	}
	return servers, nil
}

// openProblem returns the error of a session that was not opened.
func openProblem(err error) *rpcError {
	if problem, ok := errors.AsType[*rpcError](err); ok {
		return problem
	}
	if err == nil {
		err = errClientGone
	}
	return &rpcError{Code: codeInternal, Message: err.Error()}
}

// register adds an open session.
func (s *acpServer) register(session *acpSession) (*acpSession, *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[session.id] != nil {
		session.stop()
		return nil, &rpcError{Code: codeRequest, Message: "the session is open in this connection already"}
	}
	s.sessions[session.id] = session
	return session, nil
}

// unregister removes a session and waits for its runs.
func (s *acpServer) unregister(session *acpSession) {
	s.mu.Lock()
	delete(s.sessions, session.id)
	s.mu.Unlock()
	session.end()
}

// closeSession closes a session and responds when the host has closed it.
func (s *acpServer) closeSession(id json.RawMessage, name string) *rpcError {
	session := s.session(name)
	if session == nil {
		return sessionNotFound()
	}
	session.stop()
	s.work.Go(func() {
		<-session.closed
		s.respond(id, struct{}{}, nil)
	})
	return nil
}

// setMode changes the permission mode of a session.
func (s *acpServer) setMode(p acpParams) *rpcError {
	session := s.session(p.Session)
	if session == nil {
		return sessionNotFound()
	}
	if err := session.agent.SetMode(session.ctx, agent.PermissionMode(p.Mode)); err != nil {
		return invalidParams(err.Error())
	}
	session.update(sessionUpdate{Update: "current_mode_update", Mode: p.Mode})
	session.update(sessionUpdate{Update: "config_option_update", Options: session.options()})
	return nil
}

// cancelRequest cancels the prompt of a request. Other requests are not cancelled.
func (s *acpServer) cancelRequest(id json.RawMessage) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	for _, session := range all {
		session.cancelRequest(id)
	}
}

// prompt runs a prompt in a goroutine of its session.
func (s *acpServer) prompt(id json.RawMessage, p acpParams) *rpcError {
	session := s.session(p.Session)
	if session == nil {
		return sessionNotFound()
	}
	parts, problem := promptParts(p.Prompt)
	if problem != nil {
		return problem
	}
	return session.start(id, parts)
}

// request sends a request to the client and waits for its result.
func (s *acpServer) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	s.mu.Lock()
	s.lastID++
	id := s.lastID
	key := strconv.FormatInt(id, 10)
	s.asked[key] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, key)
		s.mu.Unlock()
	}()
	s.send(notification{"2.0", id, method, params})
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// deliver passes a response on to the request that waits for it. Others are dropped.
func (s *acpServer) deliver(m message) {
	s.mu.Lock()
	answer := s.asked[string(m.ID)]
	delete(s.asked, string(m.ID))
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}
