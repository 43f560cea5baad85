package fakemcp

import (
	"context"
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
	// DeepNesting answers a call with arrays in arrays, size deep (100,000).
	DeepNesting Misdeed = "deep-nesting"
	// DuplicateKeys answers a call with "result" twice in the message and "content" twice in each. BadUTF8 answers with bytes that
	// are no UTF-8.
	DuplicateKeys Misdeed = "duplicate-keys"
	BadUTF8       Misdeed = "bad-utf8"
	// EndlessCursors lists its tools on pages without end, each with another cursor; RepeatedCursor has the same one for ever.
	EndlessCursors Misdeed = "endless-cursors"
	RepeatedCursor Misdeed = "repeated-cursor"
	// ManyTools lists size tools (100,000) on one page. HugeDefinition has a tool with a description of size bytes (8 MiB).
	ManyTools      Misdeed = "many-tools"
	HugeDefinition Misdeed = "huge-definition"
	// ExitAtOnce ends its process with code 1. CrashLoop ends it when it is asked for its tools, CrashOnCall when it is called.
	// Over HTTP they forget their sessions and cut the connection.
	ExitAtOnce  Misdeed = "exit-at-once"
	CrashLoop   Misdeed = "crash-loop"
	CrashOnCall Misdeed = "crash-on-call"
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
	// Links answers a call with links to files and to addresses of the machine.
	Links Misdeed = "links"
)

// Misdeeds gives all of them.
func Misdeeds() []Misdeed {
	all := make([]Misdeed, 0, 32)
	for name := range deeds() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// NewHostile makes a server that does a Misdeed, until the test ends. A size of 0 is the misdeed's own. Parts stand beside the tool
// echo, or in its place. Misdeeds of processes do nothing over HTTP, where there is none.
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
	return start(t, one, append(all, parts...))
}

// A deed is what a server does that is no good. The zero value does nothing.
type deed struct {
	size int
	// process names what the process does by itself.
	process string
	// asked may answer a request in the place of what is honest; it says whether it has.
	asked act
}

// An act answers a request, or says false. It has what it needs to be as bad as it likes.
type act func(ctx context.Context, c *session, m wire.Message, out outlet) bool

// A recipe is how a deed is made: anew for each server.
type recipe struct {
	size    int
	make    func(size int) act
	process bool
	parts   []Part
}

func deeds() map[Misdeed]recipe {
	return map[Misdeed]recipe{
		Hang:           {make: hang},
		HangCall:       {make: onCall(hang)},
		Drip:           {make: onCall(drip), size: 1_000_000},
		Flood:          {make: onCall(flood), size: 2_000},
		Storm:          {make: storm, size: 20_000},
		Noise:          {make: onCall(noise), size: 200},
		HugeLine:       {make: onCall(hugeLine), size: 48 << 20},
		DeepNesting:    {make: onCall(deepNesting), size: 100_000},
		DuplicateKeys:  {make: onCall(duplicateKeys)},
		BadUTF8:        {make: onCall(badUTF8)},
		EndlessCursors: {make: endlessCursors},
		RepeatedCursor: {make: repeatedCursor},
		ManyTools:      {make: manyTools, size: 100_000},
		HugeDefinition: {make: hugeDefinition, size: 8 << 20},
		ExitAtOnce:     {process: true, make: crashLoop},
		CrashLoop:      {make: crashLoop},
		CrashOnCall:    {make: onCall(crash)},
		Forks:          {process: true, size: 3},
		Stubborn:       {process: true},
		StderrFlood:    {process: true, size: 32 << 20},
		Smuggle:        {make: onCall(smuggle), size: 20},
		Phish:          {make: onCall(phish)},
		Uninvited:      {make: onCall(uninvited)},
		EndlessRounds:  {make: onCall(endlessRounds)},
		Poison:         {parts: poisoned()},
		Change:         {make: change},
		Links:          {make: onCall(links)},
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
