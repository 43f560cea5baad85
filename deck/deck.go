// Package deck is the catalogue of tools, prompts, resources and skills, and every call goes through it. It enrols the
// listings of servers and assigns public names to their items. It shows each caller the items that are visible to the
// caller, and sends every call through the same guards.
//
// The package guarantees:
//
//   - A listed item can be called, by every caller that sees it and on every path.
//   - A call of a hidden tool has the same error text and timing as a call of a tool that does not exist.
//   - For the same servers, lists are the same in every run. Items are in configuration order, then in the order of
//     each server.
//   - Every omitted item is reported; see [Deck.ServerSummaries].
//   - In the JSON that a server sent, the deck changes only names, clashing URIs, request states, task IDs and marked
//     texts. It also removes hidden resources.
//   - Every guard must allow a call. A guard that panics or returns the zero verdict refuses the call. A call that
//     needs an approval is refused if there is no approver.
//   - Params are read once and strictly. A duplicate member is refused, and so is a name that some parsers treat as
//     another name.
//   - A sealed value can be opened only for its principal and its purpose. A request state also belongs to one request
//     and expires. Sealing authenticates a value but does not encrypt it, and needs no table.
//   - A server is notified when an item gets its first subscriber and when it loses its last one, in this order.
//
// The package opens no connections and starts no processes or goroutines. All communication with servers goes through
// an [Upstream].
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

// An Upstream sends calls to servers. The deck returns its errors unchanged.
type Upstream interface {
	// Do sends the call to the server and returns the result object as the server sent it. It connects to the server first
	// if needed. An error is a *drawbridge.Fault.
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)

	// Watch sets the items of the server that are watched to w; an empty set stops watching. The error is about the new
	// items in w. It is a *drawbridge.UnwatchedError if some of them are watched and others are not. After an error the
	// deck calls Watch again with the remaining items.
	Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error

	// SetLogLevel requests log messages of this level and above for the session, until the session ends. If several
	// callers share a connection, the most detailed of their levels applies to the connection.
	SetLogLevel(ctx context.Context, session, level string) error

	// ForwardNotification sends a client's notification to the servers that have their own session for the caller's
	// session. It omits servers that the notification does not concern.
	ForwardNotification(ctx context.Context, session, method string, params json.RawMessage)

	// EndSession closes the connections that were opened for the session, and removes its log level.
	EndSession(session string)
}

// A NamingStyle is the style of the public names of the servers' tools and prompts. A caller may also use the name of
// another style if only one item has that name.
type NamingStyle = naming.Style

// The naming styles. The empty style means QualifiedNames.
const (
	// QualifiedNames is "<server>__<tool>".
	QualifiedNames = naming.Qualified
	// MCPNames is "mcp_<server>_<tool>", in lower case.
	MCPNames = naming.MCP
	// BareNames uses the server's own name if it is valid. If two servers have the same name, the name of the later server
	// in configuration order is qualified.
	BareNames = naming.Bare
)

// NamePrefixes returns the prefixes of the server's names in the styles QualifiedNames and MCPNames. Names of other
// servers may have the same prefix.
func NamePrefixes(server drawbridge.ServerID) []string { return naming.NamePrefixes(server) }

// NewUpstreamCard returns a card for a tool of a server, so that help can list the tool together with shipped cards.
// name is the public name of the tool. definition is the tool object as the server sent it. Card.Run sends the call
// with the server's own name.
func NewUpstreamCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) drawbridge.Card {
	return newUpstreamCard(up, server, name, definition)
}

// An AuditRecorder stores records of calls. Package audit describes the records.
type AuditRecorder = audit.Recorder

// A HeldResult is a result that is withheld from its caller.
type HeldResult = spotlight.HeldResult

// A ResultHolder stores withheld results, so that a person can read them.
type ResultHolder = spotlight.ResultHolder

// A ResultGuard decides whether a result is passed on unchanged, marked, or withheld.
type ResultGuard = spotlight.ResultGuard

// A ResultTreatment is a server's settings for the treatment of its results.
type ResultTreatment = spotlight.ResultTreatment

// A ResultScanner examines results after they have been sent to the caller.
type ResultScanner = spotlight.ResultScanner

// A RememberedListing is the last listing of a server that an earlier process received.
type RememberedListing struct {
	Listing drawbridge.Listing
	Vetted  VettedListing
	// Err is set if the listing could not be vetted. Then no item of the server is shown.
	Err error
}

// A Discovery configures how callers find tools that are not in their lists.
type Discovery = toolsearch.Options

// A ListMode selects which tools are listed.
type ListMode = toolsearch.Mode

// A ModelTurn is a request to the model that Drawbridge itself runs.
type ModelTurn = toolsearch.Turn

// ToolDefinitions are the tool definitions that a model receives in one turn.
type ToolDefinitions = toolsearch.Definitions

// Options are the optional parts of a deck. The zero value works.
type Options struct {
	// Logger receives problems that are not reported to any caller; nil discards them.
	Logger *slog.Logger
	Naming NamingStyle
	// Journal stores enrolments and retirements, in the stream named Stream; nil stores them in memory only.
	Journal ledger.Journal
	Stream  string
	// Cards are the shipped cards. They are listed before all other tools, and their names are reserved.
	Cards []drawbridge.Card
	// Tools are Drawbridge's own tools, listed last. They are visible to the person at the command line, to Drawbridge's
	// own agent, and to callers that an [OwnToolsGuard] selects. If a server's tool has the same name, the server's tool
	// gets the name.
	Tools []drawbridge.Card
	// Guards must all allow a call. The deck checks the scopes of the caller before it asks the guards. A [HidingGuard]
	// also hides the items that it will never allow.
	Guards []Guard
	// Interceptors are called before each call of a tool in this order, and after the call in reverse order.
	Interceptors []Interceptor
	// Audit records each call before it is sent and before its result is returned. A call that cannot be recorded is not
	// sent. If Audit is nil, nothing is recorded.
	Audit AuditRecorder
	// FilterSkill returns the form in which a server's skill may be shown, or nil to hide the skill. An error hides the
	// whole list. If FilterSkill is nil, skills are shown as the server sent them.
	FilterSkill func(ctx context.Context, server Server, skill json.RawMessage) (json.RawMessage, error)
	// Approver asks a person if a guard requires an approval. If it is nil, such calls are refused.
	Approver Approver
	// SealKeys are the master keys for values that callers store and send back: request states, task IDs and cursors. The
	// first key seals, and every key opens, so that keys can be rotated. Processes that serve the same callers must have
	// the same keys. If there are no keys, the deck creates a random one.
	SealKeys [][]byte
	// Owner is the principal whose connections are watched; empty if there is only one principal. Other principals cannot
	// watch resources of a server that is PerPrincipal.
	Owner string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Spotlight reports whether results for the caller are marked as foreign text, for servers without such a setting. If
	// Spotlight is nil, they are not marked. Results for Drawbridge's own agent are always marked.
	Spotlight func(drawbridge.Caller) bool
	// Inspect checks the texts of marked results and of prompts; nil skips the check. ResultHolder stores withheld results
	// of servers with HoldResults; nil discards them.
	Inspect      spotlight.Inspector
	ResultHolder ResultHolder
	// ResultScanner examines results of servers with ScanResults after they have been sent to the caller; nil examines
	// none.
	ResultScanner *ResultScanner
	// ScanForeignCards makes ResultScanner also examine the results of each [ForeignCard].
	ScanForeignCards bool
	// ReadTrail stores the results that each run has received; nil stores none.
	ReadTrail *ReadTrail
	// MaxTools limits the enrolled tools of a server that has no limit of its own; 0 means DefaultMaxTools.
	MaxTools int
	// Discovery decides how callers find tools that are not listed to them.
	Discovery Discovery
	// BeforeList is called before a list is returned. It may wait, until ctx ends, for servers that are about to appear.
	// If it is nil, the deck does not wait.
	BeforeList func(ctx context.Context)
	// BeforeUnknown is called before a name is reported as unknown. name is the tool or prompt name that the caller used,
	// or empty for a URI, because any server may have the URI. BeforeUnknown may wait for the servers that may have the
	// name. ctx ends when the name appears. It must not wait for a server that is hidden from the caller, because the
	// delay would reveal that server. If it is nil, BeforeList is called instead.
	BeforeUnknown func(ctx context.Context, caller drawbridge.Caller, name string)
}

// DefaultMaxTools is the default limit for the enrolled tools of one server.
const DefaultMaxTools = 1000

// A Server is a configured server.
type Server struct {
	ID drawbridge.ServerID
	// ConfigHash is the hash of the server's configuration. Listings and cards with another hash are ignored.
	ConfigHash string
	// Origin is the location of the server's configuration. Pins are stored by origin and name, so that they stay valid
	// after an edit.
	Origin string
	// MaxTools limits the enrolled tools of the server; 0 means the limit of the deck.
	MaxTools int
	// ExpectedTools lists the only tools that the server may have; nil allows any. LockTools pins the server's first list
	// of tools. FromProject reports whether a project, and not the person, added the server.
	ExpectedTools          *[]string
	LockTools, FromProject bool
	// PerPrincipal reports whether each principal has its own process of the server. If not, a principal sees only the
	// tasks of the server that this deck issued to the principal.
	PerPrincipal bool
	// Spotlight reports whether the server's results are marked as foreign text, for every caller; nil means that the deck
	// decides. See package spotlight.
	Spotlight *bool
	// HoldResults withholds results in which the rules of the inspector match.
	HoldResults bool
	// ScanResults examines the server's results after they have been sent to the caller, if the deck has a ResultScanner.
	ScanResults bool
	// NotForScripts reports whether scripts in the sandbox may not call the server's tools.
	NotForScripts bool
	// Remembered is the listing of the server from an earlier process; see [Deck.ListingToVet]. [Deck.Configure] enrols
	// it, unless the deck already has a listing for the same configuration. If it is nil, the cards in the ledger are
	// shown.
	Remembered *RememberedListing
}

// A List is the part of the catalogue that one caller sees with one list method.
type List struct {
	// Items are the listed objects in order. The slice and its bytes are shared and must not be changed.
	Items []json.RawMessage
	// CacheHint is how long the list may be cached, and whether callers may share the cached list.
	CacheHint drawbridge.CacheHint
	// Version identifies the content. Two lists of the same deck and method with the same version have the same items.
	Version uint64
}
