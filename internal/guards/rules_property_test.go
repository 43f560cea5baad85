package guards_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// echo is an upstream that answers everything.
type echo struct{ deck.Upstream }

func (echo) Do(_ context.Context, id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{Raw: json.RawMessage(`{"from":"` + string(id) + `"}`)}, nil
}

func (echo) Watch(context.Context, drawbridge.ServerID, drawbridge.WatchSet) error { return nil }

// guarded is a deck of three servers that have tools, prompts, resources and templates, with a warden.
func guarded(t testing.TB) (*deck.Deck, *guards.RuleGuard) {
	t.Helper()
	w := guards.NewRuleGuard(slog.New(slog.DiscardHandler))
	d, err := deck.New(t.Context(), echo{}, deck.Options{Guards: []deck.Guard{w}})
	if err != nil {
		t.Fatal(err)
	}
	var members []deck.Server
	for _, id := range []drawbridge.ServerID{"fs", "git", "web"} {
		members = append(members, deck.Server{ID: id, ConfigHash: "row"})
	}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		l := drawbridge.Listing{
			Server: m.ID, ConfigHash: "row", Instructions: "use " + string(m.ID),
			Capabilities: json.RawMessage(`{"resources":{"subscribe":true},"prompts":{},"completions":{}}`),
		}
		for _, name := range []string{"read", "write", "solo" + string(m.ID)} {
			l.Tools = append(l.Tools, json.RawMessage(`{"name":"`+name+`","annotations":{"readOnlyHint":`+
				strconv.FormatBool(name == "read")+`}}`))
			l.Prompts = append(l.Prompts, json.RawMessage(`{"name":"`+name+`"}`))
			l.Resources = append(l.Resources, json.RawMessage(`{"uri":"`+string(m.ID)+`://`+name+`"}`))
		}
		l.Templates = append(l.Templates, json.RawMessage(`{"uriTemplate":"`+string(m.ID)+`-t://{x}"}`))
		if err := d.Enrol(t.Context(), l, deck.ShowAll(l)); err != nil {
			t.Fatal(err)
		}
	}
	return d, w
}

// randomRules makes rules of all that rules can name.
func randomRules(r *rand.Rand) *drawbridge.Rules {
	pick := func(from ...string) []string {
		if r.IntN(3) > 0 {
			return nil
		}
		return []string{from[r.IntN(len(from))]}
	}
	effect := func() drawbridge.Effect { return drawbridge.Effect(r.IntN(3)) }
	out := &drawbridge.Rules{Default: effect()}
	for range r.IntN(6) {
		rule := drawbridge.Rule{
			Effect: effect(), Tools: pick("read", "*", "fs__*", "git:write", "mcp_fs_*"),
			Prompts:   pick("*", "write", "web__*"),
			Resources: pick("fs://*", "*", "*-t://*", "git://read"), Servers: pick("fs", "*", "g*"),
			Methods: pick("tools/*", "prompts/get", "completion/*", "resources/*"),
			Trust:   pick("trusted", "untrusted"), Callers: pick("ada", "b*"), Kinds: pick("author", "external"),
			Clients: pick("cursor", "x*"),
			Paths:   pick("/etc/**"),
		}
		if r.IntN(4) == 0 {
			rule.Scopes = []drawbridge.Scope{"mcp:fs"}
		}
		if when := pick(`caller.principal == "ada"`, `annotations.readOnlyHint`, `has(args.x)`,
			`server == "fs" || kind == "prompt"`, `args.x`, `trust == "trusted"`); when != nil {
			rule.When = when[0]
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

func randomCaller(r *rand.Rand) drawbridge.Caller {
	return drawbridge.Caller{
		Kind: drawbridge.CallerKind(1 + r.IntN(5)), Principal: []string{"ada", "bob", "carl"}[r.IntN(3)],
		Scopes: [][]drawbridge.Scope{{"*"}, {"mcp:fs", "mcp:git"}, {"mcp:web"}}[r.IntN(3)], Era: drawbridge.Modern,
		Client: json.RawMessage([]string{`{"name":"cursor"}`, `{"name":"xyz"}`, ``}[r.IntN(3)]),
	}
}

// seeded prints a seed, which the variable POLICY_SEED sets.
func seeded(t *testing.T) *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("POLICY_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("POLICY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// TestWhatIsListedIsWhatIsThere: under any rules, for any caller, what is listed can be called, as far as arguments
// let it; what is not listed is unknown, in the very words for what no one has; and each of a thing's names leads to
// one verdict.
func TestWhatIsListedIsWhatIsThere(t *testing.T) {
	r := seeded(t)
	d, w := guarded(t)
	hidden, shown := 0, 0
	for range 120 {
		rules := randomRules(r)
		p, err := guards.CompileRules(rules)
		if err != nil {
			t.Fatal(err)
		}
		w.Update(p, []config.Server{{ID: "fs", Trust: "trusted"}}, nil)
		d.Refresh()
		for range 3 {
			c := randomCaller(r)
			for _, k := range []struct{ list, member, method, param string }{
				{mcp.MethodToolsList, "name", mcp.MethodToolsCall, `{"name":%q}`},
				{mcp.MethodPromptsList, "name", mcp.MethodPromptsGet, `{"name":%q}`},
				{mcp.MethodResourcesList, "uri", mcp.MethodResourcesRead, `{"uri":%q}`},
			} {
				list, err := d.List(t.Context(), c, k.list)
				if err != nil {
					t.Fatal(err)
				}
				listed := map[string]bool{}
				for _, item := range list.Items {
					listed[rawjson.GetString(item, k.member)] = true
				}
				for _, name := range all(k.member) {
					result, err := d.Do(t.Context(), drawbridge.Call{Caller: c, Method: k.method,
						Params: fmt.Appendf(nil, k.param, name)})
					there := code(err) != drawbridge.NotFound
					owner := strings.HasPrefix(name, rawjson.GetString(result.Raw, "from"))
					if k.member == "uri" && !listed[name] && there && (err != nil || !owner) {
						continue // where a caller knows one server only, that is asked for any URI
					}
					if there != listed[name] {
						t.Fatalf("%+v, %+v: %s %s is listed: %v, and: %v", rules, c, k.method, name, listed[name], err)
					}
					if there {
						shown++
						continue
					}
					hidden++
					_, nothing := d.Do(t.Context(), drawbridge.Call{Caller: c, Method: k.method,
						Params: fmt.Appendf(nil, k.param, "no"+name)})
					if k.member == "uri" && code(nothing) != drawbridge.NotFound {
						continue // the rules do not match it
					}
					if strings.Replace(nothing.Error(), "no"+name, name, 1) != err.Error() {
						t.Fatalf("hidden: %v; unknown: %v", err, nothing)
					}
				}
			}
			aliases(t, d, c)
		}
	}
	if hidden < 200 || shown < 200 {
		t.Errorf("hidden %d, shown %d: the rules do not test this", hidden, shown)
	}
}

// all are the names or URIs of what the three servers list.
func all(member string) (names []string) {
	for _, id := range []string{"fs", "git", "web"} {
		for _, own := range []string{"read", "write", "solo" + id} {
			if member == "name" {
				names = append(names, id+"__"+own)
			} else {
				names = append(names, id+"://"+own)
			}
		}
	}
	return names
}

// aliases calls a tool by each of its names.
func aliases(t *testing.T, d *deck.Deck, c drawbridge.Caller) {
	for _, id := range []string{"fs", "git", "web"} {
		var verdicts []drawbridge.FaultCode
		for _, name := range []string{id + "__solo" + id, "mcp_" + id + "_solo" + id, "solo" + id} {
			_, err := d.Do(t.Context(), drawbridge.Call{Caller: c, Method: mcp.MethodToolsCall, Params: fmt.Appendf(nil,
				`{"name":%q}`, name)})
			verdicts = append(verdicts, code(err))
		}
		if verdicts[0] != verdicts[1] || verdicts[0] != verdicts[2] {
			t.Errorf("solo%s by its three names: %q", id, verdicts)
		}
	}
}

func code(err error) drawbridge.FaultCode {
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		return f.Code
	}
	return ""
}

// take puts rules in force on a deck.
func take(t *testing.T, d *deck.Deck, w *guards.RuleGuard, rules ...drawbridge.Rule) {
	t.Helper()
	p, err := guards.CompileRules(&drawbridge.Rules{Default: drawbridge.Allow, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	w.Update(p, nil, nil)
	d.Refresh()
}

// TestAHiddenServerIsNowhere: no instruction, capability, completion, subscription or event tells of it.
func TestAHiddenServerIsNowhere(t *testing.T) {
	d, w := guarded(t)
	ada := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"},
		Era: drawbridge.Modern}
	before := d.Instructions(ada)
	var heard []drawbridge.ServerID
	defer d.OnEvent(func(e deck.Event) {
		if e.VisibleTo(ada) && e.Notification.Server != "" {
			heard = append(heard, e.Notification.Server)
		}
	})()
	take(t, d, w, drawbridge.Rule{Effect: drawbridge.Deny, Servers: []string{"git"}})
	if !strings.Contains(before, "git") || strings.Contains(d.Instructions(ada), "git") {
		t.Errorf("instructions: %q, then %q", before, d.Instructions(ada))
	}
	for _, uri := range []string{"git://read", "git://unlisted", "drawbridge+git:x://y", "git-t://1"} {
		if err := d.Subscribe(t.Context(), ada, uri); err == nil {
			t.Errorf("%s can be watched", uri)
		} else if diff := cmp.Diff("unknown resource "+uri, err.Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, ref := range []string{`{"type":"ref/prompt","name":"git__read"}`,
		`{"type":"ref/resource","uri":"git-t://{x}"}`} {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodComplete,
			Params: json.RawMessage(`{"ref":` + ref + `}`)})
		if code(err) != drawbridge.NotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, id := range []drawbridge.ServerID{"git", "fs"} {
		d.HandleNotification(drawbridge.ServerNotification{Server: id, Method: mcp.NoteResourceUpdated,
			Params: json.RawMessage(`{"uri":"` + string(id) + `://read"}`)})
		d.HandleNotification(drawbridge.ServerNotification{Server: id, Method: "notifications/message",
			Params: json.RawMessage(`{}`)})
	}
	if diff := cmp.Diff([]drawbridge.ServerID{"fs", "fs"}, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if _, _, ok := d.FindUnfiltered("git__read"); !ok {
		t.Error("who keeps the rules cannot look at what they hide")
	}
}

// TestListsStayAsTheyAre: rules cost a list its version once, when they come, and never again.
func TestListsStayAsTheyAre(t *testing.T) {
	d, w := guarded(t)
	var changed int
	defer d.OnEvent(func(e deck.Event) { changed++ })()
	ada := drawbridge.Caller{Kind: drawbridge.Author, Principal: "ada", Scopes: []drawbridge.Scope{"*"}}
	version := func() uint64 {
		list, err := d.List(t.Context(), ada, mcp.MethodToolsList)
		if err != nil {
			t.Fatal(err)
		}
		return list.Version
	}
	plain := version()
	take(t, d, w, drawbridge.Rule{Effect: drawbridge.Deny, Tools: []string{"write"}})
	if changed != 3 {
		t.Errorf("%d events tell of the rules, want one each for tools, prompts and resources", changed)
	}
	ruled := version()
	if ruled == plain || version() != ruled {
		t.Errorf("versions %d, then %d, then %d", plain, ruled, version())
	}
	if err := d.Enrol(t.Context(), drawbridge.Listing{Server: "web", ConfigHash: "row"},
		deck.VettedListing{}); err != nil {
		t.Fatal(err)
	}
	if version() == ruled {
		t.Error("another list has the same version")
	}
}

// TestCompileNamesThePlace: a rule with a mistake is refused with its file and line, and a panic of no one's making
// denies.
func TestCompileNamesThePlace(t *testing.T) {
	_, err := guards.CompileRules(&drawbridge.Rules{Rules: []drawbridge.Rule{{At: "f.toml:7", When: "1 +"}}})
	if code(err) != drawbridge.InvalidInput || !strings.HasPrefix(err.Error(), "read f.toml:7: when, character ") {
		t.Error(err)
	}
}
