//go:build !nomcp

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
	"github.com/google/go-cmp/cmp"
)

// A httpLibrary is a library that clients reach over HTTP with tokens of their own.
type httpLibrary struct {
	library
	knocker
	store string
}

func serveLibrary(t *testing.T, c Config) httpLibrary {
	t.Helper()
	c.Store = filepath.Join(t.TempDir(), "store.db")
	l := openLibraryWith(t, c)
	return httpLibrary{l, knock(t, l.Gateway), c.Store}
}

// register stores a client, and returns its token.
func (l httpLibrary) register(name string, origin workspace.Origin, scopes ...drawbridge.Scope) (token string) {
	l.library.t.Helper()
	secret, hash := NewClientToken()
	if err := l.shared.db.AddClient(l.library.t.Context(), store.Client{Name: name, Origin: origin, Scopes: scopes},
		hash); err != nil {
		l.library.t.Fatal(err)
	}
	return secret.Reveal()
}

// create calls page_create with a title, and returns the response. origin is a JSON value for the "_meta" of the call;
// empty for none.
func (l httpLibrary) create(token, title, origin string) string {
	l.library.t.Helper()
	meta := ""
	if origin != "" {
		meta = `"drawbridge/origin":` + origin
	}
	_, body := l.doWithMeta(token, mcp.MethodToolsCall,
		fmt.Sprintf(`"name":"page_create","arguments":{"title":%q,"text":"A fact.\n"}`, title), meta)
	return body
}

// callBare calls a tool without arguments, and returns the response.
func (l httpLibrary) callBare(token, tool string) string {
	l.library.t.Helper()
	_, body := l.do(token, mcp.MethodToolsCall, fmt.Sprintf(`"name":%q`, tool))
	return body
}

// pages returns who wrote the pages of the workspace, with their origins and lifecycles, by their titles.
func (l httpLibrary) pages() map[string]string {
	l.library.t.Helper()
	var list struct {
		Pages []workspace.Page `json:"pages"`
	}
	if err := json.Unmarshal(l.does(l.person(), "page_list", arguments{}), &list); err != nil {
		l.library.t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range list.Pages {
		all[p.Title] = fmt.Sprintf("%s %s %s", p.By, p.Origin, p.Lifecycle)
	}
	return all
}

// records closes the gateway, and returns the recorded calls.
func (l httpLibrary) records() []audit.Record {
	t := l.library.t
	t.Helper()
	closeIt(t, l.Gateway)
	db, err := store.Open(t.Context(), l.store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []audit.Record
	for stored, err := range db.AuditRecords(t.Context(), time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		r, err := audit.DecodeRecord(stored.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return audit.MergeOutcomes(all)
}

// written returns the origin and the lifecycle in a response of page_create, or else the error.
func written(response string) string {
	b := []byte(response)
	if code := rawjson.GetString(b, "result", "_meta", "drawbridge/fault", "code"); code != "" {
		return code
	}
	if code := rawjson.Get(b, "error", "code"); code != nil {
		return string(code)
	}
	receipt := rawjson.Get(b, "result", "structuredContent", "receipt")
	return rawjson.GetString(receipt, "origin") + " " + rawjson.GetString(receipt, "lifecycle")
}

// TestOriginOfAClient has clients that were registered with each origin, and calls that name each origin. A call may
// name the origin of the registration, or a less trusted one. What is refused is on record, and writes nothing.
func TestOriginOfAClient(t *testing.T) {
	l := serveLibrary(t, Config{})
	const refused, invalid = "policy_blocked", "-32602"
	tokens := map[string]string{}
	for _, origin := range []workspace.Origin{"observed", "imported", "agent-produced", "authored"} {
		tokens[string(origin)] = l.register(string(origin), origin, "workspace:propose")
	}
	tokens["author"] = l.register("author", workspace.Authored, "workspace:propose", "workspace:author")
	wantPages, wantRecords := map[string]string{}, map[string]string{}
	titles := map[string]string{} // by what the audit has in their place
	for _, tt := range []struct{ registered, named, want string }{
		{"observed", "", "observed draft"},
		{"observed", `"observed"`, "observed draft"},
		{"observed", `"imported"`, refused},
		{"observed", `"agent-produced"`, refused},
		{"observed", `"authored"`, refused},
		{"imported", "", "imported draft"},
		{"imported", `"observed"`, "observed draft"},
		{"imported", `"imported"`, "imported draft"},
		{"imported", `"agent-produced"`, refused},
		{"imported", `"authored"`, refused},
		{"agent-produced", "", "agent-produced candidate"},
		{"agent-produced", `"observed"`, "observed draft"},
		{"agent-produced", `"\u006fbserved"`, "observed draft"},
		{"agent-produced", `"imported"`, "imported draft"},
		{"agent-produced", `"agent-produced"`, "agent-produced candidate"},
		{"agent-produced", `"authored"`, refused},
		{"agent-produced", `"seen"`, invalid},
		{"agent-produced", `"Observed"`, invalid},
		{"agent-produced", `""`, invalid},
		{"agent-produced", `null`, invalid},
		{"agent-produced", `["observed"]`, invalid},
		{"authored", "", refused}, // without the scope workspace:author
		{"authored", `"authored"`, refused},
		{"authored", `"agent-produced"`, "agent-produced candidate"},
		{"authored", `"observed"`, "observed draft"},
		{"author", "", "authored candidate"},
		{"author", `"imported"`, "imported draft"},
	} {
		title := strings.TrimSpace(tt.registered + " " + tt.named)
		sent, err := json.Marshal(title)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(sent)
		titles["sha256:"+hex.EncodeToString(sum[:])] = title
		if got := written(l.create(tokens[tt.registered], title, tt.named)); got != tt.want {
			t.Errorf("%s: %s, want %s", title, got, tt.want)
		}
		switch by := "client:" + tt.registered + " "; tt.want {
		case refused:
			wantRecords[title] = by + "fault policy_blocked"
		case invalid:
			wantRecords[title] = by + "fault invalid_input"
		default:
			wantPages[title], wantRecords[title] = by+tt.want, by+"ok "
		}
	}
	if diff := cmp.Diff(wantPages, l.pages()); diff != "" {
		t.Errorf("the pages (-want +got):\n%s", diff)
	}
	records := map[string]string{}
	for _, r := range l.records() {
		if r.Caller.Kind == drawbridge.External.String() {
			records[titles[rawjson.GetString(r.Arguments, "title")]] = r.Caller.Principal + " " + string(r.Outcome) + " " + r.Code
		}
	}
	if diff := cmp.Diff(wantRecords, records); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
}

// TestScopesOfAWritingClient has a client without the scope to propose, which does not find the tool, and then gets the
// scope.
func TestScopesOfAWritingClient(t *testing.T) {
	l := serveLibrary(t, Config{})
	reader := l.register("feed", workspace.Observed, "workspace:read", "fs:write", "mcp:*")
	unknown := strings.ReplaceAll(l.callBare(reader, "page_nothing"), "page_nothing", "page_create")
	if got := l.create(reader, "Seen", ""); got != unknown || !strings.Contains(got, `"error"`) {
		t.Errorf("without the scope: %s, want %s", got, unknown)
	}
	if _, list := l.do(reader, mcp.MethodToolsList, ""); strings.Contains(list, "page_create") || !strings.Contains(list, "page_read") {
		t.Errorf("the reader is listed %s", list)
	}
	if removed, err := l.shared.db.RemoveClient(t.Context(), "feed"); !removed || err != nil {
		t.Fatal(removed, err)
	}
	writer := l.register("feed", workspace.Observed, "workspace:propose")
	if got := written(l.create(writer, "Seen", "")); got != "observed draft" {
		t.Errorf("with the scope: %s", got)
	}
	if _, list := l.do(writer, mcp.MethodToolsList, ""); !strings.Contains(list, "page_create") || strings.Contains(list, "page_move") {
		t.Errorf("the writer is listed %s", list)
	}
	if status, _ := l.do(reader, mcp.MethodToolsList, ""); status != 401 {
		t.Errorf("the token before: %d", status)
	}
	if diff := cmp.Diff(map[string]string{"Seen": "client:feed observed draft"}, l.pages()); diff != "" {
		t.Errorf("the pages (-want +got):\n%s", diff)
	}
}

// TestOriginOfAScript has the scripts of two clients. What a script writes has the origin of its client, or the one that
// the call of run_python names.
func TestOriginOfAScript(t *testing.T) {
	l := serveLibrary(t, Config{Discovery: &config.ToolDiscovery{Mode: "code"}})
	if l.shared.scriptsErr != nil {
		t.Skip(l.shared.scriptsErr)
	}
	feed := l.register("feed", workspace.Observed, "*")
	model := l.register("model", workspace.AgentProduced, "*")
	for _, tt := range []struct{ token, title, origin string }{
		{feed, "One", ""}, {feed, "Two", `"agent-produced"`}, {model, "Three", ""}, {model, "Four", `"imported"`},
	} {
		meta := ""
		if tt.origin != "" {
			meta = `"drawbridge/origin":` + tt.origin
		}
		_, body := l.doWithMeta(tt.token, mcp.MethodToolsCall, `"name":"run_python","arguments":{"code":"tools.page_create(title='`+
			tt.title+`', text='A fact.')"}`, meta)
		if strings.Contains(body, sandbox.ErrNoInterpreter.Error()) {
			t.Skip(body)
		}
		if refused := strings.Contains(body, "less trusted"); refused != (tt.title == "Two") {
			t.Errorf("%s: %s", tt.title, body)
		}
	}
	want := map[string]string{"One": "client:feed observed draft", "Three": "client:model agent-produced candidate",
		"Four": "client:model imported draft"}
	if diff := cmp.Diff(want, l.pages()); diff != "" {
		t.Errorf("the pages (-want +got):\n%s", diff)
	}
}
