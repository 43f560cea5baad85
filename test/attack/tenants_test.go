//go:build !nomcp

package attack

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestNobodyGetsAnothersAnswer has a hundred clients that all call with the same id at once, each with a canary of its
// own, over sessions and without: row IS-1, and HC-5 with the ids that clients choose.
func TestNobodyGetsAnothersAnswer(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.Stdio("up"))})
	t.Run("HC-5 a hundred clients", func(t *testing.T) { sameIDs(t, d) })
}

func sameIDs(t *testing.T, d *door) {
	ids := []string{"0", `""`, `"0"`, "1e308", "-1", `"\u0000"`, "9007199254740993"}
	var clients sync.WaitGroup
	for n := range 100 {
		clients.Go(func() {
			var session []string
			params := meta
			if n%2 == 0 {
				session, params = d.session(), `"_meta":{}`
			}
			for turn := range 5 {
				id, canary := ids[(n+turn)%len(ids)], fmt.Sprintf("canary %d of client %d", turn, n)
				got := d.post(fmt.Sprintf(
					`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"up__safe","arguments":{"c":%q},%s}}`, id, canary, params), session...)
				if !strings.Contains(got.body, canary) || strings.Count(got.body, "canary") != 1 ||
					!strings.Contains(got.body, `"id":`+id) {
					t.Errorf("client %d with id %s gets %s", n, id, got.body)
				}
			}
		})
	}
	clients.Wait()
}

// session opens a session, and gives the headers of its requests.
func (d *door) session() []string {
	headers := []string{mcp.HeaderVersion, mcp.Version20251125, mcp.HeaderMethod, "", mcp.HeaderName, ""}
	got := d.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"siege","version":"1"}}}`, headers...)
	return append(headers, mcp.HeaderSession, got.header.Get(mcp.HeaderSession))
}

// TestSessionsOfOthers has what names a session that is none, or that has ended: rows IS-2 and HC-6. It is never
// answered as if it were somebody's.
func TestSessionsOfOthers(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.HTTP("up"))})
	mine := d.session()
	id := mine[len(mine)-1]
	ended := d.session()
	if got := d.remove(ended[len(ended)-1]); got.status >= 300 {
		t.Fatalf("a session is not ended: %d %s", got.status, got.body)
	}
	for name, session := range map[string]string{
		"IS-2 none": "", "HC-6 a guess": "1", "HC-6 one more character": id + "0", "HC-6 one less": id[:len(id)-1],
		"HC-6 in capitals": swapped(id),
		"HC-6 two":         id + "," + id, "HC-6 ended": ended[len(ended)-1],
		"HC-6 very long": strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			before := len(up.Requests())
			headers := append(mine[:len(mine)-1:len(mine)-1], session)
			got := d.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__safe"}}`, headers...)
			if heard := callsAfter(up, before); got.status < 400 || len(heard) > 0 {
				t.Errorf("it is answered with %d %s", got.status, got.body)
			}
		})
	}
	if got := d.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__safe"}}`,
		mine...); !got.went() {
		t.Errorf("the session itself is answered with %d %s", got.status, got.body)
	}
}

func (d *door) remove(session string) answer {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodDelete, d.url, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set(mcp.HeaderSession, session)
	return d.do(r)
}

// swapped has the other case of every letter.
func swapped(text string) string {
	return strings.Map(func(r rune) rune {
		if up := strings.ToUpper(string(r)); up != string(r) {
			return []rune(up)[0]
		}
		return []rune(strings.ToLower(string(r)))[0]
	}, text)
}
