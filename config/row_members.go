package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A rowMember describes one member of a row: its documentation and the function that reads it.
type rowMember struct {
	name, typ, def, doc string
	// inHash is set if Server.Hash covers the member. A change of such a member requires a new approval and invalidates
	// stored data about the row.
	inHash bool
	// read reads the member's value. It is nil for the name, which is read before the other members.
	read func(r *rowReader, v configfile.Node)
}

// rowMemberTable lists all members of a row. If a member that restricts the server has an invalid value, the row is
// refused. An invalid value of another member may cause only a warning.
var rowMemberTable = []rowMember{
	{"name", "string", "",
		"the name of the server in the array form of mcp.json; in the object form the key is the name, in drawbridge.toml the member id",
		false, nil},
	{"type", `"stdio", "http" or "sse"`, "stdio with a command; with a url http, then sse",
		"the transport; local means stdio; streamable-http, streamableHttp, streamable_http and remote mean http",
		true, func(r *rowReader, v configfile.Node) { r.readTransport(v) }},
	{"command", "string", "",
		"the program of a stdio server; ${VAR} and ${VAR:-default} are expanded",
		true, func(r *rowReader, v configfile.Node) { r.server.Command = r.readText("command", v) }},
	{"args", "list of strings", "[]",
		"the program's arguments; variables are expanded",
		true, func(r *rowReader, v configfile.Node) { r.readArgs(v) }},
	{"env", "object of strings", "{}",
		"environment variables for the program, in addition to the base environment; see Values",
		true, func(r *rowReader, v configfile.Node) { r.server.Env = r.readPairs("env", v) }},
	// A server in the user's own files runs once for all clients, which may have different working directories.
	// Therefore its program starts in the home directory by default.
	{"cwd", "string", "your home; in a project its directory; with --mcp the working directory",
		"the program's working directory; a relative path starts at Drawbridge's working directory; variables are expanded",
		true, func(r *rowReader, v configfile.Node) { r.server.Cwd = r.readText("cwd", v) }},
	{"url", "string", "",
		"the URL of an http or sse server; variables are expanded",
		true, func(r *rowReader, v configfile.Node) { r.server.URL = r.readText("url", v) }},
	{"headers", "object of strings", "{}",
		"headers for every request to the url; see Values",
		true, func(r *rowReader, v configfile.Node) { r.server.Headers = r.readPairs("headers", v) }},
	{"enabled", "boolean", "true",
		"false turns the server off and keeps its row",
		false, func(r *rowReader, v configfile.Node) { r.readEnabled(v) }},
	{"timeout", "milliseconds, or a time", "[mcp] call_timeout",
		`time limit of a call to this server: 60000 or "60s"; progress restarts it; connecting has [mcp] connect_timeout`,
		false, func(r *rowReader, v configfile.Node) { r.readTimeout(v) }},
	{"expected_tools", "list of strings", "all tools",
		"the only tools the server may offer; an empty list allows none",
		true, func(r *rowReader, v configfile.Node) { r.readExpectedTools(v) }},
	{"lock_tool_list", "boolean", "false",
		"keeps the first list of tools and ignores later changes",
		true, func(r *rowReader, v configfile.Node) { r.server.LockToolList = r.readFlag("lock_tool_list", v) }},
	{"env_isolation", "boolean", "[mcp] env_isolation",
		"restricts the program to the base environment and its own env; false inherits all of Drawbridge's environment except known secrets",
		true, func(r *rowReader, v configfile.Node) { r.server.EnvIsolation = r.readFlag("env_isolation", v) }},
	{"elicitation_enabled", "boolean", "on for external clients, off for models that Drawbridge runs",
		"lets the server ask the user of a client",
		true, func(r *rowReader, v configfile.Node) {
			r.server.ElicitationEnabled = r.readFlag("elicitation_enabled", v)
		}},
	{"isolate", `"session"`, "callers of one principal share",
		"session starts a separate server process or connection for each caller",
		true, func(r *rowReader, v configfile.Node) { r.server.Isolate = r.readWord("isolate", v, "session") }},
	{"share", `"all"`, "one principal's callers",
		"all lets all principals share one server process or connection",
		true, func(r *rowReader, v configfile.Node) { r.server.Share = r.readWord("share", v, "all") }},
	{"credentials", `"per-caller", or a name`, "",
		"the credentials that are sent to the server: each caller's own, or stored ones by name",
		true, func(r *rowReader, v configfile.Node) { r.readCredentials(v) }},
	{"confine", `"off", "auto", "required", or an object`, "off; auto in rows of projects",
		"restricts the program to its own files. The members of an object are level (\"auto\" or \"required\", the default), read and write (lists of paths), and network (true or false)",
		true, func(r *rowReader, v configfile.Node) { r.readConfinement(v) }},
	{"idle_stop", `time, or "never"`, "[mcp] idle_stop",
		"stops a stdio server after this time without a call; the next call starts it again",
		false, func(r *rowReader, v configfile.Node) { r.readIdleStop(v) }},
	{"trust", `"trusted", "untrusted" or "sandboxed"`, "untrusted",
		"the highest trust level that the server can have",
		true, func(r *rowReader, v configfile.Node) {
			r.server.Trust = r.readWord("trust", v, "trusted", "untrusted", "sandboxed")
		}},
	{"labels", "label, list of labels, or object", "by trust",
		"labels of the server's results: private, untrusted, project, internal or public; an object has labels by tool, such as {\"search_*\": \"untrusted\"}. Integrity is only lowered; see docs/information-flow.md",
		true, func(r *rowReader, v configfile.Node) { r.readLabels(v) }},
	// The members auth and oauth are read by readAuth, after all other members.
	{"auth", "object, or false", "discovered from the server",
		"how to sign in at the server; see Signing in",
		true, func(*rowReader, configfile.Node) {}},
	{"oauth", "object, or false", "",
		"an older name for auth; members of auth take precedence, and the type is oauth by default",
		true, func(*rowReader, configfile.Node) {}},
	{"fence", "boolean", "off for external clients, on for models that Drawbridge runs",
		"marks the server's results as foreign text",
		true, func(r *rowReader, v configfile.Node) { r.server.Spotlight = r.readFlag("fence", v) }},
	{"hold_flagged", "boolean", "[mcp.shield] hold_flagged",
		"holds back results of the server that match a rule of the shield; a person can read them",
		true, func(r *rowReader, v configfile.Node) { r.server.HoldFlagged = r.readFlag("hold_flagged", v) }},
	{"sandbox", "boolean", "true",
		"whether scripts in the sandbox may call the server's tools",
		false, func(r *rowReader, v configfile.Node) {
			if b := r.readFlag("sandbox", v); b != nil {
				r.server.NotForScripts = !*b
			}
		}},
	{"max_tools", "whole number", "[mcp] max_tools",
		"the maximum number of tools of the server; further tools are reported and not listed",
		true, func(r *rowReader, v configfile.Node) { r.readPositiveInt("max_tools", &r.server.MaxTools, v) }},
	{"max_calls_per_minute", "whole number", "no limit",
		"the maximum number of calls of the server's tools in any 60 seconds, over all callers",
		true, func(r *rowReader, v configfile.Node) {
			r.readPositiveInt("max_calls_per_minute", &r.server.MaxCallsPerMinute, v)
		}},
	{"imported_from", "string", "",
		"the program that drawbridge import copied the row from",
		false, func(r *rowReader, v configfile.Node) { r.server.ImportedFrom, _ = v.TextValue() }},
}

// findRowMember returns the description of the member with the given name; nil if the member is unknown.
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
