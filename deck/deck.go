// Package deck contains the tools, prompts, resources and skills of all servers, and handles every call of them. It
// enrols the listings of servers, and assigns a public name to each item. It returns to each caller only the items that
// this caller may see. Before it sends a call, it asks the guards whether the call is allowed.
//
// The package guarantees:
//
//   - A caller that can list an item can also call it, unless a guard refuses the particular call.
//   - A call of a hidden tool gets the same error after the same time as a call of a tool that does not exist. So a
//     caller cannot find out that the tool exists.
//   - For the same servers, lists are the same after every start. Servers are in configuration order, and the items of
//     a server are in the server's order.
//   - Every item of a server that is not on the deck is reported with the reason; see [Deck.ServerSummaries].
//   - In the JSON that a server sent, the deck changes only names, clashing URIs, request states, task IDs and marked
//     texts. It also removes resources that are hidden from the caller. All other bytes reach the caller unchanged.
//   - Every guard must allow a call. A guard that panics or returns the zero verdict refuses the call. A call that
//     needs an approval is refused without an approver.
//   - The deck refuses params that parsers may read differently. Examples are a duplicate member, and a member name
//     that some parsers treat as another name.
//   - Values that callers store and send back, such as task IDs, are sealed with a MAC. The deck accepts such a value
//     only from its principal and for its purpose. A request state is also bound to one request, and expires. Sealed
//     values are authenticated, but not encrypted. The deck stores no table of them.
//   - A server gets a new set of watched items when one of its items gets its first subscriber or loses its last
//     subscriber. These updates are sent in the order in which the subscriptions changed.
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
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// An Upstream sends calls to servers. Its errors are returned to the caller unchanged, unless a result filter marks or
// withholds their texts.
type Upstream interface {
	// Do sends the call to the server and returns the result object as the server sent it. It connects to the server first
	// if needed. An error is a *drawbridge.Fault.
	Do(ctx context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error)

	// Watch replaces the set of watched items of the server with w; an empty set stops watching. The error reports that
	// items in w that were not watched before could not be watched. If only some of them failed, it is a
	// *drawbridge.UnwatchedError. After an error the deck calls Watch again without the failed items.
	Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.WatchSet) error

	// SetLogLevel requests from the servers log messages of this level and above for the session, until the session
	// ends. If several sessions share a connection to a server, the most detailed of their levels applies to the
	// connection.
	SetLogLevel(ctx context.Context, session, level string) error

	// ForwardNotification sends a client's notification to servers. It sends it only to servers to which a connection
	// was opened for this session alone, and that the notification concerns.
	ForwardNotification(ctx context.Context, session, method string, params json.RawMessage)

	// EndSession closes the connections that were opened for this session alone, and removes the session's log level.
	EndSession(session string)
}

// A NamingStyle is the style of the public names of the servers' tools and prompts. In a call, the name of another
// style is accepted too, if only one item that is visible to the caller has that name.
type NamingStyle = naming.Style

// The naming styles. The empty style means QualifiedNames.
const (
	// QualifiedNames are names of the form "<server>__<tool>".
	QualifiedNames = naming.Qualified
	// MCPNames are names of the form "mcp_<server>_<tool>", in lower case.
	MCPNames = naming.MCP
	// BareNames are the servers' own names of the items. A name that is invalid, or that an earlier server in
	// configuration order already has, is qualified.
	BareNames = naming.Bare
)

// NamePrefixes returns the prefixes of the public names of the server's items in the styles QualifiedNames and
// MCPNames. Names of another server's items may begin with the same prefix.
func NamePrefixes(server drawbridge.ServerID) []string { return naming.NamePrefixes(server) }

// NewUpstreamCard returns a card for a tool of a server, so that the help command can list it together with shipped
// cards. name is the public name of the tool. definition is the tool object as the server sent it. The card's Run
// method sends the call with the server's own name of the tool.
func NewUpstreamCard(up Upstream, server drawbridge.ServerID, name drawbridge.CardName,
	definition json.RawMessage) drawbridge.Card {
	return newUpstreamCard(up, server, name, definition)
}

// An AuditRecorder stores records of calls. Package audit describes the records.
type AuditRecorder = audit.Recorder

// A RememberedListing is the last listing of a server from an earlier process. The deck uses it until the server has
// sent a new listing.
type RememberedListing struct {
	Listing drawbridge.Listing
	Vetted  VettedListing
	// Err is set if the listing could not be vetted. Then the deck shows no item of the server.
	Err error
}

// A Discovery configures which tools are listed, and how callers search for the other tools.
type Discovery = toolsearch.Options

// A ListMode determines whether tools/list returns all tools, or a short list and tools for a search.
type ListMode = toolsearch.Mode

// A ModelTurn is one request to a model by Drawbridge's own agent.
type ModelTurn = toolsearch.Turn

// ToolDefinitions are the tool definitions that a model receives in one turn.
type ToolDefinitions = toolsearch.Definitions

// Options are the optional parts of a deck. The zero value works.
type Options struct {
	// Logger receives problems that are not reported to any caller; nil discards them.
	Logger *slog.Logger
	Naming NamingStyle
	// Journal stores the enrolments and retirements of tools, in the stream named Stream. If it is nil, they are stored
	// in memory only.
	Journal ledger.Journal
	Stream  string
	// Cards are the shipped cards. They are listed before all other tools, and their names are reserved.
	Cards []drawbridge.Card
	// Tools are Drawbridge's own tools, listed last. They are visible to the person at the command line, to
	// Drawbridge's own agent, and to callers that an [OwnToolsGuard] selects. If a server's tool has the name of one of
	// Tools, the server's tool is listed under that name.
	Tools []drawbridge.Card
	// Guards decide on calls; all of them must allow a call. Before it asks them, the deck checks the scopes of the
	// caller. A [HidingGuard] also hides items from callers that are never allowed to call them.
	Guards []Guard
	// Interceptors are called before each call of a tool in this order, and after the call in reverse order. They may
	// change arguments and results.
	Interceptors []Interceptor
	// Audit records each call twice: before the call is sent, and before its result is returned. A call that cannot be
	// recorded is not sent. If Audit is nil, nothing is recorded.
	Audit AuditRecorder
	// FilterSkill returns the form in which a server's skill may be shown, or nil to hide the skill. If it returns an
	// error, none of the skills in the server's response are shown. If FilterSkill is nil, skills are shown as the
	// server sent them.
	FilterSkill func(ctx context.Context, server Server, skill json.RawMessage) (json.RawMessage, error)
	// Approver asks a person to approve calls for which a guard requires an approval. If it is nil, such calls are
	// refused.
	Approver Approver
	// SealKeys are the master keys for values that callers store and send back: request states, task IDs and cursors.
	// Values are sealed with the first key and can be opened with every key, so that keys can be rotated. Processes
	// that serve the same callers must have the same keys. Without keys, the deck creates a random key.
	SealKeys [][]byte
	// Owner is the principal who owns the connections through which resources and tasks are watched; empty if there is
	// only one principal. At a server that is PerPrincipal, other principals cannot subscribe to resources or tasks.
	Owner string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Spotlight reports whether results for the caller are marked as foreign text. It applies to servers without a
	// setting of their own; if Spotlight is nil, the results of such servers are not marked. Results for Drawbridge's
	// own agent are always marked.
	Spotlight func(drawbridge.Caller) bool
	// Inspect searches the texts of results for injected instructions, if the results are marked or may be withheld; if
	// it is nil, they are not searched. ResultHolder stores the withheld results of servers with HoldResults; if it is
	// nil, they are discarded.
	Inspect      Inspector
	ResultHolder ResultHolder
	// ResultScanner examines results of servers with ScanResults after they have been sent to the caller; nil examines
	// none.
	ResultScanner *ResultScanner
	// ScanForeignCards makes ResultScanner also examine the results of each [ForeignCard].
	ScanForeignCards bool
	// OutputLearner learns the output types of servers' tools that have no output schema; nil learns none.
	OutputLearner *OutputLearner
	// OwnTasks handles the tasks of Drawbridge's own cards; nil if no card answers with a task.
	OwnTasks TaskBackend
	// ReadTrail stores which servers' results each run has received; if it is nil, nothing is stored.
	ReadTrail *ReadTrail
	// Resources are templates of resources that Drawbridge itself has. The Spec of such a card has the template as its
	// name, and a ResourceTemplate object as its definition. Run reads the resource of a call of resources/read.
	Resources []drawbridge.Card
	// Boundary writes to the workspace for the cards that have a Crossing; nil without a workspace.
	Boundary Boundary
	// MaxTools limits the enrolled tools of a server that has no limit of its own; 0 means DefaultMaxTools.
	MaxTools int
	// Discovery configures which tools are listed to external clients, and how they search for the other tools.
	Discovery Discovery
	// BeforeList is called before the deck returns a list. It may wait, until ctx ends, for servers that are starting,
	// so that the list contains their items. If it is nil, the deck does not wait.
	BeforeList func(ctx context.Context)
	// BeforeUnknown is called before a call fails because its tool, prompt or resource is unknown. It may wait for
	// servers that are starting and may have the name. name is the tool or prompt name that the caller used. It is
	// empty for a URI, because any server may have the URI. ctx ends as soon as the name is known. BeforeUnknown must
	// not wait for a server that is hidden from the caller, because the delay would reveal that server. If it is nil,
	// BeforeList is called instead.
	BeforeUnknown func(ctx context.Context, caller drawbridge.Caller, name string)
}

// DefaultMaxTools is the default limit for the enrolled tools of one server.
const DefaultMaxTools = 1000

// A Server is a configured server.
type Server struct {
	ID drawbridge.ServerID
	// ConfigHash is the hash of the server's configuration. The deck ignores listings and cards that have another hash,
	// because they are of an earlier configuration.
	ConfigHash string
	// Origin is the location of the server's configuration. Pins, which are the accepted definitions, are stored by
	// origin and name. So they stay valid after an edit of the configuration.
	Origin string
	// MaxTools limits the enrolled tools of the server; 0 means the limit of the deck.
	MaxTools int
	// ExpectedTools lists the only tools that the server may have; nil allows any. LockTools locks the server's first
	// list of tools: later tools are not shown, and changed definitions are not used. FromProject reports whether the
	// server is configured in a project directory and not by the person.
	ExpectedTools          *[]string
	LockTools, FromProject bool
	// PerPrincipal reports whether each principal has its own process of the server. If the principals share a process,
	// the deck shows a task only to principals that used it before; see taskHolders.
	PerPrincipal bool
	// Spotlight reports whether the server's results are marked as foreign text, for every caller. If it is nil,
	// [Options].Spotlight decides. See [ResultGuard].
	Spotlight *bool
	// HoldResults withholds results in which a rule of [Options].Inspect matches.
	HoldResults bool
	// ScanResults examines the server's results after they have been sent to the caller, if the deck has a ResultScanner.
	ScanResults bool
	// NotForScripts reports whether scripts in the sandbox may not call the server's tools.
	NotForScripts bool
	// Remembered is the listing of the server from an earlier process; see [Deck.ListingToVet]. [Deck.Configure] enrols
	// it, unless the deck already has the server with the same configuration. If it is nil, the deck shows the live
	// tools of the ledger until the server is listed.
	Remembered *RememberedListing
}

// A List is the response to one list method, such as tools/list, for one caller.
type List struct {
	// Items are the listed objects in order. The slice and its bytes are shared and must not be changed.
	Items []json.RawMessage
	// CacheHint is how long the list may be cached, and whether callers may share the cached list.
	CacheHint drawbridge.CacheHint
	// Version identifies the content of the list. Two lists of the same deck and method with the same version have the
	// same items.
	Version uint64
}
