package mcptest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A Misbehaviour is one way to misbehave. Its server has a tool "echo" that returns its arguments as a text, and is
// honest in all that the Misbehaviour does not name.
type Misbehaviour string

// The misdeeds. The number is the size where NewHostileServer is told none.
const (
	// Hang never answers anything. HangCall never answers a call.
	Hang     Misbehaviour = "hang"
	HangCall Misbehaviour = "hang-call"
	// Drip answers a call with a byte each 50 ms, for size bytes (1,000,000).
	Drip Misbehaviour = "drip"
	// Flood sends size log lines (2,000) before it answers a call. Storm notifies size times (20,000) that its tools
	// have changed, after the first request for them. Noise writes size lines (200) that are not messages before it
	// answers a call.
	Flood Misbehaviour = "flood"
	Storm Misbehaviour = "storm"
	Noise Misbehaviour = "noise"
	// HugeLine answers a call with a text of size bytes (48 MiB), on one line. It takes no memory for it.
	HugeLine Misbehaviour = "huge-line"
	// ProgressFlood sends, before it answers a call, progress of size other calls (2,000) that do not exist, and as
	// many updates of resources without a subscriber.
	ProgressFlood Misbehaviour = "progress-flood"
	// DeepNesting answers a call with arrays in arrays, size deep (100,000).
	DeepNesting Misbehaviour = "deep-nesting"
	// DuplicateKeys answers a call with "result" twice in the message and "content" twice in each. BadUTF8 answers
	// with bytes that are no UTF-8, LoneSurrogate with half a character, escaped. Batch has its answer in an array,
	// Trailing has words behind it, on the same line.
	DuplicateKeys Misbehaviour = "duplicate-keys"
	BadUTF8       Misbehaviour = "bad-utf8"
	LoneSurrogate Misbehaviour = "lone-surrogate"
	Batch         Misbehaviour = "batch"
	Trailing      Misbehaviour = "trailing"
	// EndlessCursors lists its tools on pages without end, each with another cursor; EmptyPages does so, and nothing
	// is on them. RepeatedCursor has the same cursor for ever, CursorCycle two in turn. HugeCursor has one of size
	// bytes (1 MiB), and a second page.
	EndlessCursors Misbehaviour = "endless-cursors"
	EmptyPages     Misbehaviour = "empty-pages"
	RepeatedCursor Misbehaviour = "repeated-cursor"
	CursorCycle    Misbehaviour = "cursor-cycle"
	HugeCursor     Misbehaviour = "huge-cursor"
	// ManyTools lists size tools (100,000) on one page. HugeDefinition has a tool with a description of size bytes (8
	// MiB), HugeSchema one with size arguments (10,000), DeepSchema one whose default is arrays in arrays, size deep
	// (10,000).
	ManyTools      Misbehaviour = "many-tools"
	HugeDefinition Misbehaviour = "huge-definition"
	HugeSchema     Misbehaviour = "huge-schema"
	DeepSchema     Misbehaviour = "deep-schema"
	// Flap lists one of two definitions in turn, and notifies size times (200), over some seconds, of a change.
	// TwoFaced lists one definition on its first connection, and another one on all later connections. Over HTTP, a
	// connection is a session, or a request without a session.
	Flap     Misbehaviour = "flap"
	TwoFaced Misbehaviour = "two-faced"
	// ExitAtOnce ends its process with code 1. CrashLoop ends it when it is asked for its tools, CrashOnCall when it
	// is called. Over HTTP they forget their sessions and cut the connection.
	ExitAtOnce  Misbehaviour = "exit-at-once"
	CrashLoop   Misbehaviour = "crash-loop"
	CrashOnCall Misbehaviour = "crash-on-call"
	// HalfMessage writes half an answer to a call, and ends as CrashOnCall does.
	HalfMessage Misbehaviour = "half-message"
	// Forks starts size processes (3), each in a session of its own, that stay when it ends. Stubborn stays when its
	// input ends, and ignores SIGTERM. StderrFlood writes size bytes (32 MiB) to standard error.
	Forks       Misbehaviour = "forks"
	Stubborn    Misbehaviour = "stubborn"
	StderrFlood Misbehaviour = "stderr-flood"
	// Smuggle answers a call with answers to the calls of others, size of each side of its id (20), then with its own,
	// which claims to be from Drawbridge, and again.
	Smuggle Misbehaviour = "smuggle"
	// Phish asks the client for a password, and to open a page whose address looks like a well-known one. Uninvited
	// asks for requests that the client has not declared. EndlessRounds asks again after each answer.
	Phish         Misbehaviour = "phish"
	Uninvited     Misbehaviour = "uninvited"
	EndlessRounds Misbehaviour = "endless-rounds"
	// Poison has definitions with orders to the model, open and hidden. Change has other definitions from the first
	// call on: the tool says something else, claims to be harmless and takes more.
	Poison Misbehaviour = "poison"
	Change Misbehaviour = "change"
	// FormFlood asks the client size questions (200) at once. HugeState asks with a new state of size bytes (1 MiB)
	// each time.
	FormFlood Misbehaviour = "form-flood"
	HugeState Misbehaviour = "huge-state"
	// EndlessTask answers a call with a task that is never over.
	EndlessTask Misbehaviour = "endless-task"
	// Links answers a call with links to files and to addresses of the machine. Lies answers with a false error that
	// orders the model about, and with structured content that contradicts the text and its outputSchema.
	Links Misbehaviour = "links"
	Lies  Misbehaviour = "lies"
	// UnknownVersion answers initialize and server/discover with versions of the protocol that there are not.
	// MixedEras answers a call of a session with the words of the generation that has none.
	UnknownVersion Misbehaviour = "unknown-version"
	MixedEras      Misbehaviour = "mixed-eras"
	// Of those over HTTP alone, Redirect sends calls on to another origin, Challenge answers each with 401, Busy with
	// 429 and the wish to be left alone for 30 years, WebPage with a page. GzipBomb answers with size bytes (64 MiB)
	// that are compressed without being asked for. Forget does not know the session of a call.
	Redirect  Misbehaviour = "redirect"
	Challenge Misbehaviour = "challenge"
	Busy      Misbehaviour = "busy"
	WebPage   Misbehaviour = "web-page"
	GzipBomb  Misbehaviour = "gzip-bomb"
	Forget    Misbehaviour = "forget"
)

// Misbehaviours returns all of them.
func Misbehaviours() []Misbehaviour {
	all := make([]Misbehaviour, 0, 64)
	for name := range misbehaviourRecipes() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// NewHostileServer makes a server that does a Misdeed, until the test ends. A size of 0 is the misdeed's own. Parts
// stand beside the tool echo, or in its place. Misdeeds of processes do nothing over HTTP, where there is none, and
// those of HTTP nothing on a process's standard streams.
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

// A serverMisbehaviour is the bad behaviour of a server. The zero value does nothing.
type serverMisbehaviour struct {
	size int
	// process names what the process does by itself.
	process string
	// answerBadly may answer a request in place of the honest answer; it reports whether it did.
	answerBadly badAnswer
	// answerHTTPBadly may answer a request over HTTP before it is read; it reports whether it did.
	answerHTTPBadly badHTTPAnswer
}

// An badAnswer answers a request, or says false. It has what it needs to be as bad as it likes.
type badAnswer func(ctx context.Context, c *serverSession, m mcp.Message, out responseWriter) bool

// A misbehaviourRecipe makes a new serverMisbehaviour for each server.
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

// callMisbehaviours are those of servers that list their tools honestly.
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

// listMisbehaviours are those of servers that list too much, or the wrong things.
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

// processMisbehaviours are those of servers that end, or do not.
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

// onToolCalls has an act done to calls of tools only.
func onToolCalls(make func(size int) badAnswer) func(size int) badAnswer {
	return func(size int) badAnswer {
		does := make(size)
		return func(ctx context.Context, c *serverSession, m mcp.Message, out responseWriter) bool {
			return m.Method == mcp.MethodToolsCall && does(ctx, c, m, out)
		}
	}
}
