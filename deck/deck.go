// Package deck is the catalogue of tools, prompts, resources and skills, and the only path of a call. It enrols the
// listings of servers, names their items, shows each caller the visible part, and sends every call through the same
// guards.
//
// It guarantees:
//
//   - What is listed can be called, for every caller and on every path. A tool that is hidden from a caller behaves,
//     in wording and in timing, like one that does not exist.
//   - Lists are the same from run to run for the same servers: ordered by the configuration, then as each server lists.
//   - Nothing is left out silently; see [Deck.ServerSummaries].
//   - Of the bytes that a server sent only names, clashing URIs, sealed request states and task ids change.
//   - Every guard must allow a call. A guard that panics or returns the zero verdict denies, and so does a missing
//     approver.
//   - Params are read once and strictly: a duplicate member, or one whose name some parsers take for another, is refused.
//   - A sealed value opens only for its principal and its use, and a request state only for its own request and while
//     it is fresh. Sealing authenticates and does not encrypt, and needs no table.
//   - A server is told about a subscription when its first caller subscribes and when its last one leaves, in order.
//
// It opens no connection and starts no process or goroutine: everything that leaves the process goes through an
// [Upstream].
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

// An Upstream sends calls to mounted servers. The deck returns its errors unchanged.
type Upstream interface {
	// Do sends the call to the server and returns the result object as the server sent it. It mounts the server first
	// if needed. An error is a *drawbridge.Fault.
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)

	// Watch replaces the set of watched items of the server by w; an empty set ends watching. The error is for the
	// items that are new in w: a *drawbridge.UnwatchedError if only some of them are not watched. After an error the
	// deck calls Watch again with the remaining set.
	Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error

	// SetLogLevel requests log messages of a level and above for the session, until the session ends. Where callers
	// share a connection, the most detailed level applies.
	SetLogLevel(ctx context.Context, session, level string) error

	// ForwardNotification sends a client's notification to the servers that have a session of their own for the
	// caller's session, if the notification concerns them.
	ForwardNotification(ctx context.Context, session, method string, params json.RawMessage)

	// EndSession closes what was opened for the session and forgets its log level.
	EndSession(session string)
}

// A NamingStyle is the style of the public names of upstream tools and prompts. A call by the name of any style works
// if only one item has it.
type NamingStyle = naming.Style

// The styles. The empty Naming is Qualified.
const (
	// QualifiedNames is "<server>__<tool>".
	QualifiedNames = naming.Qualified
	// MCPNames is "mcp_<server>_<tool>", in lower case.
	MCPNames = naming.MCP
	// BareNames keeps a legal name as the server sent it. If two servers share one, the later in configuration order is
	// qualified.
	BareNames = naming.Bare
)

// NamePrefixes returns the prefixes of the server's names in the styles QualifiedNames and MCPNames. Names of other
// servers may begin with them too.
func NamePrefixes(server drawbridge.ServerID) []string { return naming.NamePrefixes(server) }

// NewUpstreamCard returns a card for a tool of a mounted server, so that help lists it beside the shipped cards. The
// tool is called by name; definition is the tool object as the server sent it. Run sends the call under the server's
// own name.
func NewUpstreamCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) drawbridge.Card {
	return newUpstreamCard(up, server, name, definition)
}

// An AuditRecorder keeps records of calls. Package audit describes their content.
type AuditRecorder = audit.Recorder

// A HeldResult is a result that is withheld from its caller.
type HeldResult = spotlight.HeldResult

// A ResultHolder stores held results, so that a person can read them.
type ResultHolder = spotlight.ResultHolder

// A ResultGuard decides whether a result is passed on, marked, or held.
type ResultGuard = spotlight.ResultGuard

// A ResultTreatment has the settings of a server for its results.
type ResultTreatment = spotlight.ResultTreatment

// A ResultScanner examines results after they were passed on.
type ResultScanner = spotlight.ResultScanner

// A RememberedListing is the last listing that an earlier process received of a server, and the part that may be shown.
type RememberedListing struct {
	Listing drawbridge.Listing
	Vetted  VettedListing
	// Err is set if the listing could not be vetted: then nothing of the server is shown.
	Err error
}

// A Discovery configures how callers find tools.
type Discovery = toolsearch.Options

// A ListMode is a choice of the tools that are listed.
type ListMode = toolsearch.Mode

// A ModelTurn is a request to our own model.
type ModelTurn = toolsearch.Turn

// ToolDefinitions are the tools that a model is shown in one turn.
type ToolDefinitions = toolsearch.Definitions

// Options are the optional parts of a deck. The zero value works.
type Options struct {
	// Logger receives problems that no caller is told about; nil discards them.
	Logger *slog.Logger
	Naming NamingStyle
	// Journal stores enrolments and retirements in the stream Stream; nil keeps them in memory only.
	Journal ledger.Journal
	Stream  string
	// Cards are the shipped cards, listed before all others. Their names are reserved.
	Cards []drawbridge.Card
	// Tools are Drawbridge's own tools, listed last. Only the person at the command line, our own agent and callers that
	// an [OwnToolsGuard] selects see them. A server's tool that wants such a name has it.
	Tools []drawbridge.Card
	// Guards must all allow a call. The check of scopes is always the first. A [HidingGuard] also hides what it will
	// never allow.
	Guards []Guard
	// Interceptors stand around calls of tools, in this order.
	Interceptors []Interceptor
	// Audit records each call before it is sent and before it is answered. A call that cannot be recorded does not
	// happen. Nil records nothing.
	Audit AuditRecorder
	// FilterSkill returns a skill that a server listed as it may be shown, or nil to hide it. An error hides the whole
	// list. A nil FilterSkill shows skills as the server sent them.
	FilterSkill func(ctx context.Context, server Server, skill json.RawMessage) (json.RawMessage, error)
	// Approver asks a person if a guard wants that; nil denies such calls.
	Approver Approver
	// SealKeys are the master keys for values that pass through callers: request states, task ids and cursors. The
	// first key seals and every key opens, so that keys can be rotated. Processes that serve the same callers share
	// them. With none the deck makes its own.
	SealKeys [][]byte
	// Owner is the principal whose connections are watched; empty if there is only one principal. Another principal
	// cannot watch a server that is PerPrincipal.
	Owner string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Spotlight reports whether the caller's results are marked as foreign text, for servers whose configuration does
	// not decide; nil means no. Callers of our own agent always get marked results.
	Spotlight func(drawbridge.Caller) bool
	// Inspect checks the texts of such results and of prompts; nil skips the check. ResultHolder keeps held results of
	// servers with HoldResults; nil discards them.
	Inspect      spotlight.Inspector
	ResultHolder ResultHolder
	// ResultScanner examines results of servers with ScanResults after they were passed on; nil examines none.
	ResultScanner *ResultScanner
	// ScanForeignCards examines the results of a [ForeignCard] after they were passed on, too.
	ScanForeignCards bool
	// ReadTrail keeps which results each run has received; nil keeps none.
	ReadTrail *ReadTrail
	// MaxTools limits the enrolled tools of one server without a limit of its own; 0 is DefaultMaxTools.
	MaxTools int
	// Discovery decides how callers find tools that are not listed to them.
	Discovery Discovery
	// BeforeList is called before a list is answered. It may wait for servers that are about to appear, until ctx ends.
	// Nil does not wait.
	BeforeList func(ctx context.Context)
	// BeforeUnknown is called before a name is reported as unknown: the name of a tool or prompt as the caller wrote
	// it, or empty for a URI, which any server could have. It may wait for the servers that could bring it; ctx ends
	// when the name appears. It must not wait for a server that is hidden from the caller, because the delay would
	// reveal it. Nil is BeforeList.
	BeforeUnknown func(ctx context.Context, caller drawbridge.Caller, name string)
}

// DefaultMaxTools is the default limit for the enrolled tools of one server.
const DefaultMaxTools = 1000

// A Server is a configured server.
type Server struct {
	ID drawbridge.ServerID
	// ConfigHash is the hash of its configuration. Only listings and cards with this hash count.
	ConfigHash string
	// Origin is the place of its configuration. Pins are remembered by origin and name, also after an edit.
	Origin string
	// MaxTools is how many of its tools are enrolled; 0 is the deck's own limit.
	MaxTools int
	// ExpectedTools has the names of the only tools that it may have; nil allows any. LockTools pins its first list of
	// tools. FromProject reports that a project brought it, not the person.
	ExpectedTools          *[]string
	LockTools, FromProject bool
	// PerPrincipal reports that each principal has a process of its own. For any other server a principal is shown only
	// the tasks that this deck issued to that principal.
	PerPrincipal bool
	// Spotlight marks its results as foreign text for every caller, or for none; nil leaves that to the deck. See
	// package spotlight.
	Spotlight *bool
	// HoldResults holds back results in which the inspector's rules match.
	HoldResults bool
	// ScanResults examines its results after they were passed on, if the deck has a ResultScanner.
	ScanResults bool
	// Remembered is what an earlier process knew of this server, see [Deck.ListingToVet]. It is enrolled with the
	// configuration unless the deck has a listing of the same configuration already. Nil shows the cards in the ledger.
	Remembered *RememberedListing
}

// A List is the part of the catalogue that one caller sees by one list method.
type List struct {
	// Items are the objects in their order. They are shared: neither the slice nor its bytes may be changed.
	Items []json.RawMessage
	// CacheHint bounds how long the list may be cached, and by which callers.
	CacheHint drawbridge.CacheHint
	// Version identifies the content: two lists of one deck by one method with the same version have the same items.
	Version uint64
}
