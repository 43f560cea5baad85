package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A rowMember is one member of a row: its documentation and its reader.
type rowMember struct {
	name, typ, def, doc string
	// inHash is set if the member counts in the row's hash: a change of it requires a new approval and invalidates
	// stored data about the row.
	inHash bool
	// read is nil for the name, which is read first.
	read func(r *rowReader, v configfile.Node)
}

// rowMemberTable lists all members of a row. If a guarding member cannot be read, the row is refused; other members
// warn.
var rowMemberTable = []rowMember{
	{"name", "string", "",
		"names the server in the array form of mcp.json; in the object form the key does, in drawbridge.toml the member id",
		false, nil},
	{"type", `"stdio", "http" or "sse"`, "stdio with a command; with a url http, then sse",
		"how the server is reached; local means stdio; streamable-http, streamableHttp, streamable_http, remote mean http",
		true, func(r *rowReader, v configfile.Node) { r.readTransport(v) }},
	{"command", "string", "",
		"the program of a stdio server; ${VAR} and ${VAR:-default} are put in",
		true, func(r *rowReader, v configfile.Node) { r.server.Command = r.readText("command", v) }},
	{"args", "list of strings", "[]",
		"the program's arguments; variables are put in",
		true, func(r *rowReader, v configfile.Node) { r.readArgs(v) }},
	{"env", "object of strings", "{}",
		"environment variables for the program, beside the base environment; see Values",
		true, func(r *rowReader, v configfile.Node) { r.server.Env = r.readPairs("env", v) }},
	// A server of the person's own is one process for all hosts of the machine, wherever they were started.
	{"cwd", "string", "your home; in a project its directory; with --mcp the working directory",
		"the program's directory; a relative one starts at the working directory; variables are put in",
		true, func(r *rowReader, v configfile.Node) { r.server.Cwd = r.readText("cwd", v) }},
	{"url", "string", "",
		"the address of an http or sse server; variables are put in",
		true, func(r *rowReader, v configfile.Node) { r.server.URL = r.readText("url", v) }},
	{"headers", "object of strings", "{}",
		"headers for every request to the url; see Values",
		true, func(r *rowReader, v configfile.Node) { r.server.Headers = r.readPairs("headers", v) }},
	{"enabled", "boolean", "true",
		"false keeps the row in the file and the server off",
		false, func(r *rowReader, v configfile.Node) { r.readEnabled(v) }},
	{"timeout", "milliseconds, or a time", "[mcp] call_timeout",
		`how long a call of this server may take: 60000 or "60s"`,
		false, func(r *rowReader, v configfile.Node) { r.readTimeout(v) }},
	{"expected_tools", "list of strings", "all tools",
		"the only tools the server may offer; an empty list allows none",
		true, func(r *rowReader, v configfile.Node) { r.readExpectedTools(v) }},
	{"lock_tool_list", "boolean", "false",
		"keeps the first list of tools, whatever the server says later",
		true, func(r *rowReader, v configfile.Node) { r.server.LockToolList = r.readFlag("lock_tool_list", v) }},
	{"env_isolation", "boolean", "[mcp] env_isolation",
		"restricts the program to the base environment and its own env; false inherits all of Drawbridge's environment except known secrets",
		true, func(r *rowReader, v configfile.Node) { r.server.EnvIsolation = r.readFlag("env_isolation", v) }},
	{"elicitation_enabled", "boolean", "on for outside clients, off in a session",
		"lets the server ask the person at the other end",
		true, func(r *rowReader, v configfile.Node) {
			r.server.ElicitationEnabled = r.readFlag("elicitation_enabled", v)
		}},
	{"isolate", `"session"`, "callers of one principal share",
		"session starts a separate server for each caller",
		true, func(r *rowReader, v configfile.Node) { r.server.Isolate = r.readWord("isolate", v, "session") }},
	{"share", `"all"`, "one principal's callers",
		"all lets every principal share one server",
		true, func(r *rowReader, v configfile.Node) { r.server.Share = r.readWord("share", v, "all") }},
	{"credentials", `"per-caller", or a name`, "",
		"which credentials the server is given: each caller's own, or stored ones",
		true, func(r *rowReader, v configfile.Node) { r.readCredentials(v) }},
	{"confine", `"off", "auto", "required", or an object`, "off",
		"keeps the program to its own files; an object has level (required unless it says auto), read and write (lists of paths), network (true or false)",
		true, func(r *rowReader, v configfile.Node) { r.readConfinement(v) }},
	{"idle_stop", `time, or "never"`, "[mcp] idle_stop",
		"how long a stdio server may go uncalled before it is stopped; the next call starts it again",
		false, func(r *rowReader, v configfile.Node) { r.readIdleStop(v) }},
	{"trust", `"trusted", "untrusted" or "sandboxed"`, "untrusted",
		"the most that the server is ever trusted",
		true, func(r *rowReader, v configfile.Node) {
			r.server.Trust = r.readWord("trust", v, "trusted", "untrusted", "sandboxed")
		}},
	// Both are read when all else is: see signIn.
	{"auth", "object, or false", "what the server asks for",
		"how to sign in at the server; see Signing in",
		true, func(*rowReader, configfile.Node) {}},
	{"oauth", "object, or false", "",
		"another name for auth, whose members count first; of a row with it the type is oauth",
		true, func(*rowReader, configfile.Node) {}},
	{"fence", "boolean", "off for outside clients, on in a session",
		"marks the server's results as foreign text",
		true, func(r *rowReader, v configfile.Node) { r.server.Spotlight = r.readFlag("fence", v) }},
	{"hold_flagged", "boolean", "[mcp.shield] hold_flagged",
		"holds back the server's results in which the shield meets a rule; a person can read them",
		true, func(r *rowReader, v configfile.Node) { r.server.HoldFlagged = r.readFlag("hold_flagged", v) }},
	{"max_tools", "whole number", "[mcp] max_tools",
		"the most tools that are taken from the server; what is over it is shown, not listed",
		true, func(r *rowReader, v configfile.Node) { r.readPositiveInt("max_tools", &r.server.MaxTools, v) }},
	{"max_calls_per_minute", "whole number", "any number",
		"the most calls of the server's tools in any 60 seconds, of all callers together",
		true, func(r *rowReader, v configfile.Node) {
			r.readPositiveInt("max_calls_per_minute", &r.server.MaxCallsPerMinute, v)
		}},
	{"imported_from", "string", "",
		"the program that the row was taken over from, by drawbridge import",
		false, func(r *rowReader, v configfile.Node) { r.server.ImportedFrom, _ = v.TextValue() }},
}

// findRowMember returns the entry of a member, or nil.
func findRowMember(name string) *rowMember {
	for i := range rowMemberTable {
		if rowMemberTable[i].name == name {
			return &rowMemberTable[i]
		}
	}
	return nil
}

func rowMemberNames() []string {
	names := make([]string, 0, len(rowMemberTable))
	for _, m := range rowMemberTable {
		names = append(names, m.name)
	}
	return names
}
