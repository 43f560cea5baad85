// Package server is the surface: the one MCP server that Drawbridge is, over HTTP and over stdio, for the stateful
// generation of the protocol (up to 2025-11-25) and the stateless one (2026-07-28) on the same URL and the same pipe.
//
// It promises that every request its caller does not cancel is answered once, in the words of the caller's own
// generation; that params and results pass as the bytes they came in, but for "resultType", caching hints, cursors and
// our name in "_meta"; that lists of an unchanged deck are the same bytes; and that a caller who reads slowly, or not
// at all, holds up nobody else and takes bounded memory. A request that a web page, a foreign host name or a missing
// token gives away is refused unread.
//
// A stateful HTTP client that loses its connection misses nothing within bounds: the request goes on, and the client
// that comes back with the id of the last event it heard gets the rest of that stream, and of no other. For that up to
// 4 MiB and 1,024 events are kept of a session, and up to 64 MiB of all; what has surely been written, or need not
// arrive, is kept for about a minute, the rest as long as the session. Nothing is kept of answers that are one JSON
// object.
//
// It decides nothing about cards: what a caller sees and may call is the deck's business. No goroutine, timer or index
// is made per session: sessions end when they are swept, and all that runs belongs to a request or to Serve and
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
	// Do carries out a request that is no list: tools/call, resources/read, and those of extensions.
	Do(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error)
	// FindCard gives the card that the caller means by name.
	FindCard(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool)
}

// DeckLists is the part of a deck that says what there is.
type DeckLists interface {
	// List gives what the caller sees by a list method.
	List(ctx context.Context, caller drawbridge.Caller, method string) (deck.List, error)
	// CacheHint says how long the answer to server/discover may be kept.
	CacheHint(caller drawbridge.Caller, method string) drawbridge.CacheHint
	// Instructions and Capabilities are what a server tells a client first.
	Instructions(caller drawbridge.Caller) string
	Capabilities(caller drawbridge.Caller) json.RawMessage
}

// DeckEvents is the part of a deck that speaks outside calls, and what decides about that.
type DeckEvents interface {
	// OnEvent has f called with each event until cancel is called.
	OnEvent(f func(deck.Event)) (cancel func())
	// Subscribe and Unsubscribe say which resources are watched. An error of Subscribe is a *drawbridge.UnwatchedError
	// for those of the URIs that are not.
	Subscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error
	// SetLogLevel says from which level on a session wants log lines.
	SetLogLevel(ctx context.Context, caller drawbridge.Caller, level string) error
	// EndSession forgets what the caller's session had.
	EndSession(caller drawbridge.Caller)
}

// A Deck is what a server stands on; *deck.Deck is one.
type Deck interface {
	DeckCalls
	DeckLists
	DeckEvents
}

var _ Deck = (*deck.Deck)(nil)

// Options are what a server can do without, but for Caller.
type Options struct {
	// Logger is told of what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	// Version is ours, as clients are told it.
	Version string
	// Caller is who calls on standard input, and over HTTP with the Token or where nobody has to prove anything: kind,
	// principal and scopes. What a request or a session says of itself is filled in.
	Caller drawbridge.Caller
	// ClientScopes say what of Caller's rights a client holds that calls itself by a name, which is its word only; "*"
	// is for all that have no part of their own, and who has none holds all. Who proved to be somebody else is not
	// meant.
	ClientScopes map[string][]drawbridge.Scope
	// Token is what HTTP callers must send as their bearer token to be Caller.
	Token []byte
	// Authenticator proves other HTTP callers; nil proves none. Without a token and a check that is needed Serve binds
	// to loopback only.
	Authenticator Authenticator
	// Resource is how OAuth clients know the HTTP door.
	Resource Resource
	// Origins are the web origins ("https://inspector.example") whose pages may call the HTTP door, besides its own.
	Origins []string
	// SessionTimeout is how long a session may go unused before it ends; 0 is half an hour.
	SessionTimeout time.Duration
	// MaxSessions is how many stateful HTTP sessions there may be; 0 is 4,096. Beyond it the one ends that was idle
	// longest, of the principal who has most.
	MaxSessions int
	// MaxInProgress is how many HTTP requests of one principal may be in progress, without the streams of sessions; 0
	// is 4,096. One more is answered with status 429; what is no request, but the answer to one, always comes in.
	MaxInProgress int
	// MaxBody is the most bytes that an HTTP request may have; 0 is 4 MiB.
	MaxBody int64
	// PageSize is the most items on a page of a list; 0 is 1,000.
	PageSize int
	// KeepAlive is after how long a silent HTTP answer becomes a stream, and shows that it is alive; 0 is 10 seconds.
	KeepAlive time.Duration
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

	pages       pageCache
	sessions    sessionTable
	watchers    watcherSet
	ongoing     ongoingRequests
	postLimiter principalLimiter
	// keptEventBytes counts the bytes that sessions keep of their streams, complained is when it was logged last that
	// callers cannot be checked.
	keptEventBytes, authLoggedAt atomic.Int64

	// life ends with Close; inside is whatever works for a caller.
	life       context.Context
	end        context.CancelFunc
	gate       closeGate
	stopEvents func()
	once       sync.Once
}

// New makes a server on a deck. The error is for options that nobody can mean. Close it when it is no longer served.
func New(d Deck, o Options) (*Server, error) {
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
		clientScopes: newClientScopes(o.Caller.Principal, o.ClientScopes)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.postLimiter.max = orDefault(o.MaxInProgress, defaultMaxInProgress)
	s.life, s.end = context.WithCancel(context.Background())
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
