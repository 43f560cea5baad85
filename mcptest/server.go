package mcptest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// awaitTimeout is how long Await waits. It is longer than a working server needs.
const awaitTimeout = 30 * time.Second

// A Server is an MCP server that runs until its test ends. Its methods may be called from several goroutines.
type Server struct {
	t    testing.TB
	deed serverMisbehaviour
	last atomic.Int64

	// ctx ends with the server. work counts its connections.
	ctx  context.Context
	end  context.CancelFunc
	work sync.WaitGroup
	// processListener accepts the connections of processes that the configuration of Stdio starts. token authenticates
	// these processes. web is the server over HTTP.
	processListener net.Listener
	token           string
	web             *httptest.Server

	mu       sync.Mutex
	features serverFeatures
	requests []Request
	changed  chan struct{} // closed and replaced with each change
	sinks    map[*notificationSink]bool
	sessions map[string]*serverSession // HTTP sessions by ID
	conns    map[net.Conn]bool         // connections of processes
	// lives counts the processes that have connected so far. running counts the processes that are connected now.
	// children counts the processes that they have forked and that are connected now.
	lives, running, children int
}

// A Request is a message that a server received: a request or a notification.
type Request struct {
	// Method is the method of the message. Name is the name of its tool or prompt, or the URI of its resource; it is
	// empty for other messages.
	Method, Name string
	Params       json.RawMessage
}

// A notificationSink is a connection of a client to which Notify sends notifications outside of a request.
type notificationSink struct{ say func(mcp.Message) }

// NewServer returns a server of the given parts, which runs until the test ends. It speaks both generations unless a
// part is an OnlyEra.
func NewServer(t testing.TB, parts ...ServerPart) *Server {
	t.Helper()
	return startServer(t, serverMisbehaviour{}, parts)
}

func startServer(t testing.TB, does serverMisbehaviour, parts []ServerPart) *Server {
	t.Helper()
	refuseInside()
	s := &Server{
		t: t, deed: does, token: rand.Text(), changed: make(chan struct{}), sinks: map[*notificationSink]bool{},
		sessions: map[string]*serverSession{}, conns: map[net.Conn]bool{},
		features: serverFeatures{eras: drawbridge.Legacy | drawbridge.Modern},
	}
	s.ctx, s.end = context.WithCancel(context.WithoutCancel(t.Context()))
	for _, p := range parts {
		p.addTo(&s.features)
	}
	var err error
	if s.processListener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal("fakemcp:", err)
	}
	s.web = httptest.NewServer(http.HandlerFunc(s.serveHTTP))
	s.work.Go(s.acceptProcesses)
	t.Cleanup(s.stop)
	return s
}

// stop ends the server and waits until its connections have ended.
func (s *Server) stop() {
	s.end()
	_ = s.processListener.Close()
	s.Crash()
	s.web.CloseClientConnections()
	s.web.Close()
	s.work.Wait()
}

// pause waits for the duration d, and reports whether the server still runs.
func (s *Server) pause(d time.Duration) bool {
	if d == 0 {
		return s.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// Stdio returns the configuration with which Drawbridge starts the server as a process with the name id. The process is
// the test binary, whose TestMain must call RunIfServer.
func (s *Server) Stdio(id drawbridge.ServerID) config.Server {
	command, env := s.Command()
	row := config.Server{ID: id, Command: command, Args: []string{}}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		row.Env = append(row.Env, config.NameValue{Name: name, Value: value})
	}
	return row
}

// HTTP returns the configuration with which Drawbridge reaches the server at its URL, under the name id.
func (s *Server) HTTP(id drawbridge.ServerID) config.Server {
	return config.Server{ID: id, Type: "http", URL: s.URL()}
}

// URL returns the URL of the server over Streamable HTTP, on the loopback interface.
func (s *Server) URL() string { return s.web.URL + "/mcp" }

// AddParts adds parts to the server; a part replaces an earlier part of the same kind and name. AddParts then notifies
// every client that its lists have changed.
func (s *Server) AddParts(parts ...ServerPart) {
	s.mu.Lock()
	for _, p := range parts {
		p.addTo(&s.features)
	}
	s.mu.Unlock()
	s.announceLists()
}

// RemoveFeatures removes the tools, prompts and resources with the given names and URIs. It then notifies every client
// that its lists have changed.
func (s *Server) RemoveFeatures(names ...string) {
	s.mu.Lock()
	for _, list := range []*[]listedFeature{&s.features.tools, &s.features.prompts, &s.features.resources} {
		*list = slices.DeleteFunc(*list, func(f listedFeature) bool { return slices.Contains(names, f.name) })
	}
	s.mu.Unlock()
	s.announceLists()
}

func (s *Server) announceLists() {
	for _, method := range []string{mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged} {
		s.Notify(method, nil)
	}
}

// Notify sends every connected client a notification outside of a request. A client without a session receives only
// list changes to which it has subscribed.
func (s *Server) Notify(method string, params json.RawMessage) {
	s.mu.Lock()
	hearers := make([]*notificationSink, 0, len(s.sinks))
	for h := range s.sinks {
		hearers = append(hearers, h)
	}
	s.mu.Unlock()
	for _, h := range hearers {
		h.say(mcp.Message{Method: method, Params: params})
	}
}

// Crash closes the connections of all processes of the server without a message, so that they exit. It also deletes all
// HTTP sessions.
func (s *Server) Crash() {
	s.mu.Lock()
	sessions, conns := s.sessions, s.conns
	s.sessions, s.conns = map[string]*serverSession{}, map[net.Conn]bool{}
	s.mu.Unlock()
	for conn := range conns {
		_ = conn.Close()
	}
	for _, c := range sessions {
		c.close()
	}
}

// Requests returns the requests and notifications that the server has received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Await waits until the server has received n messages with the given method, and returns these messages. The test
// fails if they do not arrive within half a minute. Await must be called from the goroutine of the test.
func (s *Server) Await(method string, n int) []Request {
	s.t.Helper()
	late := time.NewTimer(awaitTimeout)
	defer late.Stop()
	for {
		s.mu.Lock()
		all, news := slices.Clone(s.requests), s.changed
		s.mu.Unlock()
		all = slices.DeleteFunc(all, func(r Request) bool { return r.Method != method })
		if len(all) >= n {
			return all
		}
		select {
		case <-news:
		case <-late.C:
			s.t.Fatalf("fakemcp: %d of %d messages %s have come", len(all), n, method)
		}
	}
}

// Started returns the number of processes that were started so far.
func (s *Server) Started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives
}

// AwaitProcesses waits until exactly n processes of the server are connected, including processes that they forked. The
// test fails if this takes longer than half a minute. AwaitProcesses must be called from the goroutine of the test.
func (s *Server) AwaitProcesses(n int) {
	s.t.Helper()
	late := time.NewTimer(awaitTimeout)
	defer late.Stop()
	for {
		s.mu.Lock()
		there, news := s.running+s.children, s.changed
		s.mu.Unlock()
		if there == n {
			return
		}
		select {
		case <-news:
		case <-late.C:
			s.t.Fatalf("fakemcp: there are %d processes, want %d", there, n)
		}
	}
}

// count adds by to a counter that tests wait for.
func (s *Server) count(number *int, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*number += by
	s.wake()
}

// wake wakes the goroutines that wait for a change. The caller holds the mutex.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) recordRequest(m mcp.Message) {
	if m.Method == "" {
		return
	}
	name, _ := mcp.TargetName(m.Method, m.Params)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{m.Method, name, m.Params})
	s.wake()
}

func (s *Server) addSink(h *notificationSink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sinks[h] = true
}

func (s *Server) removeSink(h *notificationSink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sinks, h)
}

// currentFeatures returns a copy of the server's current features.
func (s *Server) currentFeatures() serverFeatures {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.features
	f.tools, f.prompts, f.resources = slices.Clone(f.tools), slices.Clone(f.prompts), slices.Clone(f.resources)
	return f
}

func (f serverFeatures) capabilities(era drawbridge.ProtocolEra) json.RawMessage {
	caps := map[string]any{"tools": map[string]bool{"listChanged": true}}
	if len(f.prompts) > 0 {
		caps["prompts"] = map[string]bool{"listChanged": true}
	}
	if len(f.resources) > 0 {
		caps["resources"] = map[string]bool{"listChanged": true}
	}
	if era == drawbridge.Legacy {
		caps["logging"] = struct{}{}
	}
	all, _ := json.Marshal(caps)
	return all
}

// instructionsMember returns the JSON member with the instructions, or "" if there are none.
func (f serverFeatures) instructionsMember() string {
	if f.instructions == "" {
		return ""
	}
	return `,"instructions":` + string(rawjson.Quote(f.instructions))
}

func joinDefinitions(list []listedFeature) string {
	all := make([]string, 0, len(list))
	for _, f := range list {
		all = append(all, string(f.definition))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// versionFor returns the version that the client requested if it is a stateful one, else the first of LegacyVersions.
func versionFor(m mcp.Message) string {
	if v := rawjson.GetString(m.Params, "protocolVersion"); slices.Contains(mcp.LegacyVersions(), v) {
		return v
	}
	return mcp.LegacyVersions()[0]
}

func (s *Server) info() json.RawMessage { return jsonObject("name", "fakemcp", "version", "1.0.0") }

// complete returns a result with the given members, in the form of the given generation. In the stateless generation,
// it adds the members that every result must have.
func (s *Server) complete(era drawbridge.ProtocolEra, method, members string) json.RawMessage {
	if era == drawbridge.Legacy {
		return json.RawMessage("{" + members + "}")
	}
	if members != "" {
		members = "," + members
	}
	switch method {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
	default:
		members += `,"ttlMs":0,"cacheScope":"private"`
	}
	return json.RawMessage(`{"resultType":"complete"` + members + `,"_meta":{"` + mcp.MetaServerInfo + `":` +
		string(s.info()) + `}}`)
}
