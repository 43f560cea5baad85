// Package server is the one MCP server that Drawbridge presents to clients, over HTTP and over stdio. It serves the
// stateful generation of the protocol (up to 2025-11-25) and the stateless one (2026-07-28) on the same URL and the
// same pipe.
//
// It guarantees that every request is answered once unless its caller cancels it, in the form of the caller's
// generation. Params and results pass as the bytes they came in, except "resultType", caching hints, cursors and our
// name in "_meta". Lists of an unchanged deck are the same bytes. A caller that reads slowly, or not at all, delays no
// other and takes bounded memory. A request from a web page, under a foreign host name or without a required token is
// refused before its body is read.
//
// A stateful HTTP client that loses its connection can resume it within bounds: the request goes on, and the client
// gets the events after the last one it names, of that stream only. For this up to 4 MiB and 1,024 events are kept for
// a session, and up to 64 MiB for all. Events that were certainly written or are optional are kept for about a minute,
// others as long as the session. A response that is one JSON object is not kept.
//
// The package decides nothing about tools: the deck decides what a caller sees and may call. Sessions have no
// goroutine, timer or index of their own; a sweep ends idle ones. Every goroutine belongs to a request or to Serve or
// ServeStdio, which wait for it.
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

// Path is where Serve answers MCP.
const Path = "/mcp"

// DeckCalls is the part of a deck that requests go to.
type DeckCalls interface {
	// Do carries out a request that is not a list: tools/call, resources/read, and those of extensions.
	Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// FindCard returns the card that a caller knows by a name.
	FindCard(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool)
}

// DeckLists is the part of a deck that lists its content.
type DeckLists interface {
	// List returns the content of a list method for a caller.
	List(ctx context.Context, caller drawbridge.Caller, method string) (deck.List, error)
	// CacheHint returns how long the response to server/discover may be cached.
	CacheHint(caller drawbridge.Caller, method string) drawbridge.CacheHint
	// Instructions and Capabilities are part of the first response to a client.
	Instructions(caller drawbridge.Caller) string
	Capabilities(caller drawbridge.Caller) json.RawMessage
}

// DeckEvents is the part of a deck that sends events outside calls, and controls them.
type DeckEvents interface {
	// OnEvent has f called with each event until cancel is called.
	OnEvent(f func(deck.Event)) (cancel func())
	// Subscribe and Unsubscribe say which resources are watched. An error of Subscribe is a *drawbridge.UnwatchedError
	// for those of the URIs that are not.
	Subscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	// SetLogLevel sets the lowest level of log lines for a session.
	SetLogLevel(ctx context.Context, caller drawbridge.Caller, level string) error
	// EndSession removes the state of the caller's session.
	EndSession(caller drawbridge.Caller)
}

// A Deck provides the content that a server serves; *deck.Deck is one.
type Deck interface {
	DeckCalls
	DeckLists
	DeckEvents
}

var _ Deck = (*deck.Deck)(nil)

// Options configure a Server. Caller is required; the zero value of every other field works.
type Options struct {
	// Logger receives errors that no caller is told; nil discards them.
	Logger *slog.Logger
	// Version is ours, as clients are told it.
	Version string
	// Caller is the caller on standard input, and over HTTP with the Token or without authentication: kind, principal
	// and scopes. The server adds what a request or session declares.
	Caller drawbridge.Caller
	// ClientScopes restrict Caller's scopes by the name that a client declares, which is not authenticated. "*" applies
	// to clients without an entry; a client without either has all scopes. It does not apply to authenticated callers.
	ClientScopes map[string][]drawbridge.Scope
	// Token is the bearer token with which an HTTP caller is Caller.
	Token []byte
	// Authenticator proves other HTTP callers; nil proves none. Without a token and a check that is needed Serve binds
	// to loopback only.
	Authenticator Authenticator
	// Resource describes the HTTP endpoint to OAuth clients.
	Resource Resource
	// Origins are the web origins ("https://inspector.example") whose pages may call the HTTP endpoint, besides its
	// own.
	Origins []string
	// SessionTimeout is how long a session may go unused before it ends; 0 is half an hour.
	SessionTimeout time.Duration
	// MaxSessions is the most stateful HTTP sessions; 0 is 4,096. Beyond it, the session that was idle longest ends, of
	// the principal that has the most.
	MaxSessions int
	// MaxInProgress is the most HTTP requests in progress for one principal, without session streams; 0 is 4,096. One
	// more is answered with status 429. Responses and notifications are always admitted.
	MaxInProgress int
	// MaxBody is the most bytes that an HTTP request may have; 0 is 4 MiB.
	MaxBody int64
	// PageSize is the most items on a page of a list; 0 is 1,000.
	PageSize int
	// KeepAlive is after how long a silent HTTP answer becomes a stream, and shows that it is alive; 0 is 10 seconds.
	KeepAlive time.Duration
	// Pacer paces the calls of clients; servers that share their backends share one. Nil means one of its own.
	Pacer *CallPacer
	// OnSession is called when a stateful session began, and when it ended. It must not block. It may be nil.
	OnSession func(caller drawbridge.Caller, began bool)
}

// The values of Options that are zero.
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
	// info is our Implementation object, token the hash of the bearer token.
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
	// keptEventBytes counts the bytes of events kept by all sessions. authLoggedAt is when a failure to verify callers
	// was last logged.
	keptEventBytes, authLoggedAt atomic.Int64

	// life ends with Close; inside is whatever works for a caller.
	life       context.Context
	end        context.CancelFunc
	gate       closeGate
	stopEvents func()
	once       sync.Once
}

// New returns a server on a deck. The error is for invalid options. The server works until Close, even if ctx ends
// earlier.
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

// Close ends every stream, call and session, and waits for them. Requests that come later are refused.
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
