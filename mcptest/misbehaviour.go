package mcptest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A Misbehaviour is the name of one way in which a server misbehaves. The server has a tool "echo" that returns its
// arguments as a text. In all other respects, the server is honest.
type Misbehaviour string

// The misbehaviours. The word size stands for the argument size of NewHostileServer. The numbers in parentheses are the
// default sizes.
const (
	// Hang never answers any request. HangCall never answers a call.
	Hang     Misbehaviour = "hang"
	HangCall Misbehaviour = "hang-call"
	// Drip answers a call with one byte every 50 ms, for size bytes (1,000,000).
	Drip Misbehaviour = "drip"
	// Flood sends size log messages (2,000) before it answers a call. Storm sends size notifications (20,000) that its
	// tools have changed, after the first tools/list. Noise writes size lines (200) that are not messages before it
	// answers a call.
	Flood Misbehaviour = "flood"
	Storm Misbehaviour = "storm"
	Noise Misbehaviour = "noise"
	// HugeLine answers a call with a text of size bytes (48 MiB) on one line. The server itself does not need memory
	// for the whole text.
	HugeLine Misbehaviour = "huge-line"
	// ProgressFlood sends size progress notifications (2,000) before it answers a call, each with a progress token that
	// the client did not send. It also sends as many updates of resources to which the client has not subscribed.
	ProgressFlood Misbehaviour = "progress-flood"
	// DeepNesting answers a call with nested arrays, size levels deep (100,000).
	DeepNesting Misbehaviour = "deep-nesting"
	// DuplicateKeys answers a call with "result" twice in the message, and "content" twice in each result. BadUTF8
	// answers with bytes that are not UTF-8. LoneSurrogate answers with half of a surrogate pair, escaped. Batch sends
	// its response in an array. Trailing adds other text after the response, on the same line.
	DuplicateKeys Misbehaviour = "duplicate-keys"
	BadUTF8       Misbehaviour = "bad-utf8"
	LoneSurrogate Misbehaviour = "lone-surrogate"
	Batch         Misbehaviour = "batch"
	Trailing      Misbehaviour = "trailing"
	// EndlessCursors lists its tools on an endless number of pages, each with a different cursor. EmptyPages does the
	// same without any tools. RepeatedCursor always sends the same cursor, CursorCycle two cursors in turn. HugeCursor
	// has two pages, and a cursor of size bytes (1 MiB).
	EndlessCursors Misbehaviour = "endless-cursors"
	EmptyPages     Misbehaviour = "empty-pages"
	RepeatedCursor Misbehaviour = "repeated-cursor"
	CursorCycle    Misbehaviour = "cursor-cycle"
	HugeCursor     Misbehaviour = "huge-cursor"
	// ManyTools lists size tools (100,000) on one page. HugeDefinition has a tool with a description of size bytes (8
	// MiB). HugeSchema has a tool with size arguments (10,000). DeepSchema has a tool whose default value consists of
	// nested arrays, size levels deep (10,000).
	ManyTools      Misbehaviour = "many-tools"
	HugeDefinition Misbehaviour = "huge-definition"
	HugeSchema     Misbehaviour = "huge-schema"
	DeepSchema     Misbehaviour = "deep-schema"
	// Flap lists another one of two definitions of its tool at each tools/list. It also sends size notifications (200)
	// of changed tools over several seconds. TwoFaced lists one definition on its first connection, and another one on
	// all later connections. Over HTTP, a connection is a session, or a request without a session.
	Flap     Misbehaviour = "flap"
	TwoFaced Misbehaviour = "two-faced"
	// ExitAtOnce ends its process with code 1 when the process starts. CrashLoop ends its process at tools/list,
	// CrashOnCall at a call. Over HTTP, these servers delete their sessions and close the connections instead.
	ExitAtOnce  Misbehaviour = "exit-at-once"
	CrashLoop   Misbehaviour = "crash-loop"
	CrashOnCall Misbehaviour = "crash-on-call"
	// HalfMessage writes half of the response to a call, and then ends as CrashOnCall does.
	HalfMessage Misbehaviour = "half-message"
	// Forks starts size processes (3), each in its own session, which stay after the server has ended. Stubborn does
	// not exit when its input ends, and ignores SIGTERM. StderrFlood writes size bytes (32 MiB) to standard error.
	Forks       Misbehaviour = "forks"
	Stubborn    Misbehaviour = "stubborn"
	StderrFlood Misbehaviour = "stderr-flood"
	// Smuggle answers a call with responses to other requests: to the size IDs (20) before and after the ID of the
	// call. It then sends two responses to the call itself; the first claims to be from Drawbridge.
	Smuggle Misbehaviour = "smuggle"
	// Phish asks the client for a password, and to open a page whose address looks like a well-known one. Uninvited
	// sends requests without checking the client's capabilities. EndlessRounds sends the client a form, and another
	// form after each answer.
	Phish         Misbehaviour = "phish"
	Uninvited     Misbehaviour = "uninvited"
	EndlessRounds Misbehaviour = "endless-rounds"
	// Poison has definitions with visible and hidden instructions for a model. Change replaces its tool at the first
	// call: the new tool has another description, claims to be read-only and has more arguments.
	Poison Misbehaviour = "poison"
	Change Misbehaviour = "change"
	// FormFlood sends the client size elicitation requests (200) at once. HugeState answers each call with an
	// elicitation request and a requestState of size bytes (1 MiB).
	FormFlood Misbehaviour = "form-flood"
	HugeState Misbehaviour = "huge-state"
	// EndlessTask answers a call with a task that never ends.
	EndlessTask Misbehaviour = "endless-task"
	// Links answers a call with links to files and to addresses of the machine. Lies answers with an error result that
	// contains instructions for a model. Its structured content contradicts the text and the outputSchema.
	Links Misbehaviour = "links"
	Lies  Misbehaviour = "lies"
	// UnknownVersion answers initialize and server/discover with protocol versions that do not exist. MixedEras answers
	// a call in a session with a result of the stateless generation.
	UnknownVersion Misbehaviour = "unknown-version"
	MixedEras      Misbehaviour = "mixed-eras"
	// These misbehave over HTTP only. Redirect redirects calls to another origin. Challenge answers each call with
	// status 401, Busy with 429 and a Retry-After of about 30 years, WebPage with an HTML page. GzipBomb answers with
	// size bytes (64 MiB), compressed although the client did not ask for compression. Forget answers a call with
	// status 404, as if its session was unknown.
	Redirect  Misbehaviour = "redirect"
	Challenge Misbehaviour = "challenge"
	Busy      Misbehaviour = "busy"
	WebPage   Misbehaviour = "web-page"
	GzipBomb  Misbehaviour = "gzip-bomb"
	Forget    Misbehaviour = "forget"
)

// Misbehaviours returns all misbehaviours, sorted.
func Misbehaviours() []Misbehaviour {
	all := make([]Misbehaviour, 0, 64)
	for name := range misbehaviourRecipes() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// NewHostileServer returns a server with a Misbehaviour, which ends with the test. A size of 0 means the default size.
// parts are added to the server. A part with the name "echo" replaces the tool echo. Forks, Stubborn and StderrFlood do
// nothing over HTTP. The misbehaviours from Redirect to Forget do nothing on the standard streams of a process.
func NewHostileServer(t testing.TB, does Misbehaviour, size int, parts ...ServerPart) *Server {
	t.Helper()
	d, ok := misbehaviourRecipes()[does]
	if !ok {
		t.Fatalf("mcptest: unknown misbehaviour %q", does)
	}
	if size > 0 {
		d.size = size
	}
	all := append([]ServerPart{Tool{Name: "echo", Description: "Gives its arguments back."}}, d.parts...)
	one := serverMisbehaviour{size: d.size}
	if d.process {
		one.process = string(does)
	}
	if d.make != nil {
		one.answerBadly = d.make(d.size)
	}
	if d.web != nil {
		one.answerHTTPBadly = d.web(d.size)
	}
	return startServer(t, one, append(all, parts...))
}

// A serverMisbehaviour is the misbehaviour of one server. The zero value is honest.
type serverMisbehaviour struct {
	size int
	// process names a misbehaviour that the process of the server carries out itself.
	process string
	// answerBadly, if not nil, is called for each request. If it returns false, the server answers honestly.
	answerBadly badAnswer
	// answerHTTPBadly, if not nil, is called for each HTTP POST. If it returns false, the server handles the POST.
	answerHTTPBadly badHTTPAnswer
}

// A badAnswer answers a request in place of the honest server. It returns false if the honest server must answer.
type badAnswer func(ctx context.Context, c *serverSession, m mcp.Message, out responseWriter) bool

// A misbehaviourRecipe describes a Misbehaviour, from which a serverMisbehaviour is made for each server. size is the
// default size. process is true if the process of the server takes part in the misbehaviour. parts are added to the
// server.
type misbehaviourRecipe struct {
	size    int
	make    func(size int) badAnswer
	web     func(size int) badHTTPAnswer
	process bool
	parts   []ServerPart
}

func misbehaviourRecipes() map[Misbehaviour]misbehaviourRecipe {
	all := callMisbehaviours()
	for _, more := range []map[Misbehaviour]misbehaviourRecipe{listMisbehaviours(), processMisbehaviours(),
		httpMisbehaviours()} {
		maps.Copy(all, more)
	}
	return all
}

// callMisbehaviours returns the misbehaviours in the answers to tool calls. Their servers list their tools honestly.
func callMisbehaviours() map[Misbehaviour]misbehaviourRecipe {
	return map[Misbehaviour]misbehaviourRecipe{
		HangCall:      {make: onToolCalls(hangForever)},
		Drip:          {make: onToolCalls(dripBytes), size: 1_000_000},
		Flood:         {make: onToolCalls(floodLogs), size: 2_000},
		Noise:         {make: onToolCalls(writeNoise), size: 200},
		HugeLine:      {make: onToolCalls(answerHugeLine), size: 48 << 20},
		DeepNesting:   {make: onToolCalls(deepNesting), size: 100_000},
		ProgressFlood: {make: onToolCalls(progressFlood), size: 2_000},
		DuplicateKeys: {make: onToolCalls(duplicateKeys)},
		BadUTF8:       {make: onToolCalls(badUTF8)},
		LoneSurrogate: {make: onToolCalls(loneSurrogate)},
		Batch:         {make: onToolCalls(batch)},
		Trailing:      {make: onToolCalls(trailing)},
		Smuggle:       {make: onToolCalls(smuggle), size: 20},
		Phish:         {make: onToolCalls(phish)},
		Uninvited:     {make: onToolCalls(uninvited)},
		EndlessRounds: {make: onToolCalls(endlessRounds)},
		FormFlood:     {make: onToolCalls(formFlood), size: 200},
		HugeState:     {make: onToolCalls(hugeState), size: 1 << 20},
		EndlessTask:   {make: endlessTask},
		Links:         {make: onToolCalls(answerLinks)},
		Lies:          {make: onToolCalls(answerLies), parts: []ServerPart{lyingTool()}},
		MixedEras:     {make: onToolCalls(mixedEras)},
	}
}

// listMisbehaviours returns the misbehaviours in lists and notifications, and in the first requests of a client.
func listMisbehaviours() map[Misbehaviour]misbehaviourRecipe {
	return map[Misbehaviour]misbehaviourRecipe{
		Hang:           {make: hangForever},
		Storm:          {make: stormOfChanges, size: 20_000},
		EndlessCursors: {make: endlessCursors},
		EmptyPages:     {make: emptyPages},
		RepeatedCursor: {make: repeatedCursor},
		CursorCycle:    {make: cursorCycle},
		HugeCursor:     {make: hugeCursor, size: 1 << 20},
		ManyTools:      {make: listManyTools, size: 100_000},
		HugeDefinition: {make: hugeDefinition, size: 8 << 20},
		HugeSchema:     {make: hugeSchema, size: 10_000},
		DeepSchema:     {make: deepSchema, size: 10_000},
		Flap:           {make: flap, size: 200},
		TwoFaced:       {make: twoFaced},
		Poison:         {parts: poisoned()},
		Change:         {make: change},
		UnknownVersion: {make: unknownVersion},
	}
}

// processMisbehaviours returns the misbehaviours of the server's process, such as a crash.
func processMisbehaviours() map[Misbehaviour]misbehaviourRecipe {
	return map[Misbehaviour]misbehaviourRecipe{
		ExitAtOnce:  {process: true, make: crashLoop},
		CrashLoop:   {make: crashLoop},
		CrashOnCall: {make: onToolCalls(crash)},
		HalfMessage: {make: onToolCalls(halfMessage)},
		Forks:       {process: true, size: 3},
		Stubborn:    {process: true},
		StderrFlood: {process: true, size: 32 << 20},
	}
}

func httpMisbehaviours() map[Misbehaviour]misbehaviourRecipe {
	return map[Misbehaviour]misbehaviourRecipe{
		Redirect:  {web: redirectCalls},
		Challenge: {web: refuseWithStatus(http.StatusUnauthorized, "Www-Authenticate", `Bearer error="invalid_token"`)},
		Busy:      {web: refuseWithStatus(http.StatusTooManyRequests, "Retry-After", "1000000000")},
		WebPage:   {web: answerWebPage},
		GzipBomb:  {web: answerGzipBomb, size: 64 << 20},
		Forget:    {web: refuseWithStatus(http.StatusNotFound, "", "")},
	}
}

// onToolCalls returns a badAnswer that misbehaves only for tools/call; other requests are answered honestly.
func onToolCalls(make func(size int) badAnswer) func(size int) badAnswer {
	return func(size int) badAnswer {
		does := make(size)
		return func(ctx context.Context, c *serverSession, m mcp.Message, out responseWriter) bool {
			return m.Method == mcp.MethodToolsCall && does(ctx, c, m, out)
		}
	}
}
