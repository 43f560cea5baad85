//go:build !nomcp

package attack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

const token = "a-token-that-nobody-guesses-0123456789"

// serve opens a house whose door is the whole of what "drawbridge serve --http" listens with.
func serve(t testing.TB, c gateway.Config) *door {
	t.Helper()
	h := openWith(t, c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Server().Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	h.MountNew(t.Context())
	return &door{h, "http://" + l.Addr().String() + "/mcp"}
}

// address is where the door listens.
func (d *door) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/mcp")
}

// TestWithoutCredentials has every route of the door, every method and every way to be nobody: rows AU-2 and HC-13.
// None gets more than a refusal, and no server hears of it.
func TestWithoutCredentials(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up")), Token: token})
	before := len(up.Requests())
	nobody := map[string][]string{
		"none": nil, "empty": {"Authorization", "Bearer "}, "another": {"Authorization", "Bearer " + token + "x"},
		"its beginning": {"Authorization", "Bearer " + token[:20]}, "basic": {"Authorization", "Basic " + token},
		"bare": {"Authorization", token},
		"elsewhere": {"X-Api-Key", token, "X-Forwarded-User", "owner", "X-Forwarded-For", "127.0.0.1", "Forwarded",
			"for=127.0.0.1"},
		"a cookie": {"Cookie", "token=" + token}, "a session": {mcp.HeaderSession, "x"},
		"in capitals": {"Authorization", "Bearer " + strings.ToUpper(token)},
	}
	for _, route := range []string{"/mcp", "/mcp/", "/mcp?access_token=" + token, "//mcp", "/mcp/../mcp", "/MCP", "/",
		"/metrics", "/debug/pprof/",
		"/.well-known/oauth-protected-resource/mcp"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			for name, headers := range nobody {
				t.Run("HC-13 "+method+" "+route+" with "+name, func(t *testing.T) {
					r, err := http.NewRequestWithContext(t.Context(), method, "http://"+d.address()+route,
						strings.NewReader(safe))
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", "application/json")
					for i := 0; i < len(headers); i += 2 {
						r.Header.Set(headers[i], headers[i+1])
					}
					got := d.do(r)
					// what a browser asks first
					refused := got.status >= 300 || method == http.MethodOptions && got.status == http.StatusNoContent
					if !refused || got.header.Get(mcp.HeaderSession) != "" || strings.Contains(got.body, "up__safe") {
						t.Errorf("it is answered with %d %s", got.status, got.body)
					}
				})
			}
		}
	}
	if heard := up.Requests()[before:]; len(heard) > 0 {
		t.Errorf("the server hears %v", heard)
	}
	if got := d.post(safe, "Authorization", "Bearer "+token); !got.went() {
		t.Errorf("with the token it is answered with %d %s", got.status, got.body)
	}
}

// TestWebPages has what a page in a browser can send to a door that asks for no token: rows HD-1, HD-2 and HC-9. A
// name of another machine that leads here (DNS rebinding) is refused as well as a request of another site.
func TestWebPages(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up"))})
	_, port, _ := net.SplitHostPort(d.address())
	for _, tt := range []struct {
		name    string
		headers []string
		went    bool
	}{
		{"HD-1 no page", nil, true},
		{"HD-1 localhost", []string{"Host", "localhost:" + port}, true},
		{"HD-1 localhost in capitals", []string{"Host", "LOCALHOST:" + port}, true},
		{"HD-1 a name that leads here", []string{"Host", "rebind.evil.example:" + port}, false},
		{"HD-1 a name that begins with ours", []string{"Host", "localhost.evil.example:" + port}, false},
		{"HD-1 an address in a name", []string{"Host", "127.0.0.1.nip.io:" + port}, false},
		{"HD-1 localhost with a dot", []string{"Host", "localhost.:" + port}, false},
		{"HD-1 a number that is our address", []string{"Host", "2130706433:" + port}, false},
		{"HD-1 all addresses", []string{"Host", "0.0.0.0:" + port}, false},
		{"HD-1 a name in punycode", []string{"Host", "xn--lcalhost-54a:" + port}, false},
		{"HD-1 our own page", []string{"Origin", "http://" + d.address()}, true},
		{"HD-1 a page of nowhere", []string{"Origin", "null"}, false},
		{"HD-1 a page of another port", []string{"Origin", "http://127.0.0.1:1"}, false},
		{"HD-1 our own page, where a proxy ends TLS", []string{"Origin", "https://" + d.address()}, true},
		{"HD-1 a page of a name like ours", []string{"Origin", "http://localhost.evil.example:" + port}, false},
		{"HD-1 our page under a foreign name", []string{"Host", "evil.example:" + port, "Origin",
			"http://evil.example:" + port}, false},
		{"HD-2 a form", []string{"Content-Type", "application/x-www-form-urlencoded"}, false},
		{"HD-2 a form of plain text", []string{"Content-Type", "text/plain"}, false},
		{"HD-2 a form of parts", []string{"Content-Type", "multipart/form-data; boundary=x"}, false},
		{"HD-2 no type", []string{"Content-Type", ""}, false},
		{"HD-2 another site that hides its origin", []string{"Sec-Fetch-Site", "cross-site"}, false},
		{"HD-2 a neighbour that hides its origin", []string{"Sec-Fetch-Site", "same-site"}, false},
		{"HD-2 a page of ours says so", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://" +
			d.address()}, true},
		{"HD-1 forwarded for another host", []string{"X-Forwarded-Host", "localhost", "Host", "evil.example"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(up.Requests())
			got := d.post(safe, tt.headers...)
			if heard := callsAfter(up, before); got.went() != tt.went || len(heard) > 0 != tt.went {
				t.Errorf("it is answered with %d %s; the server hears %v", got.status, got.body, heard)
			}
			if allowed := got.header.Get("Access-Control-Allow-Origin"); !tt.went && allowed != "" {
				t.Errorf("a page of %s may read the answer", allowed)
			}
		})
	}
}

// TestRawRequests has what no client library sends: rows HC-8 and HC-9, on the bytes of HTTP.
func TestRawRequests(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up")), Token: token})
	const fine = "Content-Type: application/json\r\nAuthorization: Bearer " + token +
		"\r\nMcp-Protocol-Version: 2026-07-28\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: up__safe\r\n"
	for _, tt := range []struct {
		name, head, body string
		statuses         string
	}{
		{"HC-8 nothing odd", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\n" + fine + length(safe), safe, "200"},
		{"HC-9 two hosts", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\nHost: evil.example\r\n" + fine +
			length(safe), safe, "400"},
		{"HC-9 no host", "POST /mcp HTTP/1.1\r\n" + fine + length(safe), safe, "400"},
		{"HC-8 a whole address as the target", "POST http://evil.example/mcp HTTP/1.1\r\nHost: " + d.address() +
			"\r\n" + fine + length(safe), safe, "403"},
		{"HC-8 two lengths", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\n" + fine + length(safe) +
			"Content-Length: 5\r\n", safe, "400"},
		{"HC-8 a length and chunks", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\n" + fine +
			"Transfer-Encoding: chunked, identity\r\n" + length(safe), safe, "400 501"},
		{"HC-8 a header of 2 MB", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\nX: " +
			strings.Repeat("x", 2<<20) + "\r\n" + fine + length(safe), safe, "431"},
		{"HC-8 100,000 headers", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\n" +
			strings.Repeat("X: 1234567890\r\n", 100_000) + fine + length(safe), safe, "431"},
		{"DO-1 a body of a gigabyte", "POST /mcp HTTP/1.1\r\nHost: " + d.address() + "\r\n" + fine +
			"Content-Length: 1073741824\r\n", "", "413"},
		{"HC-9 a web socket", "GET /mcp HTTP/1.1\r\nHost: " + d.address() +
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + fine, "", "400 404 405"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, err := sendRaw(t, d.address(), tt.head+"Connection: close\r\n\r\n"+tt.body)
			if !strings.Contains(tt.statuses, fmt.Sprint(status)) {
				t.Errorf("status %d, %v, want %s", status, err, tt.statuses)
			}
		})
	}
}

// TestLengthBesideChunks has a request with two framings and another one behind it, which a proxy would take for a part
// of the body. The second request is not answered.
func TestLengthBesideChunks(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.Tool{Name: "safe"})
	d := serve(t, gateway.Config{Servers: serversOf(up.HTTP("up")), Token: token})
	head := "POST /mcp HTTP/1.1\r\nHost: " + d.address() +
		"\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
		token + "\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: up__safe\r\n"
	conn, err := net.Dial("tcp", d.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(safe), safe)
	second := head + length(safe) + "\r\n" + safe
	if _, err := io.WriteString(conn, head+"Transfer-Encoding: chunked\r\n"+length(chunked+second)+"\r\n"+chunked+
		second); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	first, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, first.Body)
	_ = first.Body.Close()
	if first.StatusCode != http.StatusOK || !first.Close {
		t.Errorf("status %d, close %t, want 200 and a closed connection", first.StatusCode, first.Close)
	}
	if next, err := http.ReadResponse(in, nil); err == nil {
		_ = next.Body.Close()
		t.Errorf("the request behind it was answered with status %d", next.StatusCode)
	}
}

func length(body string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(body)) }

// sendRaw sends bytes and gives the status of what comes back.
func sendRaw(t testing.TB, address, bytes string) (int, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, bytes) // it may not be read to its end
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return resp.StatusCode, nil
}
