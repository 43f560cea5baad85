// Package deck is the one place where calls and cards meet: it enrols what servers list, names it, shows each caller
// the part that is theirs, and carries every call to its card through the same guards.
//
// It promises that what is listed is what can be called, for every caller and on every path: a card that a caller may
// not know of is, in words and in time, a card that does not exist. It promises that lists are the same from run to run
// for the same servers, ordered by the configuration and then by each server; that nothing vanishes silently (see
// [Deck.Members]); and that of the bytes a server sent only names, clashing URIs, the sealed request state and ids of
// tasks change.
//
// It opens no connection and starts no process or goroutine: what leaves the process goes through an [Upstream].
package deck

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/spotlight"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// An Upstream carries calls to mounted servers. Its errors are passed on as they are.
type Upstream interface {
	// Do sends the call to the server and gives its result object as the server sent it. It mounts the server first
	// where it must. An error is a *drawbridge.Fault.
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)

	// Watch says what of the server is watched: w is all of it, none ends it. The error is for what is new in w: a
	// *drawbridge.UnwatchedError where some of that is not watched. After an error it is told what is left.
	Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error

	// SetLogLevel asks for log lines of a level and above, for the caller with that session, until the session ends.
	// What callers share is asked for the most that any of them wants.
	SetLogLevel(ctx context.Context, session, level string) error

	// ForwardNotification passes a notification on to the servers that have a session of their own for the caller with
	// that session, and that it is for.
	ForwardNotification(ctx context.Context, session, method string, params json.RawMessage)

	// EndSession closes what was opened for the caller with that session, and forgets its level.
	EndSession(session string)
}

// A NamingStyle is a style in which bridged cards and prompts are named outward. A call by any style's name finds its
// card where only one can be meant.
type NamingStyle = naming.Style

// The styles. The empty Naming is Qualified.
const (
	// QualifiedNames is "<server>__<tool>".
	QualifiedNames = naming.Qualified
	// MCPNames is "mcp_<server>_<tool>", in lower case.
	MCPNames = naming.MCP
	// BareNames leaves a legal name as the server gave it; of two the later in configuration order is qualified.
	BareNames = naming.Bare
)

// NamePrefixes gives what a name of a server's card begins with where it says its server, in the styles Qualified and
// MCPNames. The names of other servers may begin with one of them too.
func NamePrefixes(server drawbridge.ServerID) []string { return naming.NamePrefixes(server) }

// NewUpstreamCard presents a tool of a mounted server as a card, so that it shows in help beside the shipped ones:
// name is what it is listed and called by, definition the tool object as the server sent it. Its Run passes the call
// on under the tool's own name.
func NewUpstreamCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) drawbridge.Card {
	return newUpstreamCard(up, server, name, definition)
}

// An AuditRecorder keeps records of calls. See package audit for what is in them.
type AuditRecorder = audit.Recorder

// A HeldResult is a result that its caller is not given, a ResultHolder keeps them for a person, and at a ResultGuard
// it is decided.
type (
	HeldResult   = spotlight.HeldResult
	ResultHolder = spotlight.ResultHolder
	ResultGuard  = spotlight.ResultGuard
)

// A RememberedListing is the last listing that an earlier process received of a server, and the part that may be shown.
type RememberedListing struct {
	Listing drawbridge.Listing
	Vetted  VettedListing
	// Err is set if the listing could not be vetted: then nothing of the server is shown.
	Err error
}

// A Discovery says how callers find cards, its Mode what they are listed. A Turn is what a model of our own is asked,
// Definitions what it is shown then.
type (
	Discovery       = toolsearch.Options
	ListMode        = toolsearch.Mode
	ModelTurn       = toolsearch.Turn
	ToolDefinitions = toolsearch.Definitions
)

// Options are what a deck can do without. The zero value works.
type Options struct {
	// Logger is told of what went wrong and nobody else hears of; nil is silence.
	Logger *slog.Logger
	Naming NamingStyle
	// Journal keeps what was enrolled and retired, in its stream Stream; nil keeps it in memory only.
	Journal ledger.Journal
	Stream  string
	// Cards are the shipped cards, listed before all others. Their names are never given to another card.
	Cards []drawbridge.Card
	// Guards all must allow a call. The check of scopes is always the first. A guard may be a
	// Screen: what it knows that no call of a caller will be allowed to is hidden from them.
	Guards []Guard
	// Audit keeps a record of each call, before it is sent and before it is answered: what it cannot keep does not
	// happen. Nil keeps none.
	Audit AuditRecorder
	// FilterSkill returns a skill that a server listed as it may be shown, or nil to hide it. An error hides the whole
	// list. A nil FilterSkill shows skills as the server sent them.
	FilterSkill func(ctx context.Context, server Server, skill json.RawMessage) (json.RawMessage, error)
	// Approver is asked where guards want a person asked; nil is nobody, which means no.
	Approver Approver
	// SealKeys are master keys for what passes through callers: request states, ids of tasks and cursors. The first one
	// makes them, all recognise them, so that a new key can take the place of an old one. Processes that answer for one
	// another share them. None means a key of this deck alone.
	SealKeys [][]byte
	// Owner is the principal whose connections Watch is about; empty where there is only one. Another principal cannot
	// watch a server that is Apart.
	Owner string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Spotlight says which callers are given results marked as foreign text, of servers whose Member does not say; nil
	// is none. Models of our own are given them in any case.
	Spotlight func(drawbridge.Caller) bool
	// Inspect looks at the texts of such results, and of prompts; nil leaves them as they are. Holder keeps results
	// that are held back, of servers whose Member says so; nil loses them.
	Inspect      spotlight.Inspector
	ResultHolder ResultHolder
	// MaxTools is how many tools of one server are enrolled where its Member does not say; 0 is DefaultMaxTools.
	MaxTools int
	// Discovery says how callers find cards that they are not listed.
	Discovery Discovery
	// BeforeList is called before a list is answered: it may wait for servers that are about to appear, as long as ctx
	// allows. Nil waits for nothing.
	BeforeList func(ctx context.Context)
	// BeforeUnknown is called before the name of a tool or a prompt, as the caller wrote it, is said to be unknown,
	// and with no name before a URI is, which any server could have: it may wait for the servers that could bring it,
	// as long as ctx allows, which ends when it is there. It must not wait for a server that the caller may not know
	// of: how long an answer takes would tell. Nil is BeforeList.
	BeforeUnknown func(ctx context.Context, caller drawbridge.Caller, name string)
}

// DefaultMaxTools is how many tools of one server are enrolled where nobody says otherwise.
const DefaultMaxTools = 1000

// A Server is a server as the configuration has it.
type Server struct {
	ID drawbridge.ServerID
	// ConfigHash is the hash of its configuration: only listings and cards of this row count.
	ConfigHash string
	// Origin says where its row stands: what its tools said is remembered by that and the name, also when the row is
	// edited.
	Origin string
	// MaxTools is how many of its tools are enrolled; 0 is the deck's own limit.
	MaxTools int
	// ExpectedTools has the names of the only tools that it may have; nil is any. Locked keeps its first list of
	// tools. Foreign says that it was brought by a project, not by the person.
	ExpectedTools          *[]string
	LockTools, FromProject bool
	// PerPrincipal says that no two principals meet at this server: each has a process of its own. Of a server that is
	// not apart a principal is shown only tasks that this deck gave them.
	PerPrincipal bool
	// Spotlight says that its results are marked as foreign text for every caller, or for none; nil leaves it to the
	// deck. See package deck/fence.
	Spotlight *bool
	// HoldResults says that its results are held back in which Look meets rules.
	HoldResults bool
	// Remembered is what an earlier process knew of this server, see [Deck.ListingToVet]. It is enrolled with the
	// configuration unless the deck has a listing of the same configuration already. Nil shows the cards in the ledger.
	Remembered *RememberedListing
}

// A List is what one caller sees of the deck by one list method.
type List struct {
	// Items are the objects in their order. They are shared: neither the slice nor its bytes may be changed.
	Items []json.RawMessage
	// CacheHint says how long the list may be kept, and by whom.
	CacheHint drawbridge.CacheHint
	// Version tells lists apart: two lists of one deck by one method with the same version have the same items.
	Version uint64
}
