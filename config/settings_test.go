package config

import (
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// allSettings sets everything.
const allSettings = `
[mcp]
naming = "bare"
grace = "1s"
probe_timeout = "2s"
connect_timeout = 3000
call_timeout = "4m"
idle_stop = "5h"
max_tools = 6
max_tools_project = 7
env_isolation = false
elicitation_enabled = false
elicitation_timeout = "7s"
elicitation_queue_capacity = 3
elicitation_warn_sensitive_fields = false
allowed_commands = ["~/bin/*", "/opt/x", "go"]
roots = ["/srv/a b", "~/src", "file:///elsewhere"]
lock_file = "team/tools.lock"

[mcp.shield]
enabled = false
quarantine_threshold = 0.5
decay_half_life_secs = 60

[mcp.tool_discovery]
vector_store = "qdrants://${keychain:qdrant}@vectors.example:6334"
collection = "team_tools"

[tools]
max_tool_calls_per_session = 11
max_tool_calls_per_caller = "12/day"
max_identical_errors = 13
max_identical_calls = 14
ask_timeout = "90s"

[store]
path = "data/${NAME:-drawbridge}.db"

[serve]
token_file = "~/token"
session_timeout = "8m"
max_body = 9
page_size = 10
fence = true
public_url = "https://gate.example"
issuer = ["https://a.example", "http://127.0.0.1:1/b/"]
audience = "api"
client_credentials = false
clock_skew = "1s"
introspection_url = "https://a.example/introspect"
introspection_client_id = "gate"
introspection_client_secret_file = "secret"

[audit]
enabled = false
arguments = "hash"
sync = "always"
keep = "24h"
keep_records = 11
keep_bytes = 12
key_file = "~/audit.pem"

[serve.scopes]
"mcp:tools" = ["mcp:*"]
reader = ["mcp:docs", "mcp:wiki"]
`

func TestSettings(t *testing.T) {
	no, yes := false, true
	w := newWorld(t, map[string]string{userTOML: allSettings})
	set := w.mustLoad(t)
	want := Settings{
		Naming: "bare", FirstListWait: time.Second, ProbeTimeout: 2 * time.Second, ConnectTimeout: 3 * time.Second,
		CallTimeout: 4 * time.Minute, IdleStop: 5 * time.Hour, MaxTools: 6, MaxToolsProject: 7, EnvIsolation: &no,
		AskTimeout:    90 * time.Second,
		SpotlightHTTP: &yes, ElicitationEnabled: &no, ElicitationTimeout: 7 * time.Second, ElicitationQueue: 3,
		ElicitationWarnings: &no,
		AllowedCommands:     []string{w.path("home/bin/*"), "/opt/x", "go"},

		Roots: []Root{{URI: "file:///srv/a%20b"}, {URI: "file://" + w.path("home/src")},
			{URI: "file:///elsewhere"}},
		Audit: AuditSettings{Enabled: &no, Arguments: "hash", Sync: "always", Retention: 24 * time.Hour,
			MaxRecords: 11, MaxBytes: 12, KeyFile: w.path("home/audit.pem")},
		LockFile:  w.path("home/.config/drawbridge/team/tools.lock"),
		StorePath: w.path("home/.config/drawbridge/data/drawbridge.db"),
		TokenFile: w.path("home/token"), SessionTimeout: 8 * time.Minute, MaxBody: 9, PageSize: 10,
		OAuth: OAuthSettings{
			Issuers: []string{"https://a.example", "http://127.0.0.1:1/b/"}, PublicURL: "https://gate.example",
			Audience:            "api",
			Scopes:              map[string][]string{"mcp:tools": {"mcp:*"}, "reader": {"mcp:docs", "mcp:wiki"}},
			AllowWithoutSubject: &no, ClockSkew: time.Second,
			IntrospectionURL: "https://a.example/introspect", IntrospectionClient: "gate",
			IntrospectionSecretFile: w.path("home/.config/drawbridge/secret"),
		},
		Vectors: VectorStoreSettings{
			Store: []ValuePart{{Text: "qdrants://"}, {Kind: KeychainPart, Text: "qdrant"},
				{Text: "@vectors.example:6334"}},
			Collection: "team_tools",
		},
		Tools:  ToolLimits{PerSession: 11, PerCaller: 12, Window: 24 * time.Hour, SameErrors: 13, SameCalls: 14},
		Shield: ShieldSettings{Enabled: &no, Threshold: 0.5, HalfLife: time.Minute},
	}
	wantDiff(t, "settings", want, set.Settings)
	wantDiff(t, "warnings", []string(nil), w.warnings(set))
}

func TestEachSetting(t *testing.T) {
	for line, want := range map[string]Settings{
		"mcp.naming = 'qualified'":                                    {Naming: "qualified"},
		"mcp.naming = 'mcp'":                                          {Naming: "mcp"},
		"mcp.grace = 0":                                               {FirstListWait: -1},
		"mcp.grace = '0s'":                                            {FirstListWait: -1},
		"mcp.idle_stop = 'never'":                                     {IdleStop: -1},
		"mcp.elicitation_timeout = 120":                               {ElicitationTimeout: 2 * time.Minute},
		"mcp.elicitation_timeout = '120'":                             {ElicitationTimeout: 2 * time.Minute},
		"mcp.elicitation_timeout = 0.5":                               {ElicitationTimeout: time.Second / 2},
		"mcp.elicitation_timeout = '2m'":                              {ElicitationTimeout: 2 * time.Minute},
		"mcp.elicitation_timeout = '500ms'":                           {ElicitationTimeout: time.Second / 2},
		"mcp.shield.decay_half_life_secs = 3600":                      {Shield: ShieldSettings{HalfLife: time.Hour}},
		"mcp.answers_in_flight = 1048576":                             {AnswersInFlight: 1 << 20},
		"mcp.call_timeout = 1500":                                     {CallTimeout: 1500 * time.Millisecond},
		"mcp.roots = []":                                              {},
		"store.url = 'postgres://u:${PW}@h/db'":                       {StoreURL: "postgres://u:secret@h/db"},
		"store.url = 'postgresql://h/db'":                             {StoreURL: "postgresql://h/db"},
		"store.url = 'POSTGRES://U:${PW}@H/Db'":                       {StoreURL: "postgres://U:secret@H/Db"},
		"mcp.tool_discovery.vector_store = 'QDRANT://K@H'":            {Vectors: VectorStoreSettings{Store: []ValuePart{{Text: "qdrant://K@H"}}}},
		"store.path = '/var/lib/db'":                                  {StorePath: "/var/lib/db"},
		"mcp.tool_discovery.vector_store = '${NONE:-}'":               {},
		"mcp.tool_discovery.vector_store = ''":                        {},
		"mcp.tool_discovery.vector_store = 'postgres://u:${PW}@h/db'": {Vectors: VectorStoreSettings{Store: []ValuePart{{Text: "postgres://u:secret@h/db"}}}},
		"mcp.tool_discovery.vector_store = 'qdrant://h:1'":            {Vectors: VectorStoreSettings{Store: []ValuePart{{Text: "qdrant://h:1"}}}},
		"serve = { page_size = 5 } # ok":                              {PageSize: 5},
		"mcp.shield.quarantine_threshold = 0":                         {Shield: ShieldSettings{Threshold: -1}},
		"mcp.shield.decay_half_life_secs = '2h'":                      {Shield: ShieldSettings{HalfLife: 2 * time.Hour}},
		"tools.max_identical_errors = 'unlimited'":                    {Tools: ToolLimits{SameErrors: -1}},
		"tools.max_tool_calls_per_caller = '5/1h30m'": {Tools: ToolLimits{PerCaller: 5,
			Window: 90 * time.Minute}},
		"tools.max_tool_calls_per_caller = '5 / week'": {Tools: ToolLimits{PerCaller: 5,
			Window: 7 * 24 * time.Hour}},
		"mcp.tool_discovery = {mode = 'search', enabled = false}": {Discovery: ToolDiscovery{Mode: "search",
			Enabled: new(bool)}},
		"mcp.tool_discovery.top_k = 0":          {Discovery: ToolDiscovery{TopK: -1, Enabled: new(bool)}},
		"mcp.tool_discovery.top_k = 7":          {Discovery: ToolDiscovery{TopK: 7}},
		"mcp.tool_discovery.search_above = 9":   {Discovery: ToolDiscovery{SearchAbove: 9}},
		"mcp.tool_discovery.relative_score = 0": {Discovery: ToolDiscovery{RelativeScore: -1}},
		"mcp.tool_discovery.min_score = 0.55":   {Discovery: ToolDiscovery{MinScore: 0.55}},
		"mcp.tool_discovery.always_include = ['gh__*', 'x']": {Discovery: ToolDiscovery{AlwaysInclude: []string{"gh__*",
			"x"}}},
		"mcp.tool_discovery.direct = ['Claude', 'ci']": {Discovery: ToolDiscovery{Direct: []string{"Claude", "ci"}}},
		"mcp.output_schema_hint_bytes = 5":             {Discovery: ToolDiscovery{OutputSchemaHintBytes: 5}},
		"mcp.forward_output_schema = false": {Discovery: ToolDiscovery{ForwardOutputSchema: new(
			bool)}},
		"serve.fence = ['Codex', 'ci']":      {SpotlightClients: []string{"Codex", "ci"}},
		"serve.fence = false":                {SpotlightHTTP: new(bool)},
		"serve.issuer = 'https://a.example'": {OAuth: OAuthSettings{Issuers: []string{"https://a.example"}}},
	} {
		w := newWorld(t, map[string]string{userTOML: line})
		w.env["PW"] = "secret"
		wantDiff(t, line, want, w.mustLoad(t).Settings)
	}
}

// TestRootsInEachForm has the roots of servers be a list of directories or tables, or a table by names, which TOML has
// several ways to write.
func TestRootsInEachForm(t *testing.T) {
	one, two := Root{URI: "file:///srv/a%20b", Name: "docs"}, Root{URI: "file:///srv/c"}
	for text, want := range map[string][]Root{
		"[mcp]\nroots = ['/srv/a b', 'file:///srv/c']":                                   {{URI: one.URI}, two},
		"[mcp]\nroots = [{uri = 'file:///srv/a%20b', name = 'docs'}, '/srv/c']":          {one, two},
		"[[mcp.roots]]\nname = 'docs'\npath = '/srv/a b'\n[[mcp.roots]]\nuri = '/srv/c'": {one, two},
		"[mcp.roots]\nuri = 'file:///srv/a%20b'\nname = 'docs'":                          {one},
		"[mcp.roots]\npath = '/srv/c'":                                                   {two},
		"[mcp.roots]\ndocs = '/srv/a b'\nc = 'file:///srv/c'": {one,
			{URI: two.URI, Name: "c"}},
		"[mcp.roots.docs]\nuri = 'file:///srv/a%20b'\n[mcp.roots.c]\npath = '/srv/c'": {one,
			{URI: two.URI, Name: "c"}},
		"[mcp.roots]": nil,
	} {
		w := newWorld(t, map[string]string{userTOML: text})
		wantDiff(t, text, want, w.mustLoad(t).Settings.Roots)
	}
}

const badRoots = `mcp.roots must be a list of directories or file URIs, or a table of them by name; a root has a uri or a path, and may have a name`

var badSettingsCases = map[string]string{
	"mcp.elicitation_timeout = 0":                                `mcp.elicitation_timeout must be a number of seconds above 0, or a time such as "30m"`,
	"mcp.elicitation_timeout = 'long'":                           `mcp.elicitation_timeout must be a number of seconds above 0, or a time such as "30m"`,
	"deck.profile = 'most'":                                      `deck.profile must be "none", "authoring", "read-only", "survey", "built-in" or "all"`,
	"deck.search = 'bing'":                                       `deck.search must be "none", "brave", "tavily", "exa", "searxng" or "duckduckgo"`,
	"deck.search_url = 'searx'":                                  `deck.search_url must be an https:// URL`,
	"deck.fetch_hosts = 'localhost'":                             `deck.fetch_hosts must be a list of host names`,
	"deck.fetch_hosts = ['http://localhost']":                    `deck.fetch_hosts must be a list of host names, without scheme and path; not "http://localhost"`,
	"deck.addons = 'no'":                                         `deck.addons must be true or false`,
	"deck.confine_profiles = 'auto'":                             `deck.confine_profiles must be a table such as {"survey" = "required"}`,
	"deck.confine_profiles = {authoring = 'auto'}":               `deck.confine_profiles must be a table by survey, built-in or all, and "authoring" is none of them`,
	"mcp.naming = 1":                                             `mcp.naming must be "qualified", "mcp" or "bare"`,
	"mcp.grace = '-1s'":                                          `mcp.grace must be a time, such as "250ms", a number of milliseconds, or 0`,
	"mcp.grace = 'never'":                                        `mcp.grace must be a time, such as "250ms", a number of milliseconds, or 0`,
	"mcp.probe_timeout = 0":                                      `mcp.probe_timeout must be a time above 0, such as "30s", or a number of milliseconds`,
	"mcp.connect_timeout = true":                                 `mcp.connect_timeout must be a time above 0, such as "30s", or a number of milliseconds`,
	"mcp.call_timeout = 'soon'":                                  `mcp.call_timeout must be a time above 0, such as "30s", or a number of milliseconds`,
	"mcp.idle_stop = 0":                                          `mcp.idle_stop must be a time above 0, such as "15m", a number of milliseconds, or "never"`,
	"mcp.max_tools = -1":                                         `mcp.max_tools must be a whole number above 0`,
	"mcp.max_tools_project = 1.5":                                `mcp.max_tools_project must be a whole number above 0`,
	"mcp.env_isolation = 'false'":                                `mcp.env_isolation must be true or false`,
	"mcp.roots = '/srv'":                                         badRoots,
	"mcp.roots = ['https://h']":                                  badRoots,
	"mcp.roots = [1]":                                            badRoots,
	"mcp.roots = [[]]":                                           badRoots,
	"mcp.roots = [{}]":                                           badRoots,
	"mcp.roots = {name = 'a', path = ''}":                        badRoots,
	"mcp.roots = {name = 'a'}":                                   badRoots,
	"mcp.roots = {uri = 'file:///a', path = '/a'}":               badRoots,
	"mcp.roots = {uri = 'file:///a', mode = 'rw'}":               badRoots,
	"mcp.roots = {uri = 'https://h'}":                            badRoots,
	"mcp.roots = {uri = 'file:///a', name = 1}":                  badRoots,
	"mcp.roots = {a = 'https://h'}":                              badRoots,
	"mcp.roots = {a = 1}":                                        badRoots,
	"mcp.roots = {a = {name = 'b'}}":                             badRoots,
	"mcp.roots = {a = {uri = 'file:///a', name = 'b'}}":          badRoots,
	"mcp.roots = {a = ['file:///a']}":                            badRoots,
	"mcp.roots = [{a = '/a'}]":                                   badRoots,
	"mcp.shield = true":                                          `"mcp.shield" must be a table`,
	"mcp.shield.quarantine_threshold = 1.5":                      `mcp.shield.quarantine_threshold must be a number from 0 to 1`,
	"mcp.shield.quarantine_threshold = '0.5'":                    `mcp.shield.quarantine_threshold must be a number from 0 to 1`,
	"mcp.shield.decay_half_life_secs = 0":                        `mcp.shield.decay_half_life_secs must be a number of seconds above 0, or a time such as "30m"`,
	"mcp.tool_discovery.enabled = 1":                             `mcp.tool_discovery.enabled must be true or false`,
	"mcp.tool_discovery.mode = 'python'":                         `mcp.tool_discovery.mode must be "direct", "auto", "search" or "code"`,
	"mcp.answers_in_flight = 1000":                               "mcp.answers_in_flight must be a whole number of bytes from 1048576",
	"sandbox.memory = 1000":                                      "sandbox.memory must be a whole number of bytes from 33554432 to 1073741824",
	"sandbox.calls = 0":                                          "sandbox.calls must be a whole number above 0",
	"mcp.tool_discovery.top_k = -1":                              `mcp.tool_discovery.top_k must be a whole number`,
	"mcp.tool_discovery.search_above = 0":                        `mcp.tool_discovery.search_above must be a whole number above 0`,
	"mcp.tool_discovery.min_score = 2":                           `mcp.tool_discovery.min_score must be a number from 0 to 1`,
	"mcp.tool_discovery.relative_score = 'x'":                    `mcp.tool_discovery.relative_score must be a number from 0 to 1`,
	"mcp.tool_discovery.always_include = 'x'":                    `mcp.tool_discovery.always_include must be a list of names, such as ["github__*"]`,
	"mcp.tool_discovery.direct = ['']":                           `mcp.tool_discovery.direct must be a list of names of clients, such as ["claude-ai"]`,
	"mcp.tool_discovery.always_include = ['[']":                  `mcp.tool_discovery.always_include has "[", which is not a name with * and ?`,
	"mcp.output_schema_hint_bytes = 'x'":                         `mcp.output_schema_hint_bytes must be a whole number above 0`,
	"tools.max_tool_calls_per_session = 0":                       `tools.max_tool_calls_per_session must be a whole number above 0`,
	"tools.max_tool_calls_per_caller = 1000":                     `tools.max_tool_calls_per_caller must be a number of calls in a period, such as "1000/day" or "50/10m"`,
	"tools.max_tool_calls_per_caller = '0/day'":                  `tools.max_tool_calls_per_caller must be a number of calls in a period, such as "1000/day" or "50/10m"`,
	"tools.max_tool_calls_per_caller = '5/-1m'":                  `tools.max_tool_calls_per_caller must be a number of calls in a period, such as "1000/day" or "50/10m"`,
	"tools.max_identical_calls = 'never'":                        `tools.max_identical_calls must be a whole number above 0, or "unlimited"`,
	"store.path = ''":                                            `store.path must be a string that is not empty`,
	"store.path = '${NONE}/db'":                                  `store.path needs NONE, which is not set`,
	"store.url = 'mysql://u:hunter2@h/db'":                       `store.url must be a postgres:// URL, and "mysql" is an unknown scheme`,
	"store.url = 'postgre://u:hunter2@h/db'":                     `store.url must be a postgres:// URL, and "postgre" is an unknown scheme`,
	"store.url = 'postgres:/u:hunter2@h/db'":                     `store.url must be a postgres:// URL`,
	"store.url = 'u:hunter2@h://db'":                             `store.url must be a postgres:// URL`,
	"store.path = 'postgre://u:hunter2@h/db'":                    `store.path must be a path, not a URL`,
	"store.path = '${URL}'":                                      `store.path must be a path, not a URL`,
	"mcp.tool_discovery.vector_store = 'mysql://u:hunter2@h/db'": `mcp.tool_discovery.vector_store must be a postgres://, qdrant:// or qdrants:// URL, and "mysql" is an unknown scheme`,
	"mcp.tool_discovery.vector_store = 'qdrant:hunter2'":         `mcp.tool_discovery.vector_store must be a postgres://, qdrant:// or qdrants:// URL`,
	"mcp.tool_discovery.vector_store = '${keychain:all}'":        `mcp.tool_discovery.vector_store must be a postgres://, qdrant:// or qdrants:// URL`,
	"mcp.tool_discovery.vector_store = 1":                        `mcp.tool_discovery.vector_store must be a postgres://, qdrant:// or qdrants:// URL`,
	"mcp.tool_discovery.vector_store = 'qdrants://${NONE}@h'":    `mcp.tool_discovery.vector_store needs NONE, which is not set`,
	"mcp.tool_discovery.collection = ''":                         `mcp.tool_discovery.collection must be 1 to 48 of a to z, 0 to 9 and _`,
	"mcp.tool_discovery.collection = 'a\"b'":                     `mcp.tool_discovery.collection must be 1 to 48 of a to z, 0 to 9 and _`,
	"serve.token_file = 1":                                       `serve.token_file must be a string that is not empty`,
	"serve.session_timeout = 'x'":                                `serve.session_timeout must be a time above 0, such as "30s", or a number of milliseconds`,
	"serve.max_body = '1MB'":                                     `serve.max_body must be a whole number of bytes above 0`,
	"serve.page_size = 0":                                        `serve.page_size must be a whole number above 0`,
	"serve.public_url = 'gate.example'":                          `serve.public_url must be an https:// URL`,
	"serve.issuer = ['https://a', 'file:///b']":                  `serve.issuer must be an https:// URL, or a list of them`,
	"serve.issuer = { a = 1 }":                                   `serve.issuer must be an https:// URL, or a list of them`,
	"serve.scopes = ['a']":                                       `serve.scopes must be a table of lists of scopes`,
	"serve.scopes.a = 'mcp:*'":                                   `serve.scopes must be a table of lists of scopes, such as {"a" = ["mcp:*"]}`,
	"serve.scopes.a = []":                                        `serve.scopes must be a table of lists of scopes, such as {"a" = ["mcp:*"]}`,
	"serve.audience = ''":                                        `serve.audience must be a string that is not empty`,
	"serve.client_credentials = 1":                               `serve.client_credentials must be true or false`,
	"serve.clock_skew = 0":                                       `serve.clock_skew must be a time above 0, such as "30s", or a number of milliseconds`,
	"store = { path = 'a', url = 'postgres://h' }":               `store.path and store.url are both set; remove one of them`,
}

func TestBadSettings(t *testing.T) {
	for line, want := range badSettingsCases {
		w := newWorld(t, map[string]string{userTOML: "# first\n" + line})
		w.env["URL"] = "postgres://u:hunter2@h/db"
		_, err := w.load()
		if err == nil {
			t.Errorf("%s: no error", line)
			continue
		}
		if want := "read " + w.path(userTOML) + ":2: " + want; err.Error() != want {
			t.Errorf("%s:\n got %s\nwant %s", line, err, want)
		}
	}
}

// TestFields walks the tables: each entry is complete, and each setting and member is really read.
func TestFields(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range DocumentedFields() {
		key := f.Section + "." + f.Name
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
		if f.Type == "" || f.Doc == "" || strings.Contains(f.Doc, "\n") || strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: type %q, doc %q", key, f.Type, f.Doc)
		}
	}
	for _, m := range strings.Fields(`name command args env cwd url headers type enabled timeout expected_tools lock_tool_list
		env_isolation elicitation_enabled isolate share credentials confine idle_stop trust auth fence max_tools max_calls_per_minute imported_from`) {
		if !seen["server."+m] {
			t.Errorf("the member %s is not listed", m)
		}
	}
	for _, s := range settingTable {
		if s.readValue == nil || !seen[s.section+"."+s.name] {
			t.Errorf("%s.%s is not read, or not listed", s.section, s.name)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for name, want := range map[string]string{
		"comand": "command", "Command": "command", "arg": "args", "tiemout": "timeout",
		"expectedTools": "expected_tools",
		"auht":          "auth", "uri": "url", "header": "headers", "evn": "env",
		"foo": "", "x": "", "dir": "", "autoApprove": "", strings.Repeat("command", 100): "",
	} {
		got := configfile.DidYouMean(name, rowMemberNames())
		if want != "" {
			want = `; did you mean "` + want + `"?`
		}
		if got != want {
			t.Errorf("doc.DidYouMean(%q) = %q, want %q", name, got, want)
		}
	}
}
