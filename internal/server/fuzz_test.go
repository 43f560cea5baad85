package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// FuzzPost throws bodies and headers at the HTTP door: it never panics, and always answers, with no more than a bounded
// multiple of what it got. It is row FZ-5.
func FuzzPost(f *testing.F) {
	s := newServer(f, newFakeDeck(), Options{})
	h := s.Handler()
	c := s.newSession(s.o.Caller, nil)
	if !s.addSession(c) {
		f.Fatal("there is no room for one session")
	}
	f.Add(discover, mcp.Version20260728, "server/discover", "", jsonBoth, false)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"region":1},`+meta+`}}`,
		mcp.Version20260728, "tools/call", "echo", "", false)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{},`+meta+`}}`,
		mcp.Version20260728, "subscriptions/listen", "", jsonBoth, false)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"AAAAAAAAAAAAAAAA"}}`, "", "",
		"", jsonBoth, true)
	f.Add(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":1,"result":{}}]`, "", "", "", "*/*", true)
	f.Add(openLegacy, "", "", "", jsonBoth, false)
	f.Add(`{"id":1,"method":"resources/subscribe","params":{"uri":"\ud800"}}`, "2025-11-25", "", "",
		"text/event-stream", true)
	f.Fuzz(func(t *testing.T, body, version, method, name, accept string, session bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, Path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for key, value := range map[string]string{mcp.HeaderVersion: version, mcp.HeaderMethod: method,
			mcp.HeaderName: name, "Accept": accept} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		if session {
			r.Header.Set(mcp.HeaderSession, c.caller.Session)
		}
		if rawjson.GetString([]byte(body), "method") == mcp.MethodListen {
			cancel() // a stream that nobody ends
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got, most := w.Body.Len(), 20*len(body)+8000; got > most {
			t.Errorf("%d bytes answer %d", got, len(body))
		}
		answer := w.Body.Bytes()
		if w.Header().Get("Content-Type") == "application/json" && rawjson.Valid(answer) != nil {
			t.Errorf("the answer is not valid JSON: %s", answer)
		}
	})
}

// FuzzStdio throws lines at the stdio door.
func FuzzStdio(f *testing.F) {
	s := newServer(f, newFakeDeck(), Options{})
	f.Add(openLegacy + "\n" + `{"id":1,"method":"tools/list"}` + "\n")
	f.Add(openOld + "\n" + `[{"id":1,"method":"ping"}]` + "\n" + `{"id":2}{"id":3` + "\n")
	f.Add(discover + discover + "\xef\xbb\xbf\n\n\x00")
	f.Fuzz(func(t *testing.T, input string) {
		var out strings.Builder
		if err := s.ServeStdio(t.Context(), strings.NewReader(input), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if err := rawjson.Valid([]byte(line)); err != nil {
				t.Errorf("a line is no message: %v: %s", err, line)
			}
		}
	})
}

// FuzzAuthorization sends any Authorization header to a door: only that of a known token opens it, and a refusal
// repeats nothing of it.
func FuzzAuthorization(f *testing.F) {
	for _, header := range []string{"Bearer ada-1", "bearer  ada-1", "Bearer ada-1, Bearer eve-1", "Basic YQ==",
		"Bearer", "Bearer \x00", "Bearer powerless", `Bearer x", scope="*`} {
		f.Add(header)
	}
	d := newServer(f, newFakeDeck(), Options{Authenticator: newRegister(), Resource: testResource}).Handler()
	f.Fuzz(func(t *testing.T, header string) {
		r := modernRequest(t, "http://gate.example/mcp", discover)
		r.Header["Authorization"] = []string{header}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		scheme, token, _ := strings.Cut(header, " ")
		known := strings.EqualFold(scheme, "Bearer") && slices.Contains([]string{"ada-1", "ada-2", "eve-1"},
			strings.TrimSpace(token))
		if (w.Code == http.StatusOK) != known {
			t.Errorf("%q: status %d", header, w.Code)
		}
		challenge := w.Header().Get("WWW-Authenticate")
		if !known && (!strings.HasSuffix(challenge, challengeTail) || len(token) > 20 && strings.Contains(challenge+
			w.Body.String(), token)) {
			t.Errorf("%q: %s", header, challenge)
		}
	})
}
