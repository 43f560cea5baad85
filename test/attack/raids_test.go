//go:build !nomcp

package attack

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A raid is what becomes of one misdeed.
type raid struct {
	name  string
	does  mcptest.Misbehaviour
	size  int
	parts []mcptest.ServerPart
	// only is the transport over which the misdeed is one; empty is both.
	only string
	// told is what people are told of the server: its last fault, and its notes. It begins so; "" is nothing, "-"
	// anything.
	told string
	// call is how a call of its tool echo ends: with this text, or in a fault that has it; "" is the echo. web is that
	// over HTTP, where it is something else. "-" is any answer,
	// and that a person must look at it first.
	call, web string
}

const (
	echo    = `{"a":1}`
	tooLate = "timeout: no answer and no progress within 300ms (timeout of server \"bad\")"
	lost    = "connection lost before the answer"
	garbled = lost + ": the answer is not valid JSON: json: "
	unknown = "unknown tool bad__echo"
	asked   = `the server sent "elicitation/create", which the client did not declare to support`
)

func stateful() []mcptest.ServerPart { return []mcptest.ServerPart{mcptest.OnlyEra(drawbridge.Legacy)} }

func raids() []raid {
	return []raid{
		{name: "HS-1 never answers anything", does: mcptest.Hang, call: unknown},
		{name: "HS-2 never answers a call", does: mcptest.HangCall, call: tooLate},
		{name: "HS-3 answers a byte at a time", does: mcptest.Drip, call: tooLate},
		{name: "HS-4 a line or an event without end", does: mcptest.HugeLine, size: 33 << 20, call: lost +
			": message is over the size bound", web: "-"},
		{name: "HS-4 a bomb of gzip", does: mcptest.GzipBomb, only: "HTTP", size: 8 << 20, call: lost},
		{name: "HS-5 too many tools", does: mcptest.ManyTools, size: 3_000,
			told: "2000 tools: left out, each because it is over the limit of 1000 for this server", call: unknown},
		{name: "HS-5 a huge description", does: mcptest.HugeDefinition, size: 1 << 20,
			told: "tool echo: a long text was cut, because /description is longer"},
		{name: "HS-5 a schema of 10,000 arguments", does: mcptest.HugeSchema},
		{name: "HS-5 a schema nested too deep", does: mcptest.DeepSchema, told: "mount bad: ", call: unknown},
		{name: "HS-6 pages without end", does: mcptest.EndlessCursors,
			told: "list tools: the list goes on after 1000 pages with 1000 items; the rest was left out",
			call: unknown},
		{name: "HS-6 empty pages without end", does: mcptest.EmptyPages,
			told: "list tools: the list goes on after 1000 pages with 0 items", call: unknown},
		{name: "HS-6 the same cursor for ever", does: mcptest.RepeatedCursor,
			told: "list tools: the server repeated a cursor"},
		{name: "HS-6 two cursors in turn", does: mcptest.CursorCycle,
			told: "list tools: the server repeated a cursor"},
		{name: "HS-6 a cursor of a megabyte", does: mcptest.HugeCursor},
		{name: "HS-7 says again and again that its tools changed", does: mcptest.Storm, size: 3_000},
		{name: "HS-7 definitions in turn", does: mcptest.Flap, told: "tool echo: held, because its definition changed",
			call: "-"},
		{name: "HS-8 log lines", does: mcptest.Flood},
		{name: "HS-8 progress and changes of what nobody asked for", does: mcptest.ProgressFlood},
		{name: "HS-9 answers for others", does: mcptest.Smuggle, call: "own"},
		{name: "HS-10 bytes that are no UTF-8", does: mcptest.BadUTF8, call: garbled + "invalid UTF-8", web: lost},
		{name: "HS-10 nested too deep", does: mcptest.DeepNesting, call: garbled, web: lost},
		{name: "HS-10 members twice", does: mcptest.DuplicateKeys, call: `member "result" is repeated`},
		{name: "HS-10 half a character", does: mcptest.LoneSurrogate, call: "half \ufffd"},
		{name: "HS-10 a batch", does: mcptest.Batch, call: "batched"},
		{name: "HS-10 more behind the answer", does: mcptest.Trailing, call: "first"},
		{name: "HS-11 lines that are no messages", does: mcptest.Noise},
		{name: "HS-12 a flood of standard error", does: mcptest.StderrFlood, size: 8 << 20},
		{name: "HS-13 ends at once", does: mcptest.ExitAtOnce, told: "mount bad: ", call: unknown},
		{name: "HS-13 ends when it is listed", does: mcptest.CrashLoop, told: "mount bad: list: tools: " +
			lost, call: unknown},
		{name: "HS-13 ends when it is called", does: mcptest.CrashOnCall, call: lost},
		{name: "HS-13 ends in the midst of an answer", does: mcptest.HalfMessage, call: lost},
		{name: "HS-14 processes that leave its session", does: mcptest.Forks},
		{name: "HS-14 ignores that it should end", does: mcptest.Stubborn},
		{name: "HS-16 changes a definition", does: mcptest.Change,
			told: "tool echo: held, because its definition changed"},
		{name: "HS-16 definitions that give orders", does: mcptest.Poison,
			told: "tool add: a text was blanked, because /description"},
		{name: "HS-17 another face for each connection", does: mcptest.TwoFaced, call: "-"},
		{name: "HS-19 asks what nobody declared", does: mcptest.Uninvited,
			call: `the server sent "sampling/createMessage", which the client did not declare to support`},
		{name: "HS-20 forms and pages that phish", does: mcptest.Phish, call: "caught: not asked not asked"},
		{name: "HS-20 a flood of forms", does: mcptest.FormFlood, call: asked},
		{name: "HS-21 asks again and again", does: mcptest.EndlessRounds,
			call: "elicitation/create: the client did not declare that it can be asked"},
		{name: "HS-21 a huge state", does: mcptest.HugeState, call: asked},
		{name: "HS-22 links to what is near", does: mcptest.Links, call: "-"},
		{name: "HS-23 says other things in one answer", does: mcptest.Lies, call: "-"},
		{name: "HS-24 sends calls to another origin", does: mcptest.Redirect, only: "HTTP",
			call: "redirect not followed"},
		{name: "HS-24 wants a sign-in again and again", does: mcptest.Challenge, only: "HTTP",
			call: "the server requires authentication"},
		{name: "HS-24 wants to be left alone for 30 years", does: mcptest.Busy, only: "HTTP", call: "429"},
		{name: "HS-24 a page in the place of an answer", does: mcptest.WebPage, only: "HTTP", call: lost},
		{name: "HS-25 knows no session that it is called in", does: mcptest.Forget, only: "HTTP", parts: stateful(),
			told: "-", call: "session expired"},
		{name: "HS-26 a task that never ends", does: mcptest.EndlessTask, call: "-"},
		{name: "HS-28 versions that there are not", does: mcptest.UnknownVersion, told: "mount bad: ", call: unknown},
		{name: "HS-28 words of the other generation", does: mcptest.MixedEras, parts: stateful(),
			call: `the server sent "sampling/createMessage", which the client did not declare to support`},
	}
}
