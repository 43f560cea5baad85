package fakemcp

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Misdeed is one way to misbehave. A server that does one has a tool "echo" that gives its arguments back as a text, and is
// honest in all that the Misdeed does not say.
type Misdeed string

// The misdeeds. The number is the size where NewHostile is told none.
const (
	// Hang never answers anything. HangCall never answers a call.
	Hang     Misdeed = "hang"
	HangCall Misdeed = "hang-call"
	// Drip answers a call with a byte each 50 ms, for size bytes (1,000,000).
	Drip Misdeed = "drip"
	// Flood sends size log lines (2,000) before it answers a call. Storm says size times (20,000) that its tools have changed,
	// once it was asked for them. Noise writes size lines (200) that are no messages before it answers a call.
	Flood Misdeed = "flood"
	Storm Misdeed = "storm"
	Noise Misdeed = "noise"
	// HugeLine answers a call with a text of size bytes (48 MiB), on one line. It takes no memory for it.
	HugeLine Misdeed = "huge-line"
	// ProgressFlood says before it answers a call how far size other calls (2,000) are, none of which there is, and that as many
	// resources have changed that nobody watches.
	ProgressFlood Misdeed = "progress-flood"
	// DeepNesting answers a call with arrays in arrays, size deep (100,000).
	DeepNesting Misdeed = "deep-nesting"
	// DuplicateKeys answers a call with "result" twice in the message and "content" twice in each. BadUTF8 answers with bytes that
	// are no UTF-8, LoneSurrogate with half a character, escaped. Batch has its answer in an array, Trailing has words behind it, on
	// the same line.
	DuplicateKeys Misdeed = "duplicate-keys"
	BadUTF8       Misdeed = "bad-utf8"
	LoneSurrogate Misdeed = "lone-surrogate"
	Batch         Misdeed = "batch"
	Trailing      Misdeed = "trailing"
	// EndlessCursors lists its tools on pages without end, each with another cursor; EmptyPages does so, and nothing is on them.
	// RepeatedCursor has the same cursor for ever, CursorCycle two in turn. HugeCursor has one of size bytes (1 MiB), and a second page.
	EndlessCursors Misdeed = "endless-cursors"
	EmptyPages     Misdeed = "empty-pages"
	RepeatedCursor Misdeed = "repeated-cursor"
	CursorCycle    Misdeed = "cursor-cycle"
	HugeCursor     Misdeed = "huge-cursor"
	// ManyTools lists size tools (100,000) on one page. HugeDefinition has a tool with a description of size bytes (8 MiB), HugeSchema
	// one with size arguments (10,000), DeepSchema one whose default is arrays in arrays, size deep (10,000).
	ManyTools      Misdeed = "many-tools"
	HugeDefinition Misdeed = "huge-definition"
	HugeSchema     Misdeed = "huge-schema"
	DeepSchema     Misdeed = "deep-schema"
	// Flap has one of two definitions in turn, another one each time it is asked, and says
	// size times (200), over some seconds, that they have changed.
	// TwoFaced has other definitions for each connection (over HTTP: each session, or each request where there is none).
	Flap     Misdeed = "flap"
	TwoFaced Misdeed = "two-faced"
	// ExitAtOnce ends its process with code 1. CrashLoop ends it when it is asked for its tools, CrashOnCall when it is called.
	// Over HTTP they forget their sessions and cut the connection.
	ExitAtOnce  Misdeed = "exit-at-once"
	CrashLoop   Misdeed = "crash-loop"
	CrashOnCall Misdeed = "crash-on-call"
	// HalfMessage writes half an answer to a call, and ends as CrashOnCall does.
	HalfMessage Misdeed = "half-message"
	// Forks starts size processes (3), each in a session of its own, that stay when it ends. Stubborn stays when its input ends, and ignores
	// SIGTERM. StderrFlood writes size bytes (32 MiB) to standard error.
	Forks       Misdeed = "forks"
	Stubborn    Misdeed = "stubborn"
	StderrFlood Misdeed = "stderr-flood"
	// Smuggle answers a call with answers to the calls of others, size of each side of its id (20), then with its own, which claims
	// to be from Drawbridge, and again.
	Smuggle Misdeed = "smuggle"
	// Phish asks whoever calls for a password, and to open a page whose address looks like one that people know. Uninvited asks
	// what the client has not declared. EndlessRounds asks again after each answer.
	Phish         Misdeed = "phish"
	Uninvited     Misdeed = "uninvited"
	EndlessRounds Misdeed = "endless-rounds"
	// Poison has definitions with orders to the model, open and hidden. Change has other definitions from the first call on: the tool
	// says something else, claims to be harmless and takes more.
	Poison Misdeed = "poison"
	Change Misdeed = "change"
	// FormFlood asks whoever calls size questions (200) at once. HugeState asks with a state of size bytes (1 MiB), each time anew.
	FormFlood Misdeed = "form-flood"
	HugeState Misdeed = "huge-state"
	// EndlessTask answers a call with a task that is never over.
	EndlessTask Misdeed = "endless-task"
	// Links answers a call with links to files and to addresses of the machine. Lies answers with an error that is none and gives the
	// model orders, and with structured content that is something else than the text and than its outputSchema says.
	Links Misdeed = "links"
	Lies  Misdeed = "lies"
	// UnknownVersion answers initialize and server/discover with versions of the protocol that there are not. MixedEras answers a call of
	// a session with the words of the generation that has none.
	UnknownVersion Misdeed = "unknown-version"
	MixedEras      Misdeed = "mixed-eras"
	// Of those over HTTP alone, Redirect sends calls on to another origin, Challenge answers each with 401, Busy with 429 and the wish to be
	// left alone for 30 years, WebPage with a page. GzipBomb answers with size bytes (64 MiB) that are compressed, though nobody asked
	// for that. Forget does not know the session of a call.
	Redirect  Misdeed = "redirect"
	Challenge Misdeed = "challenge"
	Busy      Misdeed = "busy"
	WebPage   Misdeed = "web-page"
	GzipBomb  Misdeed = "gzip-bomb"
	Forget    Misdeed = "forget"
)

// Misdeeds gives all of them.
func Misdeeds() []Misdeed {
	all := make([]Misdeed, 0, 64)
	for name := range deeds() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// NewHostile makes a server that does a Misdeed, until the test ends. A size of 0 is the misdeed's own. Parts stand beside the tool
// echo, or in its place. Misdeeds of processes do nothing over HTTP, where there is none, and those of HTTP nothing on a process's
// standard streams.
func NewHostile(t testing.TB, does Misdeed, size int, parts ...Part) *Server {
	t.Helper()
	d, ok := deeds()[does]
	if !ok {
		t.Fatalf("fakemcp: there is no misdeed %q", does)
	}
	if size > 0 {
		d.size = size
	}
	all := append([]Part{Tool{Name: "echo", Description: "Gives its arguments back."}}, d.parts...)
	one := deed{size: d.size}
	if d.process {
		one.process = string(does)
	}
	if d.make != nil {
		one.asked = d.make(d.size)
	}
	if d.web != nil {
		one.web = d.web(d.size)
	}
	return start(t, one, append(all, parts...))
}

// A deed is what a server does that is no good. The zero value does nothing.
type deed struct {
	size int
	// process names what the process does by itself.
	process string
	// asked may answer a request in the place of what is honest; it says whether it has.
	asked act
	// web may answer a request over HTTP before anything is made of it; it says whether it has.
	web webAct
}

// An act answers a request, or says false. It has what it needs to be as bad as it likes.
type act func(ctx context.Context, c *session, m wire.Message, out outlet) bool

// A recipe is how a deed is made: anew for each server.
type recipe struct {
	size    int
	make    func(size int) act
	web     func(size int) webAct
	process bool
	parts   []Part
}

func deeds() map[Misdeed]recipe {
	all := onCalls()
	for _, more := range []map[Misdeed]recipe{onLists(), ofProcesses(), overHTTP()} {
		maps.Copy(all, more)
	}
	return all
}

// onCalls are those of servers that list their tools honestly.
func onCalls() map[Misdeed]recipe {
	return map[Misdeed]recipe{
		HangCall:      {make: onCall(hang)},
		Drip:          {make: onCall(drip), size: 1_000_000},
		Flood:         {make: onCall(flood), size: 2_000},
		Noise:         {make: onCall(noise), size: 200},
		HugeLine:      {make: onCall(hugeLine), size: 48 << 20},
		DeepNesting:   {make: onCall(deepNesting), size: 100_000},
		ProgressFlood: {make: onCall(progressFlood), size: 2_000},
		DuplicateKeys: {make: onCall(duplicateKeys)},
		BadUTF8:       {make: onCall(badUTF8)},
		LoneSurrogate: {make: onCall(loneSurrogate)},
		Batch:         {make: onCall(batch)},
		Trailing:      {make: onCall(trailing)},
		Smuggle:       {make: onCall(smuggle), size: 20},
		Phish:         {make: onCall(phish)},
		Uninvited:     {make: onCall(uninvited)},
		EndlessRounds: {make: onCall(endlessRounds)},
		FormFlood:     {make: onCall(formFlood), size: 200},
		HugeState:     {make: onCall(hugeState), size: 1 << 20},
		EndlessTask:   {make: endlessTask},
		Links:         {make: onCall(links)},
		Lies:          {make: onCall(lies), parts: []Part{liar()}},
		MixedEras:     {make: onCall(mixedEras)},
	}
}

// onLists are those of servers that say too much of what they have, or the wrong thing.
func onLists() map[Misdeed]recipe {
	return map[Misdeed]recipe{
		Hang:           {make: hang},
		Storm:          {make: storm, size: 20_000},
		EndlessCursors: {make: endlessCursors},
		EmptyPages:     {make: emptyPages},
		RepeatedCursor: {make: repeatedCursor},
		CursorCycle:    {make: cursorCycle},
		HugeCursor:     {make: hugeCursor, size: 1 << 20},
		ManyTools:      {make: manyTools, size: 100_000},
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

// ofProcesses are those of servers that end, or do not.
func ofProcesses() map[Misdeed]recipe {
	return map[Misdeed]recipe{
		ExitAtOnce:  {process: true, make: crashLoop},
		CrashLoop:   {make: crashLoop},
		CrashOnCall: {make: onCall(crash)},
		HalfMessage: {make: onCall(halfMessage)},
		Forks:       {process: true, size: 3},
		Stubborn:    {process: true},
		StderrFlood: {process: true, size: 32 << 20},
	}
}

func overHTTP() map[Misdeed]recipe {
	return map[Misdeed]recipe{
		Redirect:  {web: redirect},
		Challenge: {web: refusing(http.StatusUnauthorized, "Www-Authenticate", `Bearer error="invalid_token"`)},
		Busy:      {web: refusing(http.StatusTooManyRequests, "Retry-After", "1000000000")},
		WebPage:   {web: webPage},
		GzipBomb:  {web: gzipBomb, size: 64 << 20},
		Forget:    {web: refusing(http.StatusNotFound, "", "")},
	}
}

// onCall has an act done to calls of tools only.
func onCall(make func(size int) act) func(size int) act {
	return func(size int) act {
		does := make(size)
		return func(ctx context.Context, c *session, m wire.Message, out outlet) bool {
			return m.Method == wire.MethodToolsCall && does(ctx, c, m, out)
		}
	}
}
