//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A way is one by which someone gets to the deck: a door, in one generation, as one caller.
type way struct {
	name string
	// list returns what is listed, by its name or URI; use what is said to who uses something.
	list func(method, items, member string) []string
	use  func(method, params string) string
}

// wayOf is a client's.
func wayOf(name string, c *client) way {
	return way{name, func(method, items, member string) (names []string) {
		for item := range rawjson.Elements(rawjson.Get(c.do(method, `{}`).Result, items)) {
			names = append(names, rawjson.GetString(item, member))
		}
		return names
	}, func(method, params string) string {
		m := c.do(method, params)
		return string(m.Result) + string(m.Error)
	}}
}

// wayWithin is that of a part of the program.
func wayWithin(t *testing.T, name string, g *gateway.Gateway, caller drawbridge.Caller) way {
	return way{name, func(method, _, member string) (names []string) {
		list, err := g.Deck().List(t.Context(), caller, method)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, rawjson.GetString(item, member))
		}
		return names
	}, func(method, params string) string {
		result, err := g.Deck().Do(t.Context(), drawbridge.Call{Caller: caller, Method: method,
			Params: json.RawMessage(params)})
		if f := drawbridge.AsFault(err); f != nil {
			return f.Error() + string(f.Raw)
		}
		return string(result.Raw)
	}}
}

// twoServers are rows of two servers with tools, prompts, resources and templates.
func twoServers(t *testing.T) string {
	var rows []string
	for _, id := range []string{"fs", "git"} {
		s := &extensionServer{capabilities: `{"tools":{},"prompts":{},"resources":{},"completions":{}}`,
			answers: map[string]string{
				mcp.MethodTemplatesList: `{"resourceTemplates":[{"name":"t","uriTemplate":"` + id + `-t://{x}"}]}`,
				mcp.MethodComplete:      `{"completion":{"values":[]}}`,
			}}
		var tools, prompts, resources []string
		for _, name := range []string{"read", "write", "solo" + id} {
			uri := id + "://" + name
			tools = append(tools,
				fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"annotations":{"readOnlyHint":%t}}`, name,
					name == "read"))
			prompts = append(prompts, fmt.Sprintf(`{"name":%q}`, name))
			resources = append(resources, fmt.Sprintf(`{"name":%q,"uri":%q}`, name, uri))
			s.answers[mcp.MethodToolsCall+" "+name], s.answers[mcp.MethodPromptsGet+" "+name] = `{"content":[]}`,
				`{"messages":[]}`
			s.answers[mcp.MethodResourcesRead+" "+uri] = `{"contents":[]}`
		}
		s.answers[mcp.MethodToolsList] = `{"tools":[` + strings.Join(tools, ",") + `]}`
		s.answers[mcp.MethodPromptsList] = `{"prompts":[` + strings.Join(prompts, ",") + `]}`
		s.answers[mcp.MethodResourcesList] = `{"resources":[` + strings.Join(resources, ",") + `]}`
		web := httptest.NewServer(s)
		t.Cleanup(web.Close)
		rows = append(rows, fmt.Sprintf(`%q:{"type":"http","url":%q}`, id, web.URL))
	}
	return `{"servers":{` + strings.Join(rows, ",") + `}}`
}

// randomTOML writes rules. Plain means that no rule looks at arguments, so that what is listed is never denied.
func randomTOML(r *rand.Rand) (text string, plain bool) {
	var b strings.Builder
	plain = true
	effects := []string{"allow", "deny", "deny"}
	// What waits for a person is refused at once, and what fails again and again goes on failing.
	fmt.Fprintf(&b, "[tools]\nask_timeout = \"1ms\"\nmax_identical_errors = \"unlimited\"\n[tools.policy]\ndefault_effect = %q\n", []string{"allow", "allow", "deny"}[r.IntN(3)])
	maybe := func(name string, of int, values ...string) {
		if r.IntN(of) == 0 {
			fmt.Fprintf(&b, "%s = %q\n", name, values[r.IntN(len(values))])
		}
	}
	for range 1 + r.IntN(5) {
		fmt.Fprintf(&b, "[[tools.policy.rules]]\neffect = %q\n", effects[r.IntN(3)])
		switch r.IntN(4) {
		case 0:
			maybe("tools", 1, "read", "*", "fs__*", "git:write", "drawbridge_*", "solo*")
		case 1:
			maybe("prompts", 1, "*", "write", "git__*")
		case 2:
			maybe("resources", 1, "fs://*", "*", "*-t://*", "git://read")
		}
		maybe("servers", 4, "fs", "*", "g*", "drawbridge")
		maybe("methods", 6, "tools/*", "prompts/get", "resources/*")
		maybe("callers", 4, "client:part", "client:*", "x")
		maybe("clients", 4, "raw", "other*")
		maybe("kinds", 4, "author", "external")
		maybe("scopes", 5, "mcp:fs", "*")
		switch r.IntN(6) {
		case 0:
			plain = false
			maybe("when", 1, "has(args.x)", `args.x == 1`, `has(args.x) || server == "fs"`)
		case 1:
			maybe("when", 1, `caller.principal == "client:part"`, `annotations.readOnlyHint`, `kind == "prompt"`,
				`server != "fs"`)
		}
	}
	return b.String(), plain
}

// token has the store know a client with these scopes.
func token(t *testing.T, db *store.DB, name string, scopes ...drawbridge.Scope) string {
	secret, hash := gateway.NewClientToken()
	if err := db.AddClient(t.Context(), store.Client{Name: name, Scopes: scopes}, hash); err != nil {
		t.Fatal(err)
	}
	return secret.Reveal()
}

// TestWhatIsListedIsWhatCanBeUsed has callers at every door, in both generations, from within the program and as the
// command line list and use everything under random rules: what is listed is answered otherwise than what there is
// not, and what is not listed is answered to the byte as that is.
func TestWhatIsListedIsWhatCanBeUsed(t *testing.T) {
	shown, hidden := 0, 0
	underRandomRules(t, "", func(w way, plain bool) []string { return w.uneven(plain, &shown, &hidden) })
	t.Logf("%d shown, %d hidden", shown, hidden)
	if shown+hidden < 400 {
		t.Errorf("%d were shown and %d hidden: that is not a test", shown, hidden)
	}
}

// TestWhatIsFoundIsWhatCanBeUsed is the same where lists are short: at every door that has find_tools, what is found
// can be called, by its name and by call_tool; what is not found is unknown to both, and named in no answer.
func TestWhatIsFoundIsWhatCanBeUsed(t *testing.T) {
	shown, hidden := 0, 0
	underRandomRules(t, "[mcp.tool_discovery]\nmode = \"search\"\ntop_k = 10000\nrelative_score = 0\n",
		func(w way, _ bool) []string {
			return w.strayed(&shown, &hidden)
		})
	t.Logf("%d found, %d hidden", shown, hidden)
	if shown+hidden < 100 {
		t.Errorf("%d were found and %d hidden: that is not a test", shown, hidden)
	}
}

// underRandomRules has callers at every door look for problems, under one set of rules after the other, beside
// settings.
func underRandomRules(t *testing.T, settings string, look func(w way, plain bool) (problems []string)) {
	r := seeded(t)(1)
	dir := t.TempDir()
	first, _ := randomTOML(r)
	g := runIn(t, dir, twoServers(t), settings+first)
	ways := waysTo(t, g, dir)
	for range 4 {
		text, plain := randomTOML(r)
		if err := os.WriteFile(filepath.Join(dir, "drawbridge", "drawbridge.toml"), []byte(settings+text),
			0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Reload(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, w := range ways {
			for _, problem := range look(w, plain) {
				t.Errorf("%s: %s, under\n%s", w.name, problem, text)
			}
		}
	}
}

// waysTo are callers at every door of a gateway, in both generations, from within the program and as the command line.
func waysTo(t *testing.T, g *running, dir string) []way {
	db, err := store.Open(t.Context(), filepath.Join(dir, "store.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	all, part := token(t, db, "all", "*"), token(t, db, "part", "mcp:fs")
	var ways []way
	for _, era := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
		ways = append(ways, wayOf("stdio, "+era.String(), newClient(t, era, mcp.Version20251125, `{}`,
			func(hear func(mcp.Message)) line {
				return dialStdio(t, g.Server(), hear)
			})))
		for name, secret := range map[string]string{"all": all, "part": part} {
			ways = append(ways, wayOf("HTTP, "+era.String()+", client:"+name, newClient(t, era, mcp.Version20251125,
				`{}`, func(hear func(mcp.Message)) line {
					l := dialHTTP(g.url, era, hear)
					l.token = secret
					return l
				})))
		}
	}
	person := g.Owner()
	person.Kind = drawbridge.Author
	session, end := g.NewCaller(json.RawMessage(`{}`))
	t.Cleanup(end)
	agent := g.Owner()
	agent.Kind, agent.Scopes = drawbridge.Agent, []drawbridge.Scope{"mcp:git"}
	return append(ways, wayWithin(t, "the command line", g.Gateway, person), wayWithin(t, "a session", g.Gateway,
		session), wayWithin(t, "an agent", g.Gateway, agent))
}

// strayed describes what is found and cannot be called, or the other way round. Who has no find_tools has no problems.
func (w way) strayed(shown, hidden *int) (problems []string) {
	call := func(name, arguments string) string {
		return w.use(mcp.MethodToolsCall, fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments))
	}
	found, answers := map[string]bool{}, ""
	for _, query := range []string{"", "write a solo", "quantum"} {
		said := call("find_tools", fmt.Sprintf(`{"query":%q}`, query))
		if strings.Contains(said, "unknown tool find_tools") {
			return nil
		}
		answers += said
		for _, name := range toolsIn(json.RawMessage(said), "structuredContent", "tools") {
			found[name] = true
		}
		for more := range rawjson.Elements(rawjson.Get(json.RawMessage(said), "structuredContent", "more")) {
			name, _ := rawjson.DecodeString(more)
			found[name] = true
		}
	}
	answers += call("call_tool", `{"name":"fs_git_read_write_solo"}`) // what is near is said
	for _, name := range []string{"fs__read", "fs__write", "fs__solofs", "git__read", "git__write", "git__sologit",
		"drawbridge_scopes"} {
		direct, through := call(name, "{}"), call("call_tool", fmt.Sprintf(`{"name":%q,"arguments":{}}`, name))
		unknown := strings.ReplaceAll(call("zz"+name, "{}"), "zz"+name, name)
		is, isThrough := direct != unknown, !strings.Contains(through, "nknown tool")
		switch {
		case is != found[name] || isThrough != found[name]:
			problems = append(problems, fmt.Sprintf("%s is found: %v, and is answered %s, by call_tool %s", name,
				found[name], direct, through))
		case !is && strings.Contains(answers, name):
			problems = append(problems, fmt.Sprintf("%s is hidden, and named in %s", name, answers))
		case is:
			*shown++
		default:
			*hidden++
		}
	}
	return problems
}

// uneven describes what is listed and cannot be used, or the other way round.
func (w way) uneven(plain bool, shown, hidden *int) (problems []string) {
	for _, k := range []struct{ list, items, member, use, params string }{
		{mcp.MethodToolsList, "tools", "name", mcp.MethodToolsCall, `{"name":%q,"arguments":{}}`},
		{mcp.MethodPromptsList, "prompts", "name", mcp.MethodPromptsGet, `{"name":%q}`},
		{mcp.MethodPromptsList, "prompts", "name", mcp.MethodComplete,
			`{"ref":{"type":"ref/prompt","name":%q},"argument":{"name":"x","value":""}}`},
		{mcp.MethodResourcesList, "resources", "uri", mcp.MethodResourcesRead, `{"uri":%q}`},
	} {
		listed := map[string]bool{}
		for _, name := range w.list(k.list, k.items, k.member) {
			listed[name] = true
		}
		names := []string{"fs__read", "fs__write", "fs__solofs", "git__read", "git__write", "git__sologit"}
		switch k.items {
		case "tools":
			names = append(names, "drawbridge_scopes")
		case "resources":
			names = []string{"fs://read", "fs://write", "fs://solofs", "git://read", "git://write", "git://sologit"}
		}
		ask := func(name string) string {
			return strings.ReplaceAll(w.use(k.use, fmt.Sprintf(k.params, name)), name, "NAME")
		}
		nothing := ask("zz" + names[0])
		if listed["drawbridge_tools"] { // the card that describes what there is
			said := w.use(mcp.MethodToolsCall, `{"name":"drawbridge_tools","arguments":{}}`)
			for _, name := range names {
				if strings.Contains(said, "denied by policy") {
					continue // for its arguments
				}
				if strings.Contains(said, name) != listed[name] {
					problems = append(problems, fmt.Sprintf("%s is listed: %v, and drawbridge_tools says %s", name,
						listed[name], said))
				}
			}
		}
		for _, name := range names {
			said := ask(name)
			is := said != nothing
			if k.items == "resources" {
				// Who knows one server only has that asked for any URI, if the rules have nothing against it, and
				// hears in its words of what there is not.
				is = strings.Contains(said, `"contents"`)
				if listed[name] {
					is = !strings.Contains(said, "Resource not found") && !strings.HasPrefix(said, "unknown resource")
				}
			}
			switch {
			case is != listed[name]:
				problems = append(problems,
					fmt.Sprintf("%s %s is listed: %v, and is answered %s, and what there is not %s", k.use, name,
						listed[name], said, nothing))
			case is && plain && k.use != mcp.MethodComplete && strings.Contains(said, "denied by policy"):
				problems = append(problems, fmt.Sprintf("%s %s is listed, and denied whatever the arguments", k.use,
					name))
			case is:
				*shown++
			default:
				*hidden++
			}
		}
	}
	return problems
}

// TestClientsThatAskForFences has results fenced for the clients of the names in the settings, at both doors: as they
// call themselves, or as their tokens are called.
func TestClientsThatAskForFences(t *testing.T) {
	for fence, want := range map[string]map[string]bool{
		`["Raw"]`: {"stdio": true, "ci": true, "dev": true},
		`["ci"]`:  {"ci": true},
		`true`:    {"ci": true, "dev": true},
	} {
		dir := t.TempDir()
		g := runIn(t, dir, `{"servers":{"up":`+string(mcptest.ServerRow(t, "talker", drawbridge.Legacy.String(), dir+
			"/record"))+`}}`, "[serve]\nfence = "+fence+"\n")
		db, err := store.Open(t.Context(), filepath.Join(dir, "store.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		tokens := map[string]string{"ci": token(t, db, "ci", "*"), "dev": token(t, db, "dev", "*")}
		for _, door := range []string{"stdio", "ci", "dev"} {
			client := newClient(t, drawbridge.Legacy, mcp.Version20251125, `{}`, func(hear func(mcp.Message)) line {
				if door == "stdio" {
					return dialStdio(t, g.Server(), hear)
				}
				l := dialHTTP(g.url, drawbridge.Legacy, hear)
				l.token = tokens[door]
				return l
			})
			result := client.call(mcp.MethodToolsCall, toolParams("echo", `{"text":"hi"}`)).Result
			if got := strings.Contains(string(result), "TOOL_OUTPUT::"); got != want[door] {
				t.Errorf("fence = %s, by %s: %s", fence, door, result)
			}
		}
	}
}
