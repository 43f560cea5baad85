//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drawbridge-mcp/drawbridge/internal/oauthtest"
)

// A serving is a "drawbridge serve", and a way to call through it.
type serving struct {
	cmd  *exec.Cmd
	err  bytes.Buffer
	gone chan struct{} // closed when it has ended, and all it said was read
	call func(name, args string) string
}

// serve starts a serve on standard input and output, and one on HTTP.
func (h *household) serve() {
	h.t.Helper()
	stdio := h.begin(func(out io.Reader) { h.read(out) }, "serve", "-v")
	<-h.ask("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"live","version":"1"}}`)
	h.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	stdio.call = func(name, args string) string {
		m := <-h.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
		return string(m.Result) + string(m.Error)
	}
	url := make(chan string, 1)
	web := h.begin(func(out io.Reader) {
		line, _ := bufio.NewReader(out).ReadString('\n')
		url <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, out)
	}, "serve", "-v", "--http", "127.0.0.1:0")
	address := <-url
	web.call = func(name, args string) string { return h.post(address, name, args) }
}

// begin starts a program that lives until it crashes, or the test ends.
func (h *household) begin(read func(io.Reader), words ...string) *serving {
	h.t.Helper()
	s := &serving{cmd: h.drawbridge(words...), gone: make(chan struct{})}
	s.cmd.Env, s.cmd.Stderr = append(s.cmd.Env, h.environment()...), &s.err
	in, inErr := s.cmd.StdinPipe()
	out, outErr := s.cmd.StdoutPipe()
	for _, err := range []error{inErr, outErr, s.cmd.Start()} {
		if err != nil {
			h.t.Fatal(err)
		}
	}
	if h.in == nil {
		h.in = in
	}
	go func() {
		defer close(s.gone)
		read(out)
		_ = s.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = in.Close()
		_ = s.cmd.Process.Kill()
		<-s.gone
	})
	h.fleet = append(h.fleet, s)
	return s
}

// post calls by HTTP as a client with a token, and a secret of its own in other headers.
func (h *household) post(url, name, args string) string {
	h.t.Helper()
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, name, args)
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, url, strings.NewReader(call))
	if err != nil {
		h.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method":           "tools/call", "Mcp-Name": name, "Authorization": "Bearer " + h.text(inToken),
		"X-Key":  h.text(inClient),
		"Cookie": "session=" + h.text(inClient), "X-Forwarded-Access-Token": h.text(inClient),
		"Proxy-Authorization": h.text(inClient),
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

// processes looks at the arguments and the environment of all that runs in the home.
func (h *household) processes() {
	h.t.Helper()
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	seen := map[string]bool{}
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ")
		words, _ := os.ReadFile(dir + "/cmdline")
		vars := strings.Split(string(environ), "\x00")
		if !slices.Contains(vars, "HOME="+h.home) {
			continue
		}
		ours := slices.ContainsFunc(h.fleet, func(s *serving) bool {
			return dir == fmt.Sprint("/proc/",
				s.cmd.Process.Pid)
		})
		for _, c := range h.canaries {
			if shows(string(words), c.text) {
				h.t.Errorf("%s is in the arguments of a process: %q", c.kind, words)
			}
			if !shows(string(environ), c.text) {
				continue
			}
			child := c.server == "child" && slices.Contains(vars, "ROW=child")
			seen[c.kind] = seen[c.kind] || child
			if !child && !(ours && c.kind == inOurs) {
				h.t.Errorf("%s is in the environment of a process that has no business with it: %q", c.kind, words)
			}
		}
	}
	for _, c := range h.canaries {
		if c.server == "child" && !seen[c.kind] {
			h.t.Errorf("%s never reached the server that its row is for", c.kind)
		}
	}
}

// files notes all files of the home but those in which a person wrote the secrets.
func (h *household) files(when string) {
	h.t.Helper()
	count := 0
	err := filepath.WalkDir(h.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || slices.Contains(h.own, path) {
			return err
		}
		text, err := os.ReadFile(path)
		h.note(path+", "+when, string(text))
		count++
		return err
	})
	if err != nil || count < 5 {
		h.t.Errorf("%d files in the home: %v", count, err)
	}
}

// crash ends what runs in the two ways in which Go prints all that it does.
func (h *household) crash() {
	for i, signal := range []os.Signal{syscall.SIGQUIT, syscall.SIGABRT} {
		s := h.fleet[i]
		if err := s.cmd.Process.Signal(signal); err != nil {
			h.t.Error(err)
		}
		<-s.gone
		if !strings.Contains(s.err.String(), "goroutine ") {
			h.t.Errorf("%v is no crash:\n%s", signal, &s.err)
		}
		h.note(fmt.Sprintf("what serve said until %v", signal), s.err.String())
	}
}

// search looks for every secret in all that was heard.
func (h *household) search() {
	h.t.Helper()
	h.files("at the end")
	h.granted()
	for _, c := range h.canaries {
		for _, s := range h.said {
			if at := index(s.text, c.text); at >= 0 {
				h.t.Errorf("%s is in %s: %.300q", c.kind, s.where, s.text[max(0, at-150):])
			}
		}
		reached := c.server == "" || c.server == "child"
		for name, lines := range h.upward {
			for _, line := range lines {
				switch {
				case !shows(line, c.text):
				case name == c.server:
					reached = true
				default:
					h.t.Errorf("%s was sent to the server %q: %s", c.kind, name, line)
				}
			}
		}
		if !reached {
			h.t.Errorf("%s never reached the server %q", c.kind, c.server)
		}
	}
}

// granted adds to the secrets what signing in came to, as the provider was sent it: tokens are for its MCP server, the
// rest for its other endpoints.
func (h *household) granted() {
	h.t.Helper()
	count := map[string]int{}
	add := func(kind, text, server string) {
		if text != "" && !slices.ContainsFunc(h.canaries, func(c canary) bool { return c.text == text }) {
			h.canaries = append(h.canaries, canary{kind, text, server})
			count[kind]++
		}
	}
	for _, r := range h.provider.Requests() {
		line := fmt.Sprint(r.Path, r.Query, r.Form, r.Header)
		if r.Endpoint == oauthtest.MCP {
			h.upward["protected"] = append(h.upward["protected"], line)
			token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			add("an access token", token, "protected")
			continue
		}
		add("a refresh token", r.Form.Get("refresh_token"), "")
		add("a code", r.Form.Get("code"), "")
		add("a code's verifier", r.Form.Get("code_verifier"), "")
		if strings.HasPrefix(string(r.Endpoint), string(oauthtest.Token)) {
			_, secret, _ := basic(r.Header)
			count[inSecret] += strings.Count(secret+r.Form.Get("client_secret"), h.text(inSecret))
		}
	}
	for _, kind := range []string{"an access token", "a refresh token", "a code", "a code's verifier", inSecret} {
		if count[kind] == 0 {
			h.t.Errorf("the provider never got %s", kind)
		}
	}
}

func basic(h http.Header) (name, password string, ok bool) {
	return (&http.Request{Header: h}).BasicAuth()
}

// shows reports whether a secret is in a text, as it is or encoded.
func shows(text, secret string) bool { return index(text, secret) >= 0 }

func index(text, secret string) int {
	for _, form := range []string{secret, hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret)))} {
		if at := strings.Index(text, form); at >= 0 {
			return at
		}
	}
	for before := range 3 { // how many bytes stand before it in its group of three
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			form := encoding.EncodeToString(append(make([]byte, before), secret...))
			if at := strings.Index(text, form[4:len(form)-4]); at >= 0 {
				return at
			}
		}
	}
	return -1
}
