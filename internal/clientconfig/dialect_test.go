package clientconfig

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/google/go-cmp/cmp"
)

func provider(t *testing.T, name string) Provider {
	t.Helper()
	for _, p := range Providers() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no provider %s", name)
	return Provider{}
}

// carried gives what becomes of the one row of a file, as JSON, and the notes on it.
func carried(t *testing.T, name string, place int, file, dir string) (string, []string) {
	t.Helper()
	shape := provider(t, name).Locations[place].Shape
	root, err := shape.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := shape.Rows(root, dir)
	if len(rows) != 1 {
		t.Fatalf("%d rows in %s", len(rows), file)
	}
	row, notes := shape.ToNative(rows[0], dir)
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return string(row.AppendJSON(nil, false)), texts
}

func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		tongue   func(*rowConverter, string) string
		in, want string
		noted    bool
	}{
		{literalText, "${A} $B", "$${A} $B", false},
		{literalText, "$${A}", "$$${A}", false},
		{nativeText, "${A} ${B:-c} $D", "${A} ${B:-c} $D", false},
		{nativeText, "$${A}", "${:-$}${A}", false},
		{nativeText, "a${file:x}$${keychain:y}", "a$${file:x}${:-$}$${keychain:y}", true},
		{nativeText, "${env:A}${command:id}", "$${env:A}$${command:id}", true},
		{nativeText, "${file:-d}${file:}${command}", "${file:-d}${file:}${command}", false},
		{editorText, "${env:file:x}${env:A:-b:c}", "$${env:file:x}${A:-b:c}", true},
		{editorText, "${file:x}${command:x}", "$${file:x}$${command:x}", true},
		{dollarText, "${file:x}${env:A}", "$${file:x}$${env:A}", true},
		{opencodeText, "${file:x}", "$${file:x}", true},
		{opencodeText, "$$${env:A}{env:A}", "${:-$$$}${A}${A}", false},
		{editorText, "$$${env:A}", "${:-$$}${A}", false},
		{nativeText, "$$${A}", "${:-$$}${A}", false},
		{shellText, "${keychain:x}", "$${keychain:x}", true},
		{editorText, "${env:A}-${userHome}${/}${pathSeparator}x", "${A}-${HOME}//x", false},
		{editorText, "${A} $B", "${A} $B", false},
		{editorText, "$${env:A}", "${:-$}${A}", false},
		{editorText, "${workspaceFolder}/x ${workspaceFolderBasename}", "/work/p/x p", false},
		{editorText, "${config:a.b}", "$${config:a.b}", true},
		{editorText, "${command:x}${env:}", "$${command:x}$${env:}", true},
		{editorText, "${cwd}", "$${cwd}", true},
		{editorText, "${input:tok-1}", "${TOK_1}", true},
		{editorText, "${input:1st}", "${_1ST:-one}", true},
		{editorText, "${unclosed", "$${unclosed", false},
		{opencodeText, "{env:A}${B}{x}", "${A}$${B}{x}", false},
		{opencodeText, "{file:a}{env:a:b}", "{file:a}{env:a:b}", true},
		{dollarText, "$A/${B}/${C:-d}/$1/$", "${A}/${B}/${C:-d}/$1/$", false},
		{dollarText, "${A:?x}", "$${A:?x}", true},
		{dollarOrPercentText, "%ABC%/%E4%B8/%d%", "${ABC}/%E4%B8/%d%", false},
		{shellText, "$A $(x)", "${A} $(x)", true},
		{shellText, "$( op read x )", "!op read x", false},
		{shellText, "$(a)$(b)", "$(a)$(b)", true},
	} {
		c := &rowConverter{grammar: &rowGrammar{title: "T"}, current: "env", dir: "/work/p",
			inputs: map[string]string{"1st": "one"}}
		if got := tt.tongue(c, tt.in); got != tt.want || (len(c.notes) > 0) != tt.noted {
			t.Errorf("%q became %q, notes %v; want %q, noted: %v", tt.in, got, c.notes, tt.want, tt.noted)
		}
	}
}

// TestADirectoryIsNoReference: what a text is put together of means nothing that none of its pieces means.
func TestADirectoryIsNoReference(t *testing.T) {
	for in, want := range map[string]string{
		"${workspaceFolder}{file:x}":  "/work/p$${file:x}",
		"${workspaceFolder}${env:A}":  "/work/p${:-$}${A}",
		"${workspaceFolder}$${env:A}": "/work/p${:-$$}${A}",
		"${workspaceFolder}${cwd}":    "/work/p$$${cwd}",
	} {
		c := &rowConverter{grammar: &rowGrammar{title: "T"}, current: "env", dir: "/work/p$"}
		if got := editorText(c, in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestNotesKeepDefaultsToThemselves: what other programs put behind a variable's name may be a secret.
func TestNotesKeepDefaultsToThemselves(t *testing.T) {
	for _, tt := range []struct {
		tongue func(*rowConverter, string) string
		in     string
	}{
		{shellText, "${A:=hunter2}"}, {shellText, "${A-hunter2}"}, {dollarText, "${A:+hunter2}"},
		{dollarText, "${A?hunter2}"}, {dollarText, "${A:hunter2}"},
		{editorText, "${A:=hunter2}"}, {editorText, "${A:hunter2}"}, {opencodeText, "{env:A:hunter2}"},
		{opencodeText, "{env:A:-hunter2}"},
	} {
		c := &rowConverter{grammar: &rowGrammar{title: "T"}, current: "env"}
		if got := tt.tongue(c, tt.in); !strings.Contains(got, "hunter2") || len(c.notes) != 1 ||
			strings.Contains(c.notes[0].Text, "hunter2") {
			t.Errorf("%q became %q, notes %v", tt.in, got, c.notes)
		}
	}
}

// TestADirectoryIsNoCommand: a value means a command only where the program's own words said so.
func TestADirectoryIsNoCommand(t *testing.T) {
	got, _ := carried(t, "cursor", 0,
		`{"mcpServers": {"a": {"url": "u", "headers": {"A": "${workspaceFolderBasename}"}}}}`, "/work/!touch x")
	if want := `{"url":"u","headers":{"A":"${:-!}touch x"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

var carryCases = map[string]struct {
	provider, file, want string
	notes                []string
}{
	"every alias of a type": {"cursor", `{"mcpServers": {"a": {"type": "streamable_http", "url": "u"}}}`,
		`{"type":"http","url":"u"}`, nil},
	"an unknown type": {"cursor", `{"mcpServers": {"a": {"type": "ws", "url": "u"}}}`,
		`{"type":"ws","url":"u"}`, nil},
	"what is empty": {"cursor",
		`{"mcpServers": {"a": {"command": "x", "args": [], "env": {}, "url": "", "headers": null, "disabled": false, "enabled": true}}}`,
		`{"command":"x"}`, nil},
	"what is of no sort": {"cursor",
		`{"mcpServers": {"a": {"command": 1, "env": [], "args": "x", "disabled": "yes"}}}`,
		`{"command":1,"args":"x"}`, []string{`"disabled" must be true or false; it was ignored`}},
	"a member twice": {"cursor",
		`{"mcpServers": {"a": {"command": "x", "env": {"A": "1", "A": "2"}, "command": "y"}}}`,
		`{"env":{"A":"1"},"command":"y"}`, nil},
	"an array": {"claude-code", `{"servers": [{"name": "a", "command": "x"}]}`, `{"command":"x"}`, nil},
	"near misses": {"windsurf", `{"mcpServers": {"a": {"serverurl": "u", "Command": "x", "whatever": 1}}}`, `{}`,
		[]string{
			`unknown member "serverurl" was left out; did you mean "serverUrl"?`,
			`unknown member "Command" was left out; did you mean "command"?`,
			`unknown member "whatever" was left out`}},
	"a header from a variable counts after one that is written": {"codex",
		"[mcp_servers.a]\nurl='u'\nhttp_headers={Authorization='x'}\nbearer_token_env_var='T'\n",
		`{"url":"u","headers":{"Authorization":"x"}}`, nil},
	"names that are none": {"codex",
		"[mcp_servers.a]\ncommand='x'\nenv_vars=['a b', {name='OK', source='local'}, 5]\n",
		`{"command":"x","env":{"OK":"${OK}"}}`,
		[]string{`a name in "env_vars" is not a valid variable name and was left out`}},
	"no tools at all": {"codex", "[mcp_servers.a]\ncommand='x'\nenabled_tools=[]\n",
		`{"command":"x","expected_tools":[]}`, nil},
	"httpUrl before url": {"gemini", `{"mcpServers": {"a": {"url": "u", "httpUrl": "h"}}}`,
		`{"url":"h","type":"http"}`, nil},
	"not allowed": {"gemini", `{"mcp": {"allowed": ["b"]}, "mcpServers": {"a": {"command": "x"}}}`,
		`{"command":"x","enabled":false}`, nil},
	"a server of that name": {"opencode", `{"mcp": {"servers": {"type": "local", "command": ["x"]}}}`,
		`{"command":"x"}`, nil},
	"seconds with a point": {"cline", `{"mcpServers": {"a": {"command": "x", "timeout": 1.5}}}`,
		`{"command":"x","timeout":1500}`, nil},
	"a time in words": {"crush", `{"mcp": {"a": {"command": "x", "timeout": "30s"}}}`,
		`{"command":"x","timeout":"30s"}`, nil},
	"signing in, in Claude Code": {"claude-code", `{"mcpServers": {"a": {"url": "u", "oauth": {"clientId": "${ID}", "callbackPort": 3118, "scopes": "a b", "mood": 1,
			"authServerMetadataUrl": "https://as.example.com/.well-known/oauth-authorization-server/tenant"}}}}`,
		`{"url":"u","auth":{"client_id":"${ID}","callback_port":3118,"redirect_uri":"http://localhost:3118/callback","scopes":"a b","issuer":"https://as.example.com/tenant"}}`,
		[]string{`unknown member "mood" in "oauth" was left out`}},
	"an issuer in the words of OpenID": {"claude-code",
		`{"mcpServers": {"a": {"url": "u", "oauth": {"authServerMetadataUrl": "https://as/x/.well-known/openid-configuration"}}}}`,
		`{"url":"u","auth":{"issuer":"https://as/x"}}`, nil},
	"a document by another name": {"claude-code",
		`{"mcpServers": {"a": {"url": "u", "oauth": {"authServerMetadataUrl": "https://as/hunter2"}}}}`,
		`{"url":"u"}`, []string{`"authServerMetadataUrl" was left out: its address says nothing of who issues tokens`}},
	"signing in, in Gemini": {"gemini", `{"mcpServers": {"a": {"url": "u", "oauth": {"enabled": true, "clientId": "i", "clientSecret": "$S", "authorizationUrl": "https://as/a",
			"tokenUrl": "https://as/t", "scopes": ["a"], "redirectUri": "http://localhost:7777/x", "audiences": ["b"]}}}}`,
		`{"url":"u","auth":{"client_id":"i","client_secret":"${S}","authorization_url":"https://as/a","token_url":"https://as/t","scopes":["a"],"redirect_uri":"http://localhost:7777/x"}}`,
		[]string{`"audiences" was left out: Drawbridge signs in by itself`}},
	"not signing in, in Gemini": {"gemini", `{"mcpServers": {"a": {"url": "u", "oauth": {"enabled": false}}}}`,
		`{"url":"u","auth":{"type":"none"}}`, nil},
	"signing in, in Codex": {"codex",
		"[mcp_servers.a]\nurl='u'\nscopes=['a']\noauth_resource='https://h'\n[mcp_servers.a.oauth]\nclient_id='!i'\ncallback_url='http://127.0.0.1/callback'\n",
		`{"url":"u","auth":{"scopes":["a"],"resource":"https://h","client_id":"${:-!}i"}}`,
		[]string{`"callback_url" was left out: Drawbridge takes a free port`}},
	"signing in, in opencode": {"opencode",
		`{"mcp": {"a": {"url": "u", "oauth": {"clientId": "{env:ID}", "clientSecret": "{file:s}", "scope": "a", "callbackPort": 1}}}}`, `{"url":"u","auth":{"client_id":"${ID}","client_secret":"{file:s}","scopes":"a","callback_port":1}}`, []string{`{file:s} in "oauth" means nothing outside of opencode, and stayed as it is`}},
	"not signing in, in opencode": {"opencode", `{"mcp": {"a": {"url": "u", "oauth": false}}}`,
		`{"url":"u","auth":{"type":"none"}}`, nil},
	"signing in, in VS Code": {"vscode",
		`{"servers": {"a": {"url": "u", "oauth": {"clientId": "${env:ID}"}}}}`,
		`{"url":"u","auth":{"client_id":"${ID}"}}`, nil},
	"signing in, in Cursor": {"cursor",
		`{"mcpServers": {"a": {"url": "u", "auth": {"CLIENT_ID": "i", "CLIENT_SECRET": "${env:S}", "scopes": []}}}}`,
		`{"url":"u","auth":{"client_id":"i","client_secret":"${S}"}}`, nil},
	"signing in, in Zed": {"zed",
		`{"context_servers": {"a": {"url": "u", "oauth": {"client_id": "${I}"}}}}`,
		`{"url":"u","auth":{"client_id":"$${I}"}}`, nil},
	"signing in, in Crush": {"crush",
		`{"mcp": {"a": {"url": "u", "oauth": true, "oauth_client_id": "i", "oauth_client_secret": "$S", "oauth_callback_port": 0}}}`, `{"url":"u","auth":{"client_id":"i","client_secret":"${S}"}}`, nil},
	"signing in, in pisces": {"pisces",
		`{"mcpServers": {"a": {"url": "u", "auth": {"type": "oauth", "credentialId": "c"}, "oauth": {"clientId": "i", "callbackPath": "/x"}}}}`,
		`{"url":"u","auth":{"type":"oauth","credential_id":"c","client_id":"i","callback_path":"/x"}}`, nil},
	"no words about it": {"zed", `{"context_servers": {"a": {"url": "u", "oauth": "yes"}}}`, `{"url":"u"}`,
		[]string{`"oauth" was left out: it is not an object`}},
	"no object": {"zed", `{"context_servers": {"a": "x"}}`, `"x"`, nil},
}

func TestCarry(t *testing.T) {
	for name, tt := range carryCases {
		t.Run(name, func(t *testing.T) {
			got, notes := carried(t, tt.provider, 0, tt.file, "/work/p")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestHostileRows shows that a file from a stranger's project costs little more than its size: no list in it is walked
// once for each entry of another.
func TestHostileRows(t *testing.T) {
	const many = 25_000
	repeat := func(format string) string {
		var b strings.Builder
		for i := range many {
			b.WriteString(strings.ReplaceAll(format, "#", "n"+strconv.Itoa(i)))
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, tt := range map[string]struct{ provider, file string }{
		"env":     {"cursor", `{"mcpServers": {"a": {"env": {` + repeat(`"#":"x",`) + `}}}}`},
		"members": {"cursor", `{"mcpServers": {"a": {` + repeat(`"#":"x",`) + `}}}`},
		"inputs": {"vscode", `{"inputs": [` + repeat(`{"id":"#"},`) + `], "servers": {"a": {"args": ["` +
			repeat("${input:#}") + `"]}}}`},
		"off": {"gemini", `{"mcp": {"excluded": [` + repeat(`"#",`) + `]}, "mcpServers": {` +
			repeat(`"#": {"command":"x"},`) + `}}`},
		"oauth":    {"gemini", `{"mcpServers": {"a": {"oauth": {` + repeat(`"#":"x","clientId":"x",`) + `}}}}`},
		"env_vars": {"codex", "[mcp_servers.a]\nenv_vars = [" + repeat(`"v#",`) + "]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			shape := provider(t, tt.provider).Locations[0].Shape
			root, err := shape.Parse([]byte(tt.file))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			rows, _ := shape.Rows(root, "/work/p")
			for _, row := range rows {
				shape.ToNative(row, "/work/p")
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestPlaces shows where the person's own files are on each system, and what a variable changes.
func TestPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths below are those of other systems")
	}
	none := func(string) (string, bool) { return "", false }
	base := BaseDirs{Project: "/p", Config: "/h/.config", Home: "/h", AppData: "/r", Lookup: none}
	files := func(name, system string) (own []string) {
		b := base
		b.OS = system
		for _, at := range provider(t, name).Locations {
			if f := at.Resolve(b); f != "" && at.Root != ProjectRoot {
				own = append(own, f)
			}
		}
		return own
	}
	for key, want := range map[string][]string{
		"claude-desktop linux": {"/h/.config/Claude/claude_desktop_config.json",
			"/h/.config/claude/claude_desktop_config.json"},
		"claude-desktop darwin":  {"/h/Library/Application Support/Claude/claude_desktop_config.json"},
		"claude-desktop windows": {"/r/Claude/claude_desktop_config.json"},
		"vscode darwin": {"/h/Library/Application Support/Code/User/mcp.json",
			"/h/Library/Application Support/Code/User/settings.json"},
		"claude-code linux": {"/h/.claude.json", "/h/.claude/mcp.json", "/h/.claude/.mcp.json"},
		"codex linux":       {"/h/.codex/config.toml"},
		"goose linux":       {"/h/.config/goose/config.yaml"},
	} {
		name, system, _ := strings.Cut(key, " ")
		if diff := cmp.Diff(want, files(name, system)); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	base.Lookup = func(name string) (string, bool) { return "/set/" + strings.ToLower(name), true }
	got := slices.Concat(files("claude-code", "linux"), files("codex", "linux"), files("gemini", "linux"),
		files("crush", "linux"), files("goose", "linux"))
	if diff := cmp.Diff([]string{
		"/set/claude_config_dir/.claude.json", "/set/claude_config_dir/mcp.json", "/set/claude_config_dir/.mcp.json",
		"/set/codex_home/config.toml",
		"/set/gemini_cli_home/.gemini/settings.json",
		"/set/crush_global_config/crush.json", "/set/goose_path_root/config/config.yaml",
	}, got); diff != "" {
		t.Error(diff)
	}
	if got := (FileLocation{Root: HomeRoot, Path: "x"}).Resolve(BaseDirs{Lookup: none}); got != "" {
		t.Errorf("a file %s without a home", got)
	}
	if want := filepath.Join("/p", "mcp.json"); provider(t, "mcp-json").Locations[0].Resolve(base) != want {
		t.Errorf("no %s", want)
	}
}

// TestProjectRootFilesComeLast holds the files of many programs at the root of a project behind those of one program.
func TestProjectRootFilesComeLast(t *testing.T) {
	var files []string
	for _, p := range Providers() {
		for _, at := range p.Locations {
			if at.Root == ProjectRoot {
				files = append(files, at.Path)
			}
		}
	}
	if diff := cmp.Diff([]string{"mcp.json", ".mcp.json"}, files[len(files)-2:]); diff != "" {
		t.Error(diff)
	}
}

// TestTheTable holds each provider to what the others rely on.
func TestTheTable(t *testing.T) {
	for _, p := range Providers() {
		for _, at := range p.Locations {
			if at.Shape == nil || at.Shape.Native != (p.Name == "native") || at.Shape.parse == nil ||
				at.Shape.findRows == nil ||
				!at.Shape.Native && (at.Shape.grammar == nil || at.Shape.grammar.title == "") {
				t.Errorf("%s: %s has no whole shape", p.Name, at)
			}
			if rows, _ := at.Shape.Rows(configfile.Node{}, ""); rows != nil {
				t.Errorf("%s: rows in nothing", at)
			}
		}
	}
}
