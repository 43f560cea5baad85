package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// Settings are the contents of drawbridge.toml except its rows. The zero value of a field means its default.
// DocumentedFields documents the defaults; the code that uses a field applies its default. A file with one invalid
// value is rejected as a whole.
type Settings struct {
	// Naming is the style of tool names: "qualified", "mcp" or "bare".
	Naming string
	// FirstListWait is how long the first list request of a client waits for servers that were never started before.
	// The tools of such servers are not known yet. A negative value means no wait.
	FirstListWait time.Duration
	// ProbeTimeout limits the detection of a server's protocol. ConnectTimeout limits connecting to a server and
	// listing its tools. CallTimeout limits a call; each progress notification restarts this timeout.
	ProbeTimeout, ConnectTimeout, CallTimeout time.Duration
	// AnswersInFlight is how many bytes of large answers of servers are in memory at the same time; 0 means the
	// default.
	AnswersInFlight int64
	// IdleStop is the time without calls after which a stdio server is stopped. A negative value never stops it.
	IdleStop time.Duration
	// MaxTools is the maximum number of tools of a server in the person's own files. MaxToolsProject is the maximum
	// number for a server from a project directory or a conversation.
	MaxTools, MaxToolsProject int
	// EnvIsolation restricts stdio servers to the base environment; nil means the default.
	EnvIsolation *bool
	// AllowedCommands are additional programs that a project's row may start. Each is a program's name or a glob of
	// paths.
	AllowedCommands []string
	// LockFile is the absolute path of the lockfile; empty means the default path that LockfilePath returns.
	LockFile string
	// Roots are the directories that servers receive as MCP roots if the caller has no roots.
	Roots []Root

	// ElicitationEnabled lets servers ask people; it applies to rows without elicitation_enabled. ElicitationQueue is
	// the maximum number of questions of one server that wait for one person at the same time. ElicitationTimeout
	// limits the wait for each answer.
	ElicitationEnabled *bool
	ElicitationQueue   int
	ElicitationTimeout time.Duration
	// ElicitationWarnings marks form fields that ask for secrets, so that the client can warn; nil means true.
	ElicitationWarnings *bool
	// AskTimeout is how long a call waits for a person's approval; then the call is refused.
	AskTimeout time.Duration
	// AskNotice shows a desktop notification for each call that waits for approval; nil means false. AskWebhook is a
	// URL that receives a POST request for each such call; empty means no webhook. AskWebhookSecretFile is the path of
	// the file with the secret that signs these requests.
	AskNotice                        *bool
	AskWebhook, AskWebhookSecretFile string

	// StorePath is the absolute path of the store's file. StoreURL is the URL of a database that is used instead of the
	// file. At most one of them is set.
	StorePath, StoreURL string
	// WorkspacePath and WorkspaceURL are the same for the workspace.
	WorkspacePath, WorkspaceURL string

	// TokenFile is the absolute path of the file that contains the bearer token of the HTTP endpoint.
	TokenFile string
	// SessionTimeout is the time without requests after which an HTTP session ends.
	SessionTimeout time.Duration
	// MaxBody is the maximum size of an HTTP request's body, in bytes.
	MaxBody int64
	// PageSize is the maximum number of items on a page of a list.
	PageSize int
	// SpotlightHTTP marks results as foreign text for all HTTP clients. It applies to the results of servers whose row
	// has no member fence.
	SpotlightHTTP *bool
	// SpotlightClients marks results as foreign text for clients with these names, over HTTP and stdio. It applies to
	// the same servers as SpotlightHTTP. A client's name is the name that it declares, or the name of its token.
	SpotlightClients []string
	// Clients maps the declared name of each of the person's own clients to the client's scopes; "*" means all other
	// clients.
	Clients map[string][]string
	// OAuth configures the issuers whose access tokens the HTTP endpoint accepts.
	OAuth OAuthSettings

	// Audit configures the audit records of calls.
	Audit AuditSettings

	// Rules decide which caller may call which tool; nil without rules. The policy package validates them.
	Rules *drawbridge.Rules
	// InactiveRules describes rules that have no effect because their table does not contain "enabled", as "file:line:
	// text". It is empty without such rules.
	InactiveRules string

	// Vectors configures the store for vectors of tools.
	Vectors VectorStoreSettings

	// Tools limits calls of tools. Shield configures the trust scores of servers.
	Tools  ToolLimits
	Shield ShieldSettings
	// Discovery configures the search for tools.
	Discovery ToolDiscovery
	// Models configures external models.
	Models Models
	// Deck configures Drawbridge's own tools.
	Deck DeckSettings
	// Flow configures the guard of information flow.
	Flow FlowSettings
	// Sandbox configures the tool run_python.
	Sandbox SandboxSettings
	// Agent configures Drawbridge's own agent. Providers configures providers of language models, in the order of the
	// file.
	Agent     AgentSettings
	Providers []ModelProvider
}

// RootURIs returns the URIs of the roots.
func (s Settings) RootURIs() (uris []string) {
	for _, root := range s.Roots {
		uris = append(uris, root.URI)
	}
	return uris
}

// A setting describes one member of a table of drawbridge.toml: its documentation and the function that reads it.
type setting struct {
	section, name, typ, def, doc string
	// readValue stores the value in r.settings. The error describes which values are valid.
	readValue func(r *settingsReader, v configfile.Node) error
}

// settingTable lists all members of drawbridge.toml except rows.
var settingTable = slices.Concat([]setting{
	{"mcp", "naming", `"qualified", "mcp" or "bare"`, "qualified",
		"the names of tools: server__tool, mcp_server_tool, or the tool's own name",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Naming, v, "qualified", "mcp", "bare")
		}},
	{"mcp", "grace", "time", "250ms",
		"how long the first list waits for servers that were never started before; 0 does not wait",
		func(r *settingsReader, v configfile.Node) error {
			return readDurationAllowZero(&r.settings.FirstListWait, v)
		}},
	{"mcp", "probe_timeout", "time", "3s",
		"time limit for finding out which protocol a server supports",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.ProbeTimeout, v)
		}},
	{"mcp", "connect_timeout", "time", "1m",
		"time limit for connecting to a server and listing it",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.ConnectTimeout, v)
		}},
	{"mcp", "call_timeout", "time", "60s",
		"time limit of a call; progress restarts it",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.CallTimeout, v)
		}},
	{"mcp", "answers_in_flight", "whole number", "268435456",
		"the maximum size in bytes of all large answers of servers that are in memory at the same time: from 1048576",
		func(r *settingsReader, v configfile.Node) error {
			return readAnswersInFlight(&r.settings.AnswersInFlight, v)
		}},
	{"mcp", "idle_stop", `time, or "never"`, "15m",
		"stops a stdio server after this time without a call",
		func(r *settingsReader, v configfile.Node) error { return readDurationOrNever(&r.settings.IdleStop, v) }},
	{"mcp", "max_tools", "whole number", "1000",
		"the maximum number of tools of a server in your own files",
		func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.settings.MaxTools, v) }},
	{"mcp", "max_tools_project", "whole number", "100",
		"the maximum number of tools of a server from a project directory or a conversation",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.MaxToolsProject, v)
		}},
	{"mcp", "env_isolation", "boolean", "true",
		"restricts stdio servers to the base environment and their own env; false lets them inherit all of Drawbridge's environment except known secrets",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.EnvIsolation, v) }},
	{"mcp", "allowed_commands", "list of commands or paths", "[]",
		"further commands that servers of projects may use, in addition to npx, uvx, node, python, python3, docker, deno, bun and mcpls; may contain * and ~/",
		func(r *settingsReader, v configfile.Node) error { return r.readAllowedCommands(v) }},
	{"mcp", "roots", "list of directories or file URIs, or table of them by name", "[]",
		`the directories that servers get as roots if the caller has none; one may be a table {uri = "file:///srv/docs", name = "docs"}`,
		func(r *settingsReader, v configfile.Node) error { return r.readRoots(&r.settings.Roots, v) }},
	{"mcp", "elicitation_enabled", "boolean", "on for external clients, off for models that Drawbridge runs",
		"lets servers ask the user of a client; for rows without elicitation_enabled",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.ElicitationEnabled, v) }},
	{"mcp", "elicitation_timeout", "seconds, or a time", "2m",
		"how long a form waits for an answer before it is cancelled",
		func(r *settingsReader, v configfile.Node) error {
			return readSeconds(&r.settings.ElicitationTimeout, v)
		}},
	{"mcp", "elicitation_queue_capacity", "whole number", "16",
		"the maximum number of questions of one server that wait for one person; further ones are declined",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.ElicitationQueue, v)
		}},
	{"mcp", "elicitation_warn_sensitive_fields", "boolean", "true",
		"marks the fields of a form that ask for secrets, so that the client can warn",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.ElicitationWarnings, v) }},
	{"mcp", "lock_file", "path", "drawbridge.lock beside drawbridge.toml, if it exists",
		"the lockfile, written by drawbridge lock write; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.LockFile, v) }},
	{"mcp.shield", "enabled", "boolean", "true",
		"keeps a trust score for each server, and hides the tools of a server with too little trust",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Shield.Enabled, v) }},
	{"mcp.shield", "quarantine_threshold", "number from 0 to 1", "0.4",
		"a server with a lower trust score is quarantined; 0 quarantines none",
		func(r *settingsReader, v configfile.Node) error { return readFraction(&r.settings.Shield.Threshold, v) }},
	{"mcp.shield", "decay_half_life_secs", "seconds, or a time", "3600",
		"the time in which half of the lost trust returns",
		func(r *settingsReader, v configfile.Node) error { return readSeconds(&r.settings.Shield.HalfLife, v) }},
	{"mcp.shield", "hold_flagged", "boolean", "false",
		"holds back results that match a rule of the shield, for rows without hold_flagged; a person can read them with drawbridge shield results",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.Shield.HoldFlagged, v) }},
	{"mcp.shield", "scan_results", `"after" or "off"`, "after",
		"with after, results of servers that are not trusted are examined after the client has received them; drawbridge shield results lists those that match a rule",
		func(r *settingsReader, v configfile.Node) error {
			return readOneOf(&r.settings.Shield.ScanResults, v, ScanAfter, ScanOff)
		}},
	{"tools", "max_tool_calls_per_session", "whole number", "",
		"the maximum number of calls of a caller in a session, which ends after 30 minutes without a call; a new connection does not start a new session",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveInt(&r.settings.Tools.PerSession, v)
		}},
	{"tools", "max_tool_calls_per_caller", `calls in a period, such as "1000/day"`, "",
		"the maximum number of calls of a caller in a period, which starts with the first call: minute, hour, day, week, or a time such as 10m",
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
		"how long a call waits for a person's approval before it is refused",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.AskTimeout, v)
		}},
	{"tools", "ask_notice", "boolean", "false",
		"shows a notification on the desktop for each call that waits for approval (Linux, macOS, BSD)",
		func(r *settingsReader, v configfile.Node) error { return readBool(&r.settings.AskNotice, v) }},
	{"tools", "ask_webhook", "URL", "",
		"receives a signed POST request for each call that waits for approval; it has no arguments of the call",
		func(r *settingsReader, v configfile.Node) error { return r.readWebURL(&r.settings.AskWebhook, v) }},
	{"tools", "ask_webhook_secret_file", "path", "",
		"the file with the secret that signs these requests, required with ask_webhook; variables are expanded",
		func(r *settingsReader, v configfile.Node) error {
			return r.readPath(&r.settings.AskWebhookSecretFile, v)
		}},
	{"store", "path", "path", "in the system's directory for user data",
		"the file of the store; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.StorePath, v) }},
	{"store", "url", "postgres:// URL", "",
		"a database in place of the file; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readDatabaseURL(&r.settings.StoreURL, v) }},
	{"workspace", "path", "path", "beside the default file of the store",
		"the file of the workspace, which drawbridge workspace init makes; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.WorkspacePath, v) }},
	{"workspace", "url", "postgres:// URL", "",
		"a database in place of the file; variables are expanded",
		func(r *settingsReader, v configfile.Node) error {
			return r.readDatabaseURL(&r.settings.WorkspaceURL, v)
		}},
	{"serve", "token_file", "path", "",
		"the file with the bearer token that HTTP clients must send; variables are expanded",
		func(r *settingsReader, v configfile.Node) error { return r.readPath(&r.settings.TokenFile, v) }},
	{"serve", "session_timeout", "time", "30m",
		"ends an HTTP session after this time without a request",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.SessionTimeout, v)
		}},
	{"serve", "max_body", "bytes", "4194304",
		"the maximum size of an HTTP request",
		func(r *settingsReader, v configfile.Node) error { return readByteCount(&r.settings.MaxBody, v) }},
	{"serve", "page_size", "whole number", "1000",
		"the maximum number of items on a page of a list",
		func(r *settingsReader, v configfile.Node) error { return readPositiveInt(&r.settings.PageSize, v) }},
	{"serve", "fence", "boolean, or list of names", "false",
		"marks results as foreign text, for rows without fence: for all HTTP clients, or for clients with these names (the declared name, or the name of the token)",
		func(r *settingsReader, v configfile.Node) error {
			return readBoolOrNames(&r.settings.SpotlightHTTP, &r.settings.SpotlightClients, v)
		}},
	{"serve", "public_url", "URL", "",
		"the URL at which clients reach the HTTP endpoint, without /mcp; required with an issuer unless the endpoint listens on loopback",
		func(r *settingsReader, v configfile.Node) error { return r.readWebURL(&r.settings.OAuth.PublicURL, v) }},
	{"serve", "issuer", "URL, or list of URLs", "",
		"the OAuth issuers whose access tokens the HTTP endpoint accepts, exactly as in their metadata",
		func(r *settingsReader, v configfile.Node) error { return r.readIssuers(v) }},
	{"serve", "audience", "string", "public_url with /mcp",
		"the audience that an access token must have",
		func(r *settingsReader, v configfile.Node) error { return r.readText(&r.settings.OAuth.Audience, v) }},
	{"serve", "scopes", "table of lists", `{mcp = ["mcp:*"]}, and mcp:NAME unchanged`,
		"the Drawbridge scopes that each scope of the issuer grants: mcp:NAME is the server NAME, mcp:* all servers",
		func(r *settingsReader, v configfile.Node) error {
			return readScopesByName(&r.settings.OAuth.Scopes, v, false)
		}},
	{"serve", "clients", "table of lists", "everything",
		"the scopes of your own clients, by declared name: clients on standard input, with the token of token_file, or without a token where none is needed; \"*\" is for all others",
		func(r *settingsReader, v configfile.Node) error {
			return readScopesByName(&r.settings.Clients, v, true)
		}},
	{"serve", "client_credentials", "boolean", "false",
		"accepts access tokens of programs that act for themselves: with a client_id and no subject",
		func(r *settingsReader, v configfile.Node) error {
			return readBool(&r.settings.OAuth.AllowWithoutSubject, v)
		}},
	{"serve", "clock_skew", "time", "30s",
		"the tolerated difference of the issuer's clock, at most 5m",
		func(r *settingsReader, v configfile.Node) error {
			return readPositiveDuration(&r.settings.OAuth.ClockSkew, v)
		}},
	{"serve", "introspection_url", "URL", "",
		"the issuer's introspection endpoint (RFC 7662): required for tokens that are not JWTs; detects revoked tokens",
		func(r *settingsReader, v configfile.Node) error {
			return r.readWebURL(&r.settings.OAuth.IntrospectionURL, v)
		}},
	{"serve", "introspection_client_id", "string", "",
		"Drawbridge's client id at introspection_url",
		func(r *settingsReader, v configfile.Node) error {
			return r.readText(&r.settings.OAuth.IntrospectionClient, v)
		}},
	{"serve", "introspection_client_secret_file", "path", "",
		"the file with the secret of introspection_client_id; variables are expanded",
		func(r *settingsReader, v configfile.Node) error {
			return r.readPath(&r.settings.OAuth.IntrospectionSecretFile, v)
		}},
	{"tools", "policy", "table", "no rules",
		"rules for calls: the first that matches decides, else default_effect; see docs/policy.md",
		func(r *settingsReader, v configfile.Node) error { return r.rules.readPolicyTable(v) }},
	{"tools", "authorization", "table", "no rules",
		"more rules, each with an action and tools; with enabled = true they are evaluated after those of policy",
		func(r *settingsReader, v configfile.Node) error { return r.rules.readAuthorizationTable(v) }},
}, discoverySettingTable(), vectorSettingTable, modelSettingTable(), auditSettingTable, deckSettingTable(), flowSettingTable(), sandboxSettingTable(),
	agentSettingTable(), providerSettingTable(), factsSettingTable())

// A settingsReader reads the settings of one file.
type settingsReader struct {
	valueReader
	settings Settings
	rules    rulesReader
	problems []*configfile.Error
	// setAs maps each setting that was read to the name by which the file sets it. The name may be the one of another
	// program.
	setAs map[settingName]string
	// provider and facts are the targets of the settings of a provider and of a model.
	provider *ModelProvider
	facts    *ModelFacts
}

// readTables reads all tables of the file. The error joins a *configfile.Error for each mistake, in the order of the
// file. An unknown setting is only added to r.problems, unless it may be a rule for calls.
func (r *settingsReader) readTables(root configfile.Node) error {
	var errs []error
	for _, section := range root.Members {
		if !isSection(section.Name) {
			r.reportUnknownSetting(section, "", []string{"mcp", "tools", "store", "workspace", "serve", "audit", "deck", "sandbox", "agent",
				"models"})
			if looksLikeRules(section) {
				errs = append(errs, r.problems[len(r.problems)-1])
			}
		} else {
			errs = append(errs, r.readSection(section.Name, section))
		}
	}
	if r.settings.StorePath != "" && r.settings.StoreURL != "" {
		m, _ := root.Find("store", "url")
		errs = append(errs, configfile.ErrorAt(m.Line, "store.path and store.url are both set; remove one of them"))
	}
	if r.settings.WorkspacePath != "" && r.settings.WorkspaceURL != "" {
		m, _ := root.Find("workspace", "url")
		errs = append(errs, configfile.ErrorAt(m.Line, "workspace.path and workspace.url are both set; remove one of them"))
	}
	if r.settings.Discovery.TopK < 0 { // all tools are listed, so the search is off
		r.settings.Discovery.Enabled = new(bool)
	}
	r.settings.Rules = r.rules.activeRules()
	if idle := r.rules.inactiveRules(); idle != nil {
		r.problems = append(r.problems, idle)
		r.settings.InactiveRules = fmt.Sprintf("%s:%d: %s", r.rules.File, idle.Line, idle.Text)
	}
	return errors.Join(errs...)
}

// readSection reads a table of settings and the tables in it. The error is as for readTables.
func (r *settingsReader) readSection(name string, section configfile.Member) error {
	if section.Value.Kind != configfile.Table {
		return configfile.ErrorAt(section.Line, "%q must be a table", name)
	}
	var errs []error
	for _, m := range section.Value.Members {
		full := name + "." + m.Name
		if full == "mcp.servers" {
			continue // rows are not settings
		}
		if full == providersTable {
			errs = append(errs, r.readModelProviders(m))
			continue
		}
		if isSection(full) {
			errs = append(errs, r.readSection(full, m))
			continue
		}
		known := findSetting(name, m.Name)
		if known == nil {
			r.reportUnknownSetting(m, name+".", settingNames(name))
			if name == "tools" { // the unknown member may be a rule
				errs = append(errs, r.problems[len(r.problems)-1])
			}
			continue
		}
		err := r.checkOnlyName(known, full, m.Line)
		if err == nil {
			err = known.readValue(r, m.Value)
		}
		errs = append(errs, mistakeAt(m, full, err))
	}
	return errors.Join(errs...)
}

// mistakeAt returns err as a mistake in the member m, unless it is a mistake already. full is the name of the setting.
func mistakeAt(m configfile.Member, full string, err error) error {
	if _, ok := errors.AsType[*configfile.Error](err); err != nil && !ok {
		return configfile.ErrorAt(m.Line, "%s %s", full, err)
	}
	return err
}

func (r *settingsReader) reportUnknownSetting(m configfile.Member, prefix string, known []string) {
	r.problems = append(r.problems, configfile.ErrorAt(m.Line, "unknown setting %q%s", prefix+m.Name,
		configfile.DidYouMean(m.Name, known)))
}
