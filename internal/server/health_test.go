package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestHealthAndMetrics asks as a load balancer and a collector do: with and without a token, and with one that may not.
func TestHealthAndMetrics(t *testing.T) {
	proof := &register{known: map[string]drawbridge.Caller{
		"collector": {Kind: drawbridge.External, Principal: "client:prometheus", Scopes: []drawbridge.Scope{ScopeMetrics}},
		"other":     {Kind: drawbridge.External, Principal: "client:\"bob\"\n", Scopes: []drawbridge.Scope{"mcp:*"}},
	}}
	s := newServer(t, newFakeDeck(), Options{Token: []byte("secret"), Authenticator: proof})
	origin := serveWhole(t, s)
	get := func(method, path, token string) (int, string, http.Header) {
		t.Helper()
		r := httpRequest(t, method, origin+path, "")
		if token != "" {
			with(r, token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body), resp.Header
	}
	call := with(modernRequest(t, origin+Path, discover), "other")
	resp, err := http.DefaultClient.Do(call)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, c := range []struct {
		method, path, token string
		status              int
		body                string
	}{
		{"GET", HealthPath, "", 200, "ok\n"},
		{"HEAD", HealthPath, "", 200, ""},
		{"POST", HealthPath, "", 405, "Method Not Allowed"},
		{"GET", MetricsPath, "", 401, ""},
		{"GET", MetricsPath, "wrong", 401, ""},
		{"GET", MetricsPath, "other", 403, "Forbidden: the token needs the scope metrics"},
		{"GET", MetricsPath, "collector", 200, "# TYPE drawbridge_sessions gauge\n"},
		{"GET", MetricsPath, "secret", 200, "# TYPE drawbridge_calls_total counter\n"},
		{"POST", MetricsPath, "collector", 405, "Method Not Allowed"},
	} {
		status, body, header := get(c.method, c.path, c.token)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %s %q: %d %q; want %d %q", c.method, c.path, c.token, status, body, c.status, c.body)
		}
		if status == 200 && header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached", c.path)
		}
	}
}

func TestMetricsText(t *testing.T) {
	got := formatMetrics([]ClientActivity{{Principal: `a"\`, Client: "x\ny", Via: "http", Sessions: 1, Calls: 20, Errors: 3}})
	for _, want := range []string{
		`drawbridge_sessions{principal="a\"\\",client="x\ny",via="http"} 1` + "\n",
		`drawbridge_calls_total{principal="a\"\\",client="x\ny",via="http"} 20` + "\n",
		`drawbridge_errors_total{principal="a\"\\",client="x\ny",via="http"} 3` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
}
