// Package server is the MCP server with which Drawbridge serves clients, over HTTP and over stdio. It supports the
// stateful generation of the protocol (up to 2025-11-25) and the stateless generation (2026-07-28) on the same URL and
// the same pipe.
//
// Every request gets exactly one response, in the form of the caller's generation, unless the caller cancels the
// request. Params and results are passed on as the received bytes, except "resultType", caching hints, cursors and this
// server's info in "_meta". Lists of an unchanged deck are always the same bytes. A caller that reads slowly, or not at
// all, does not delay other callers and uses limited memory. A request from a foreign web page, for a foreign host name
// or without a required token is refused before its body is read.
//
// A stateful HTTP client that loses its connection can resume a stream. The request continues, and the client receives
// the events of that stream after the last event that it names. For this purpose, up to 4 MiB and 1,024 events are
// stored for each session, and up to 64 MiB for all sessions. Optional events, such as notifications, and the events of
// completely written streams are stored for about a minute. Other events are stored as long as the session exists. A
// response that is one JSON object is not stored.
//
// The package makes no decisions about tools: the deck decides which items a caller sees and may call. An idle session
// has no goroutine and no timer; a periodic sweep ends sessions that are idle for too long. Every goroutine belongs to
// a request, to Serve or to ServeStdio, which wait for it.
package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Path is the URL path at which Serve serves MCP.
const Path = "/mcp"

// DeckCalls is the part of a deck that carries out calls.
type DeckCalls interface {
	// Do carries out a request that is not a list request: tools/call, resources/read, and requests of extensions.
	Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// FindCard returns the card that a caller sees under a name.
	FindCard(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool)
}

// DeckLists is the part of a deck that lists its content.
type DeckLists interface {
	// List returns the items that a caller may see, for a list method such as "tools/list".
	List(ctx context.Context, caller drawbridge.Caller, method string) (deck.List, error)
	// ListDirect returns all tools that a caller may see, also if List returns a short list of tools.
	ListDirect(ctx context.Context, caller drawbridge.Caller) deck.List
	// CacheHint returns the caching hint for the response to a list method or server/discover.
	CacheHint(caller drawbridge.Caller, method string) drawbridge.CacheHint
	// Instructions and Capabilities return parts of the first response to a client.
	Instructions(caller drawbridge.Caller) string
	Capabilities(caller drawbridge.Caller) json.RawMessage
}

// DeckEvents is the part of a deck that reports events outside calls, such as changed lists, and controls which events
// are reported.
type DeckEvents interface {
	// OnEvent registers f, which is called with each event until cancel is called.
	OnEvent(f func(deck.Event)) (cancel func())
	// Subscribe and Unsubscribe begin and end watching resources. An error of Subscribe is a *drawbridge.UnwatchedError
	// with the URIs that could not be watched; the other URIs are watched.
	Subscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	// SetLogLevel sets the minimum level of log messages for a session.
	SetLogLevel(ctx context.Context, caller drawbridge.Caller, level string) error
	// EndSession removes the state of the caller's session.
	EndSession(caller drawbridge.Caller)
}

// A Deck provides the items that a server serves; *deck.Deck implements it.
type Deck interface {
	DeckCalls
	DeckLists
	DeckEvents
}

var _ Deck = (*deck.Deck)(nil)

// Options configure a Server. Caller is required; all other fields may be zero.
type Options struct {
	// Logger receives errors that are not returned to any caller; nil discards them.
	Logger *slog.Logger
	// Version is the version of Drawbridge that clients see.
	Version string
	// Caller is the caller on standard input, and the caller of HTTP requests with Token or without authentication. It
	// has the kind, the principal and the scopes; the server adds the data that a request or a session declares.
	Caller drawbridge.Caller
	// ClientScopes restrict Caller's scopes by the name that a client declares, which is not authenticated. The entry
	// "*" applies to clients without an entry of their own. If no entry applies to a client, it has all scopes of
	// Caller. ClientScopes do not apply to callers that the Authenticator identified.
	ClientScopes map[string][]drawbridge.Scope
	// Token is the bearer token that identifies an HTTP caller as Caller; empty means no such token.
	Token []byte
	// Authenticator identifies all other HTTP callers by their tokens; nil identifies none. If neither Token nor
	// Authenticator requires callers to authenticate, Serve accepts only loopback listeners.
	Authenticator Authenticator
	// Resource describes the HTTP endpoint to OAuth clients.
	Resource Resource
	// Origins are the web origins ("https://inspector.example") whose pages may call the HTTP endpoint, in addition to
	// the endpoint's own origin.
	Origins []string
	// SessionTimeout is how long a session may be idle before it ends; 0 means half an hour.
	SessionTimeout time.Duration
	// MaxSessions is the maximum number of stateful HTTP sessions; 0 means 4,096. If a new session would exceed it, the
	// server ends another session: of the principal with the most sessions, the session that was idle longest.
	MaxSessions int
	// MaxInProgress is the maximum number of HTTP requests in progress of one principal; streams of sessions are not
	// counted. 0 means 4,096. Further requests get the status 429. Responses and notifications are always admitted.
	MaxInProgress int
	// MaxBody is the maximum size in bytes of the body of an HTTP request; 0 means 4 MiB.
	MaxBody int64
	// PageSize is the maximum number of items on a page of a list; 0 means 1,000.
	PageSize int
	// KeepAlive is the time without output after which an HTTP response becomes an event stream, or an event stream
	// sends a comment. The output keeps the connection open. 0 means 10 seconds.
	KeepAlive time.Duration
	// Pacer limits how fast clients start calls. Servers with the same deck or the same backends should use the same
	// Pacer. Nil means a new Pacer for this server.
	Pacer *CallPacer
	// OnSession is called when a stateful session has begun, and when it has ended. It must not block. It may be nil.
	OnSession func(caller drawbridge.Caller, began bool)
}

// The defaults for Options that are zero.
const (
	defaultSessionTimeout = 30 * time.Minute
	defaultMaxSessions    = 4096
	defaultMaxInProgress  = 4096
	defaultMaxBody        = 4 << 20
	defaultPageSize       = 1000
	defaultKeepAlive      = 10 * time.Second
)

// A Server serves a deck. Its methods may be called from several goroutines.
type Server struct {
	deck Deck
	log  *slog.Logger
	o    Options
	// info is the Implementation object of this server, and token the hash of the bearer token.
	info         json.RawMessage
	token        [sha256.Size]byte
	clientScopes clientScopes

	pages       *pageCache
	sessions    sessionTable
	watchers    watcherSet
	ongoing     ongoingRequests
	postLimiter principalLimiter
	activity    activityTable
	pacer       *CallPacer
	// keptEventBytes is the total size of the stored events of all sessions. authLoggedAt is the time, in Unix
	// nanoseconds, when a failure to verify callers was last logged.
	keptEventBytes, authLoggedAt atomic.Int64

	// life is a context that ends with Close. gate admits requests until Close, which waits for the admitted requests.
	life       context.Context
	end        context.CancelFunc
	gate       closeGate
	stopEvents func()
	once       sync.Once
}

// New returns a server for a deck. It returns an error for invalid options. The server works until Close is called,
// even if ctx ends earlier.
func New(ctx context.Context, d Deck, o Options) (*Server, error) {
	switch {
	case d == nil:
		return nil, errors.New("new server: no deck")
	case o.SessionTimeout < 0 || o.MaxSessions < 0 || o.MaxInProgress < 0 || o.MaxBody < 0 || o.PageSize < 0 ||
		o.KeepAlive < 0:
		return nil, errors.New("new server: a limit is negative")
	}
	if err := o.Resource.Validate(); err != nil {
		return nil, err
	}
	o.SessionTimeout = orDefault(o.SessionTimeout, defaultSessionTimeout)
	o.MaxSessions = orDefault(o.MaxSessions, defaultMaxSessions)
	o.MaxBody = orDefault(o.MaxBody, defaultMaxBody)
	o.PageSize = orDefault(o.PageSize, defaultPageSize)
	o.KeepAlive = orDefault(o.KeepAlive, defaultKeepAlive)
	s := &Server{deck: d, log: o.Logger, o: o, info: serverInfo(o.Version), token: sha256.Sum256(o.Token),
		pages: newPageCache(), clientScopes: newClientScopes(o.Caller.Principal, o.ClientScopes)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.pacer = o.Pacer; s.pacer == nil {
		s.pacer = &CallPacer{}
	}
	s.postLimiter.max = orDefault(o.MaxInProgress, defaultMaxInProgress)
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.stopEvents = d.OnEvent(s.watchers.broadcast)
	return s, nil
}

// Close ends all streams, calls and sessions, and waits for them. Later requests are refused.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.stopEvents()
		s.end()
		for _, c := range s.sessions.removeAll() {
			s.endSession(c)
		}
		s.gate.shut()
	})
	return nil
}

func serverInfo(version string) json.RawMessage {
	if version == "" {
		version = "unknown"
	}
	info := append([]byte(`{"name":"drawbridge","title":"Drawbridge","version":`), rawjson.Quote(version)...)
	return append(info, '}')
}

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}
