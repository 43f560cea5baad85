package guards

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

// ownToolCatalogue has a tool that reads, one that writes and one that is an app.
func ownToolCatalogue(t *testing.T) *deck.Catalogue {
	t.Helper()
	build := func(deck.Context) (drawbridge.Card, error) { return nil, nil }
	c, err := deck.NewCatalogue(
		deck.Card{ID: "read", Title: "r", Profiles: []deck.Membership{deck.MemberSurvey, deck.MemberAll}, Build: build},
		deck.Card{ID: "write", Title: "w", Profiles: []deck.Membership{deck.MemberAll}, Build: build},
		deck.Card{ID: "memory", Title: "m", Profiles: []deck.Membership{deck.MemberApp}, Build: build})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ownSpec(name string) drawbridge.Spec {
	spec := drawbridge.Spec{Name: drawbridge.CardName(name), Tool: name}
	switch name {
	case "read":
		spec.Scopes = []drawbridge.Scope{"fs:read"}
	case "write":
		spec.Scopes = []drawbridge.Scope{"fs:write"}
	}
	return spec
}

func TestOwnToolsByProfile(t *testing.T) {
	client := func(transport drawbridge.Transport, principal, name string, scopes ...drawbridge.Scope) drawbridge.Caller {
		return drawbridge.Caller{Kind: drawbridge.External, Transport: transport, Principal: principal, Scopes: scopes,
			Client: json.RawMessage(fmt.Sprintf(`{"name":%q}`, name))}
	}
	const pipe, web = drawbridge.StdioTransport, drawbridge.HTTPTransport
	author, agent, sandboxed := client(pipe, "ada", ""), client(pipe, "ada", ""), client(pipe, "ada", "")
	author.Kind, agent.Kind, sandboxed.Kind = drawbridge.Author, drawbridge.Agent, drawbridge.Sandbox
	none := &OwnToolGuard{Catalogue: ownToolCatalogue(t)}
	reading := &OwnToolGuard{Catalogue: ownToolCatalogue(t), Profile: deck.Authoring,
		Clients: map[string]deck.Profile{"editor": deck.All, "ci": deck.Survey, "off": deck.NoProfile}}
	for _, tt := range []struct {
		name   string
		guard  *OwnToolGuard
		caller drawbridge.Caller
		want   string
	}{
		{"no profile", none, client(pipe, "ada", "x", "*"), "[]"},
		{"no catalogue", &OwnToolGuard{Profile: deck.All}, client(pipe, "ada", "x", "*"), "[read write memory]"}, // not its tools
		{"author", none, author, "[read write memory]"},
		{"agent", none, agent, "[read write memory]"},
		{"sandbox", reading, sandboxed, "[]"},
		{"profile of all", reading, client(pipe, "ada", "x", "*"), "[read]"},
		{"declared name, in another case", reading, client(pipe, "ada", " Editor", "*"), "[read memory]"},
		{"declared name, with the scope", reading, client(pipe, "ada", "editor", "*", "fs:write"), "[read write memory]"},
		{"declared name, with a wider scope", reading, client(pipe, "ada", "editor", "fs:*"), "[read write memory]"},
		{"the scope without the profile", reading, client(pipe, "ada", "x", "*", "fs:write"), "[read]"},
		{"declared name over HTTP", reading, client(web, "ada", "editor", "*"), "[read]"},
		{"token", reading, client(web, "client:ci", "editor", "*", "fs:write"), "[read write]"},
		{"another token that declares the name", reading, client(web, "client:x", "ci", "*", "fs:write"), "[read]"},
		{"turned off", reading, client(pipe, "ada", "off", "*"), "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shown, called := []string{}, []string{}
			for _, name := range []string{"read", "write", "memory"} {
				if !tt.guard.Hides(tt.caller, "tool", ownSpec(name)) {
					shown = append(shown, name)
				}
				if tt.guard.Decide(t.Context(), deck.Question{Caller: tt.caller, Kind: "tool", Spec: ownSpec(name)}).Effect ==
					drawbridge.Allow {
					called = append(called, name)
				}
			}
			if fmt.Sprint(shown) != tt.want || fmt.Sprint(called) != tt.want {
				t.Errorf("shown %v, called %v; want %s", shown, called, tt.want)
			}
		})
	}
	if none.ShowsOwnTools(client(pipe, "ada", "x", "*")) || !reading.ShowsOwnTools(client(pipe, "ada", "x", "*")) ||
		reading.ShowsOwnTools(client(pipe, "ada", "off", "*")) {
		t.Error("own tools are for clients with a profile")
	}
}

// TestPathsOutsideTheRoots has a link out of the client's directory, and arguments in a text.
func TestPathsOutsideTheRoots(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"work", "other", "extra", "work-2"} {
		if err := os.Mkdir(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(top, "work")
	if err := os.Symlink("../other", filepath.Join(work, "link")); err != nil {
		t.Fatal(err)
	}
	guard := &OwnToolGuard{Catalogue: ownToolCatalogue(t), Profile: deck.All, Roots: []string{filepath.Join(top, "extra")},
		Home: top, Context: deck.Context{Dir: work}}
	caller := drawbridge.Caller{Kind: drawbridge.External, Dir: work, Scopes: []drawbridge.Scope{"*"}}
	for arguments, want := range map[string]drawbridge.Effect{
		`{}`:                                     drawbridge.Allow,
		`{"path":"a.txt"}`:                       drawbridge.Allow,
		`{"path":"."}`:                           drawbridge.Allow,
		`{"path":"../work/a"}`:                   drawbridge.Allow,
		`{"path":"../extra/a"}`:                  drawbridge.Allow,
		`{"path":"mcp://fs/file:///etc/passwd"}`: drawbridge.Allow,
		`{"pattern":"/etc/passwd"}`:              drawbridge.Allow,
		`{"path":"link/a"}`:                      drawbridge.Ask,
		`{"path":"link/../a"}`:                   drawbridge.Allow, // as the tools read it: cleaned, then opened
		`{"path":"../work-2/a"}`:                 drawbridge.Ask,
		`{"path":"/etc/passwd"}`:                 drawbridge.Ask,
		`{"Path":"/etc/passwd"}`:                 drawbridge.Ask,
		`{"path":"a","path":"/etc/passwd"}`:      drawbridge.Ask,
		`{"cwd":".."}`:                           drawbridge.Ask,
		`"{\"path\":\"\\u002fetc/passwd\"}"`:     drawbridge.Ask,
		`{"path":"~"}`:                           drawbridge.Ask,
	} {
		q := deck.Question{Caller: caller, Kind: "tool", Spec: ownSpec("read"),
			Params: json.RawMessage(`{"name":"read","arguments":` + arguments + `}`)}
		if got := guard.Decide(context.Background(), q); got.Effect != want {
			t.Errorf("%s: %+v; want %v", arguments, got, want)
		}
		q.Caller.Kind = drawbridge.Author
		if got := guard.Decide(context.Background(), q); got.Effect != drawbridge.Allow {
			t.Errorf("%s of the person at the command line: %+v", arguments, got)
		}
	}
	caller.Dir = top // a client that was started in the home directory
	if got := guard.Decide(t.Context(), deck.Question{Caller: caller, Kind: "tool", Spec: ownSpec("read"),
		Params: json.RawMessage(`{"arguments":{"path":"a.txt"}}`)}); got.Effect != drawbridge.Ask {
		t.Errorf("in the home directory: %+v", got)
	}
}

// TestOwnToolsDoNotReachOwnFiles has content that mentions a protected file, which is no access to it.
func TestOwnToolsDoNotReachOwnFiles(t *testing.T) {
	dir := t.TempDir()
	var guard OwnFileGuard
	guard.Update(OwnFiles{Paths: []string{filepath.Join(dir, "own")}, Dir: dir})
	for arguments, want := range map[string]drawbridge.Effect{
		`{"path":"a","content":"see ` + dir + `/own/servers.json"}`: drawbridge.Allow,
		`{"path":"own/servers.json"}`:                               drawbridge.Deny,
		`{"path":"./x/../own"}`:                                     drawbridge.Deny,
		`{"command":"cat own/servers.json"}`:                        drawbridge.Deny,
		`{"command":"cat ` + dir + `/own/servers.json"}`:            drawbridge.Deny,
		`"{\"path\":\"own\"}"`:                                      drawbridge.Deny,
	} {
		q := deck.Question{Caller: drawbridge.Caller{Kind: drawbridge.External}, Kind: "tool", Spec: ownSpec("write"),
			Params: json.RawMessage(`{"name":"write","arguments":` + arguments + `}`)}
		if got := guard.Decide(t.Context(), q); got.Effect != want {
			t.Errorf("%s: %+v; want %v", arguments, got, want)
		}
	}
}
