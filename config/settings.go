package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// Settings are the contents of drawbridge.toml except its rows. The zero value of a field means its default, which
// Fields documents and the part of the system that uses it applies. Values are checked: a file with a bad one is
// rejected as a whole.
type Settings struct {
	// Naming is the style of card names: "qualified", "mcp" or "bare".
	Naming string
	// FirstListWait is how long the first list waits for servers that were never tried; below 0 it does not wait.
	FirstListWait time.Duration
	// ProbeTimeout is how long a server may take to say which protocol it speaks, ConnectTimeout to connect and list,
	// CallTimeout to answer a call or show progress on it.
	ProbeTimeout, ConnectTimeout, CallTimeout time.Duration
	// IdleStop is how long a stdio server may go uncalled before it is stopped; below 0 it is never stopped.
	IdleStop time.Duration
	// MaxTools is the most tools taken from a server of the person's own, MaxToolsProject from one that a project
	// directory or a conversation brought.
	MaxTools, MaxToolsProject int
	// EnvIsolation restricts stdio servers to the base environment; nil means the default.
	EnvIsolation *bool
	// AllowedCommands are programs that a row may start which is not the person's own, beside the usual ones: names,
	// and paths with the signs of a glob.
	AllowedCommands []string
	// LockFile is the absolute path of the lockfile; empty where nothing names one, see LockfilePath.
	LockFile string
	// Roots are the directories that servers are told of where the caller has none.
	Roots []Root

	// ElicitationEnabled lets servers put questions before people whose rows do not say, ElicitationQueue so many at
	// once, each for ElicitationTimeout.
	ElicitationEnabled *bool
	ElicitationQueue   int
	ElicitationTimeout time.Duration
	// ElicitationWarnings has people told which fields sound like secrets; nil does.
	ElicitationWarnings *bool
	// AskTimeout is how long a call waits for a person's approval.
	AskTimeout time.Duration

	// StorePath is the absolute path of the store's file, StoreURL the URL of a database. At most one is set.
	StorePath, StoreURL string

	// TokenFile is the absolute path of the file that holds the bearer token of the HTTP door.
	TokenFile string
	// SessionTimeout is how long a session may go unused before it ends.
	SessionTimeout time.Duration
	// MaxBody is the most bytes that a request may have.
	MaxBody int64
	// PageSize is the most items on a page of a list.
	PageSize int
	// SpotlightHTTP marks results as foreign text for clients that come over HTTP, of servers whose rows do not say.
	SpotlightHTTP *bool
	// SpotlightClients does so for clients of these names, at either door: as they call themselves, or as their tokens
	// are called.
	SpotlightClients []string
	// Clients are the scopes of clients of the person's own, by the names that they call themselves; "*" is for all
	// others.
	Clients map[string][]string
	// OAuthSettings configures whose access tokens the HTTP endpoint accepts.
	OAuth OAuthSettings

	// Audit configures the records kept of calls.
	Audit AuditSettings

	// Rules decide which caller may call which tool; nil if there are none. The policy package checks their contents.
	Rules *drawbridge.Rules
	// InactiveRules is the position of rules that are not in force, "file:line" first; empty if there are none.
	InactiveRules string

	// Vectors configures the store for vectors of tools.
	Vectors VectorStoreSettings

	// Tools limits calls of tools; Shield configures the trust in servers.
	Tools  ToolLimits
	Shield ShieldSettings
	// Discovery configures how tools are found.
	Discovery ToolDiscovery
	// Models are those that run elsewhere.
	Models Models
}

// RootURIs returns the URIs of the roots.
func (s Settings) RootURIs() (uris []string) {
	for _, root := range s.Roots {
		uris = append(uris, root.URI)
	}
	return uris
}

// A setting is one member of a table of drawbridge.toml: its documentation and its reader.
type setting struct {
	section, name, typ, def, doc string
	// readValue stores the value in r.settings. The error describes the required value.
	readValue func(r *settingsReader, v configfile.Node) error
}

// settingTable lists all members of drawbridge.toml except rows.
var settingTable = slices.Concat([]setting{
	{"mcp", "naming", `"qualified", "mcp" or "bare"`, "qualified",
		"how cards are named: server__tool, mcp_server_tool, or the tool's own name",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Naming, v, "qualified", "mcp", "bare")
		}},
	{"mcp", "grace", "time", "250ms",
		"how long the first list waits for servers that were never tried; 0 does not wait",
		func(r *settingsReader, v configfile.Node) error {
			return readDurationAllowZero(&r.settings.FirstListWait, v)
		}},
	{"mcp", "probe_timeout", "time", "3s",
		"how long a server may take to say which protocol it speaks",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.ProbeTimeout, v)
		}},
	{"mcp", "connect_timeout", "time", "1m",
		"how long a server may take to connect and list",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.ConnectTimeout, v)
		}},
	{"mcp", "call_timeout", "time", "60s",
		"how long a call may go without an answer or a sign of progress",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.CallTimeout, v)
		}},
	{"mcp", "idle_stop", `time, or "never"`, "15m",
		"how long a stdio server may go uncalled before it is stopped",
		func(r *settingsReader, v configfile.Node) error { return readDurationOrNever(&r.settings.IdleStop, v) }},
	{"mcp", "max_tools", "whole number", "1000",
		"the most tools taken from a server of your own",
		func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.settings.MaxTools, v) }},
	{"mcp", "max_tools_project", "whole number", "100",
		"the most tools taken from a server that a project directory or a conversation brought",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.MaxToolsProject, v)
		}},
	{"mcp", "env_isolation", "boolean", "true",
		"restricts stdio servers to the base environment and their own env; false lets them inherit all of Drawbridge's environment except known secrets",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.EnvIsolation, v) }},
	{"mcp", "allowed_commands", "list of commands or paths", "[]",
		"what servers of projects may be started with beside npx, uvx, node, python, python3, docker, deno, bun and mcpls; * and ~/ are understood",
		func(r *settingsReader, v configfile.Node) error { return r.readAllowedCommands(v) }},
	{"mcp", "roots", "list of directories or file URIs, or table of them by name", "[]",
		`the directories that servers are told of when the caller has none; one may be a table {uri = "file:///srv/docs", name = "docs"}`,
		func(r *settingsReader, v configfile.Node) error { return r.readRoots(&r.settings.Roots, v) }},
	{"mcp", "elicitation_enabled", "boolean", "on for outside clients, off in a session",
		"lets servers put questions before people whose rows do not say",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.ElicitationEnabled, v) }},
	{"mcp", "elicitation_timeout", "seconds, or a time", "2m",
		"how long a form waits for a person; then it is called off",
		func(r *settingsReader, v configfile.Node) error {
			return readSeconds(&r.settings.ElicitationTimeout, v)
		}},
	{"mcp", "elicitation_queue_capacity", "whole number", "16",
		"how many questions of one server wait for one person at once; more are declined",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.ElicitationQueue, v)
		}},
	{"mcp", "elicitation_warn_sensitive_fields", "boolean", "true",
		"names the fields of a form that sound like secrets, for the client to warn of",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.ElicitationWarnings, v) }},
	{"mcp", "lock_file", "path", "drawbridge.lock beside drawbridge.toml, if it is there",
		"the file with the definitions that servers may show, as drawbridge lock write makes it; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.LockFile, v) }},
	{"mcp.shield", "enabled", "boolean", "true",
		"keeps an account of how each server behaves, and takes the cards of one that is not trusted off the deck",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Shield.Enabled, v) }},
	{"mcp.shield", "quarantine_threshold", "number from 0 to 1", "0.4",
		"the trust under which a server is quarantined; 0 quarantines none",
		func(r *settingsReader, v configfile.Node) error { return readFraction(&r.settings.Shield.Threshold, v) }},
	{"mcp.shield", "decay_half_life_secs", "seconds, or a time", "3600",
		"how long it takes until half of the trust that was lost has come back",
		func(r *settingsReader, v configfile.Node) error { return readSeconds(&r.settings.Shield.HalfLife, v) }},
	{"mcp.shield", "hold_flagged", "boolean", "false",
		"holds back results in which the shield meets a rule, of servers whose rows do not say; a person can read them with drawbridge shield results",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Shield.HoldFlagged, v) }},
	{"tools", "max_tool_calls_per_session", "whole number", "",
		"the most calls of a caller until there was none for 30 minutes: a new connection begins no new session",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.Tools.PerSession, v)
		}},
	{"tools", "max_tool_calls_per_caller", `calls in a time, such as "1000/day"`, "",
		"the most calls of a caller in a time, which begins with the first one: minute, hour, day, week, or such as 10m",
		func(r *settingsReader, v configfile.Node) error {
			return readCallRate(&r.settings.Tools.PerCaller, &r.settings.Tools.Window, v)
		}},
	{"tools", "max_identical_errors", `whole number, or "unlimited"`, "25",
		"how often the same call may end in the same error within 60 seconds",
		func(r *settingsReader, v configfile.Node) error {
			return readIntOrUnlimited(&r.settings.Tools.SameErrors, v)
		}},
	{"tools", "max_identical_calls", `whole number, or "unlimited"`, "unlimited",
		"how often the same call may end the same way within 60 seconds",
		func(r *settingsReader, v configfile.Node) error {
			return readIntOrUnlimited(&r.settings.Tools.SameCalls, v)
		}},
	{"tools", "ask_timeout", "time", "5m",
		"how long a call waits for a person's approval; after it the answer is no",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.AskTimeout, v)
		}},
	{"store", "path", "path", "where the system keeps a user's data",
		"the file of the store; variables are put in",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.StorePath, v) }},
	{"store", "url", "postgres:// URL", "",
		"a database in the place of the file; variables are put in",
		func(r *settingsReader, v configfile.Node) error { return r.readDatabaseURL(&r.settings.StoreURL, v) }},
	{"serve", "token_file", "path", "",
		"the file with the bearer token that HTTP clients must send; variables are put in",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.TokenFile, v) }},
	{"serve", "session_timeout", "time", "30m",
		"how long an HTTP session may go unused before it ends",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.SessionTimeout, v)
		}},
	{"serve", "max_body", "bytes", "4194304",
		"the most bytes of an HTTP request",
		func(r *settingsReader, v configfile.Node) error { return readByteCount(&r.settings.MaxBody, v) }},
	{"serve", "page_size", "whole number", "1000",
		"the most items on a page of a list",
		func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.settings.PageSize, v) }},
	{"serve", "fence", "boolean, or list of names", "false",
		"marks results as foreign text, of servers whose rows do not say: for HTTP clients, or for the clients of these names, as they call themselves or their tokens are called",
		func(r *settingsReader, v configfile.Node) error {
			return readBoolOrNames(&r.settings.SpotlightHTTP, &r.settings.SpotlightClients, v)
		}},
	{"serve", "public_url", "URL", "",
		"where clients reach the HTTP door from, without the /mcp; beyond loopback an issuer needs it",
		func(r *settingsReader, v configfile.Node) error { return r.readWebURL(&r.settings.OAuth.PublicURL, v) }},
	{"serve", "issuer", "URL, or list of URLs", "",
		"the OAuth issuers whose access tokens the HTTP door takes, as their metadata name them",
		func(r *settingsReader, v configfile.Node) error { return r.readIssuers(v) }},
	{"serve", "audience", "string", "public_url and /mcp",
		"what an access token must be for",
		func(r *settingsReader, v configfile.Node) error { return r.readText(&r.settings.OAuth.Audience, v) }},
	{"serve", "scopes", "table of lists", `{mcp = ["mcp:*"]}, and mcp:NAME as it is`,
		"the rights that each scope of the issuer grants: mcp:NAME is the server NAME, mcp:* all of them",
		func(r *settingsReader, v configfile.Node) error {
			return readScopesByName(&r.settings.OAuth.Scopes, v, false)
		}},
	{"serve", "clients", "table of lists", "everything",
		"what one of your own clients holds that calls itself so: on standard input, with the token of token_file, or where none is needed; \"*\" is for all others",
		func(r *settingsReader, v configfile.Node) error {
			return readScopesByName(&r.settings.Clients, v, true)
		}},
	{"serve", "client_credentials", "boolean", "false",
		"takes access tokens that a program got for itself: they have a client_id and no subject",
		func(r *settingsReader, v configfile.Node) error {
			return readBool(&r.settings.OAuth.AllowWithoutSubject, v)
		}},
	{"serve", "clock_skew", "time", "30s",
		"how far an issuer's clock may be off, at most 5m",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.OAuth.ClockSkew, v)
		}},
	{"serve", "introspection_url", "URL", "",
		"the issuer's introspection endpoint (RFC 7662): needed for tokens that are not JWTs, and notices revoked ones",
		func(r *settingsReader, v configfile.Node) error {
			return r.readWebURL(&r.settings.OAuth.IntrospectionURL, v)
		}},
	{"serve", "introspection_client_id", "string", "",
		"who we are to introspection_url",
		func(r *settingsReader, v configfile.Node) error {
			return r.readText(&r.settings.OAuth.IntrospectionClient, v)
		}},
	{"serve", "introspection_client_secret_file", "path", "",
		"the file with the secret that goes with introspection_client_id; variables are put in",
		func(r *settingsReader, v configfile.Node) error {
			return r.readPath(&r.settings.OAuth.IntrospectionSecretFile, v)
		}},
	{"tools", "policy", "table", "no rules",
		"who may call what: rules, the first that matches decides, and a default_effect; see docs/policy.md",
		func(r *settingsReader, v configfile.Node) error { return r.rules.readPolicyTable(v) }},
	{"tools", "authorization", "table", "no rules",
		"more rules, which follow those of policy where enabled is true: an action and tools each",
		func(r *settingsReader, v configfile.Node) error { return r.rules.readAuthorizationTable(v) }},
}, discoverySettingTable(), vectorSettingTable, modelSettingTable(), auditSettingTable)

// A settingsReader reads the settings of one file.
type settingsReader struct {
	valueReader
	settings Settings
	rules    rulesReader
	problems []*configfile.Error
}

// readTables reads all tables of the file. The error is a *configfile.Error; unknown settings are problems only.
func (r *settingsReader) readTables(root configfile.Node) error {
	for _, section := range root.Members {
		if len(settingNames(section.Name)) == 0 {
			r.reportUnknownSetting(section, "", []string{"mcp", "tools", "store", "serve", "audit"})
			if looksLikeRules(section) {
				return r.problems[len(r.problems)-1]
			}
		} else if err := r.readSection(section.Name, section); err != nil {
			return err
		}
	}
	if r.settings.StorePath != "" && r.settings.StoreURL != "" {
		m, _ := root.Find("store", "url")
		return configfile.ErrorAt(m.Line, "store.path and store.url are both set; the store is one of them")
	}
	r.settings.Rules = r.rules.activeRules()
	if idle := r.rules.inactiveRules(); idle != nil {
		r.problems = append(r.problems, idle)
		r.settings.InactiveRules = fmt.Sprintf("%s:%d: %s", r.rules.File, idle.Line, idle.Text)
	}
	return nil
}

// readSection reads a table of settings, and those in it.
func (r *settingsReader) readSection(name string, section configfile.Member) error {
	if section.Value.Kind != configfile.Table {
		return configfile.ErrorAt(section.Line, "%q must be a table", name)
	}
	for _, m := range section.Value.Members {
		full := name + "." + m.Name
		if full == "mcp.servers" {
			continue // rows, not a setting
		}
		if isSection(full) {
			if err := r.readSection(full, m); err != nil {
				return err
			}
			continue
		}
		known := findSetting(name, m.Name)
		if known == nil {
			r.reportUnknownSetting(m, name+".", settingNames(name))
			if name == "tools" { // what guards is read whole or not at all
				return r.problems[len(r.problems)-1]
			}
			continue
		}
		err := known.readValue(r, m.Value)
		if at, ok := errors.AsType[*configfile.Error](err); ok {
			return at
		} else if err != nil {
			return configfile.ErrorAt(m.Line, "%s %s", full, err)
		}
	}
	return nil
}

func (r *settingsReader) reportUnknownSetting(m configfile.Member, prefix string, known []string) {
	r.problems = append(r.problems, configfile.ErrorAt(m.Line, "unknown setting %q%s", prefix+m.Name,
		configfile.DidYouMean(m.Name, known)))
}

func findSetting(section, name string) *setting {
	for i, s := range settingTable {
		if s.section == section && s.name == name {
			return &settingTable[i]
		}
	}
	return nil
}

// isSection reports whether a table of that name holds settings, or tables that do.
func isSection(name string) bool {
	return slices.ContainsFunc(settingTable, func(s setting) bool { return strings.HasPrefix(s.section+".", name+".") })
}

func settingNames(section string) (names []string) {
	for _, s := range settingTable {
		if s.section == section {
			names = append(names, s.name)
		}
	}
	return names
}
