//go:build linux

package cli_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A canary is a secret of one kind, with the one server that may hear it: "" is nobody.
type canary struct{ kind, text, server string }

// The kinds of secrets that somebody can entrust to Drawbridge, but for those that signing in comes to.
const (
	inHeader   = "a header of a row"
	inURL      = "the query of a row's URL"
	inEnv      = "an environment value of a row"
	inFile     = "a file that a value refers to"
	inCommand  = "the output of a command"
	inOurs     = "a variable of our environment that a value refers to"
	inKeychain = "a value in the keychain"
	inSecret   = "a client's secret"
	inToken    = "the token of a client of serve --http"
	inClient   = "a header of a client of serve --http"
	inForeign  = "a header in another program's configuration"
)

// TestNoSecretLeaks lives through a day of use, with a secret of each kind, and looks for them in all that Drawbridge
// said, wrote and handed on.
func TestNoSecretLeaks(t *testing.T) {
	h := newHousehold(t)
	h.run(h.text(inKeychain), "secret", "set", "canary")
	h.client()
	h.serve()
	h.signIn()
	h.calls()
	h.processes()
	h.commands()
	h.processes()
	h.files("while they run")
	h.trouble()
	h.crash()
	h.run("", "mcp", "unauth", "protected")
	h.search()
}

// A household is a home with a configuration in it, the servers that it names, and all that was heard of both.
type household struct {
	*live
	provider *oauthtest.Provider
	canaries []canary
	fleet    []*serving
	own      []string // the files in which a person wrote secrets

	mu     sync.Mutex
	said   []spoken
	upward map[string][]string // what servers were sent: the lines of headers and the URL, by the server's name
}

// A spoken text is what a program said, or what stands in a file.
type spoken struct{ where, text string }

func newHousehold(t *testing.T) *household {
	h := &household{live: newLive(t), upward: map[string][]string{}}
	for kind, server := range map[string]string{
		inHeader: "plain", inURL: "query", inEnv: "child", inFile: "child", inCommand: "child", inOurs: "child",
		inKeychain: "child",
		inSecret:   "", inToken: "", inClient: "", inForeign: "plain",
	} {
		h.canaries = append(h.canaries, canary{kind, "canary" + rand.Text(), server})
	}
	h.provider = oauthtest.New(t, oauthtest.Options{Clients: []oauthtest.Client{{
		ID: "known", Secret: h.text(inSecret), Redirects: []string{"http://127.0.0.1/callback"},
	}}})
	h.write("file", h.text(inFile))
	h.write("printed", h.text(inCommand))
	h.write("secret", h.text(inSecret))
	child, args, env := mcptest.ServerCommand(t, "everything")
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	rows := map[string]any{
		"child": map[string]any{"command": child, "args": args, "env": with(env, map[string]string{
			"ROW": "child", "PLAIN": h.text(inEnv), "FILED": "${file:" + filepath.Join(h.home, "file") + "}",
			"PRINTED": "!cat " + filepath.Join(h.home, "printed"),
			"OURS":    "${env:CANARY}", "KEPT": "${keychain:canary}",
		})},
		"other": map[string]any{"command": child, "args": args, "env": with(env, map[string]string{"ROW": "other"})},
		"broken": map[string]any{"command": "sh", "args": []string{"-c", "env >&2; exit 3"}, "env": map[string]string{
			"ROW": "child", "API_TOKEN": h.text(inEnv), "FILED": "${file:" + filepath.Join(h.home, "file") + "}",
			"PRINTED":  "!cat " + filepath.Join(h.home, "printed"),
			"OURS_KEY": "${env:CANARY}", "KEPT": "${keychain:canary}",
		}},
		"plain": map[string]any{"url": h.listen("plain", mcptest.HTTPLegacy()),
			"headers": map[string]string{"X-Key": h.text(inHeader)}},
		"query": map[string]any{"url": h.listen("query", mcptest.HTTPModern()) + "?key=" + h.text(inURL)},
		"away": map[string]any{"url": refused.URL + "/mcp?key=" + h.text(inURL),
			"headers": map[string]string{"X-Key": h.text(inHeader)}},
		"telling": map[string]any{"url": h.listen("plain", http.HandlerFunc(tell)),
			"headers": map[string]string{"X-Key": h.text(inHeader)}},
		"refusing": map[string]any{"url": h.listen("plain", http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			http.Error(w, "no", http.StatusUnauthorized)
		})), "headers": map[string]string{"Authorization": "Bearer " + h.text(inHeader)}},
		"protected": map[string]any{"url": h.provider.ResourceURL, "auth": map[string]string{
			"client_id": "known", "client_secret": "${file:" + filepath.Join(h.home, "secret") + "}",
		}},
	}
	h.configured(h.file, rows)
	foreign := filepath.Join(h.home, ".cursor", "mcp.json")
	h.configured(foreign, map[string]any{"foreign": map[string]any{
		"url": h.listen("plain", mcptest.HTTPLegacy()), "headers": map[string]string{"Authorization": "Bearer " +
			h.text(inForeign)},
	}})
	h.own = []string{h.file, foreign, filepath.Join(h.home, "file"), filepath.Join(h.home, "printed"),
		filepath.Join(h.home, "secret")}
	return h
}

// configured writes a configuration.
func (h *household) configured(path string, rows map[string]any) {
	h.t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": rows}, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(path, string(text))
}

// tell refuses whoever asks, and repeats what they are known by.
func tell(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"nobody is known by the key %s"}}`,
		r.Header.Get("X-Key"))
}

// with is an environment, of which some is given as words, as an object.
func with(words []string, more map[string]string) map[string]string {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		more[name] = value
	}
	return more
}

// text returns the secret of a kind.
func (h *household) text(kind string) string {
	i := slices.IndexFunc(h.canaries, func(c canary) bool { return c.kind == kind })
	return h.canaries[i].text
}

func (h *household) write(name, text string) {
	h.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(h.home, name)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// listen returns the URL of a server that notes what it is sent.
func (h *household) listen(name string, next http.Handler) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.upward[name] = append(h.upward[name], fmt.Sprint(r.URL, r.Header))
		h.mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	h.t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

func (h *household) note(where, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, spoken{where, text})
}

// run runs a command, notes what it says, and gives its standard output. How it ends is no matter.
func (h *household) run(input string, words ...string) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	cmd := h.drawbridge(append(words, "-v")...)
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &stderr
	cmd.Env = append(cmd.Env, h.environment()...)
	out, _ := cmd.Output()
	where := "drawbridge " + strings.Join(words, " ")
	h.note(where+", standard error", stderr.String())
	h.note(where, string(out))
	return string(out)
}

func (h *household) environment() []string {
	return []string{"DRAWBRIDGE_KEYCHAIN=off", "BROWSER=false", "CANARY=" + h.text(inOurs)}
}

// client makes a client of serve --http. Its token is shown that once.
func (h *household) client() {
	var shown struct{ Token string }
	out := h.run("", "client", "add", "canary", "--scope", "*", "--json")
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Token == "" {
		h.t.Fatalf("client add gives %s: %v", out, err)
	}
	h.said = h.said[:len(h.said)-1] // where it belongs
	i := slices.IndexFunc(h.canaries, func(c canary) bool { return c.kind == inToken })
	h.canaries[i].text = shown.Token
}

// signIn signs in as a person who was shown where.
func (h *household) signIn() {
	h.t.Helper()
	address := ""
	h.await("the address to sign in at", func() bool {
		var rows []struct {
			Server string
			SignIn string `json:"sign_in"`
		}
		if err := json.Unmarshal([]byte(h.run("", "mcp", "list", "--json")), &rows); err != nil {
			h.t.Fatal(err)
		}
		for _, row := range rows {
			if row.Server == "protected" {
				address = row.SignIn
			}
		}
		return address != ""
	})
	if err := h.provider.AllowSignIn(h.t.Context(), address); err != nil {
		h.t.Fatal(err)
	}
}

// calls has every server called, well and badly, through both doors.
func (h *household) calls() {
	h.t.Helper()
	for _, door := range h.fleet {
		h.await("the server behind a sign-in", func() bool {
			return strings.Contains(door.call("protected__whoami",
				`{}`), "sub")
		})
		for i, name := range []string{"child__echo", "other__echo", "plain__echo", "query__echo", "away__echo",
			"broken__echo", "none"} {
			for _, args := range []string{`{"text":1}`, `[]`, `{"text":"hello"}`} {
				answer := door.call(name, args)
				h.note("the answer to "+name, answer)
				well := i < 4 && strings.Contains(args, "hello")
				if strings.Contains(answer, "hello") != well {
					h.t.Errorf("the answer to %s with %s is %s", name, args, answer)
				}
			}
		}
		h.provider.ExpireAccess()
		h.await("the server after its token was over",
			func() bool { return strings.Contains(door.call("protected__whoami", `{}`), "sub") })
		h.note("the answer to a call that wants more rights", door.call("protected__secret_tool", `{}`))
	}
}

// commands runs what people run.
func (h *household) commands() {
	for _, words := range [][]string{
		{"mcp", "list"}, {"mcp", "list", "--all"}, {"doctor"}, {"ps"}, {"tools", "list"}, {"ledger", "log"},
		{"ledger", "verify"},
		{"secret", "list"}, {"client", "list"}, {"tools", "call", "plain__echo", "text=x"},
		{"tools", "call", "away__echo"},
		{"tools", "call", "protected__whoami"}, {"tools", "show", "plain__echo"}, {"ledger", "show", "1"},
		{"import", "--dry-run"},
		{"mcp", "auth", "protected", "--no-browser", "--timeout", "1s"},
		{"mcp", "auth", "protected", "--no-browser", "--timeout", "1s", "--device"}, {"mcp", "reauth", "protected",
			"--no-browser", "--timeout", "1s"},
	} {
		h.run("", words...)
		h.run("", append(words, "--json")...)
	}
	for _, server := range []string{"child", "other", "broken", "plain", "query", "away", "telling",
		"refusing", "protected"} {
		for _, words := range [][]string{{"mcp", "get", server}, {"mcp", "test", server}, {"logs", server}} {
			h.run("", words...)
			h.run("", append(words, "--json")...)
		}
	}
	h.run("", "import", "--yes", "--secrets", "move")
	h.run("", "tools", "call", "foreign__echo", "text=x")
	h.run("", "connect", "cursor", "--yes")
	h.run("", "disconnect", "cursor", "--yes")
	h.run("", "mcp", "add", "plain", "--scope", "user", "--url", "http://127.0.0.1:1/mcp?key="+h.text(inURL),
		"--header", "X-Key: "+h.text(inHeader))
}

// trouble has what was signed in at end it, and a command that prints nothing.
func (h *household) trouble() {
	h.provider.RevokeAll()
	h.write("printed", "")
	for _, door := range h.fleet {
		h.note("the answer when not signed in any more", door.call("protected__whoami", `{}`))
		h.note("the answer of a server that is there still", door.call("child__echo", `{"text":"x"}`))
	}
	h.run("", "mcp", "list", "--json")
	h.run("", "doctor", "--json")
}
