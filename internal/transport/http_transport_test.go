package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// rawServer accepts connections and hands each to serve, which closes it. It returns the URL of the server.
func rawServer(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	return "http://" + l.Addr().String()
}

// post sends a small POST request and returns the body of the response.
func post(ctx context.Context, tr http.RoundTripper, url, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// TestResponses has every framing of a response, in good and in bad order. Both transports read the same.
func TestResponses(t *testing.T) { overBoth(t, testResponses) }

func testResponses(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, tt := range map[string]struct {
		response string
		want     string // the body, or "!" for an error
	}{
		"a length":                        {ok + "Content-Length: 2\r\n\r\nhi", "hi"},
		"chunks":                          {ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\n", "hi"},
		"chunks and trailers":             {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", "hi"},
		"until the end":                   {ok + "\r\nhi", "hi"},
		"HTTP/1.0":                        {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi"},
		"no content":                      {"HTTP/1.1 204 No Content\r\n\r\n", ""},
		"interim responses":               {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi", "hi"},
		"the same length twice":           {ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "hi"},
		"two lengths":                     {ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", "!"},
		"a length with a sign":            {ok + "Content-Length: +2\r\n\r\nhi", "!"},
		"a negative length":               {ok + "Content-Length: -2\r\n\r\nhi", "!"},
		"a length and chunks":             {ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "hi"},
		"an unknown encoding":             {ok + "Transfer-Encoding: gzip\r\n\r\nhi", "!"},
		"two encodings":                   {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "!"},
		"a bad chunk":                     {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhi\r\n0\r\n\r\n", "!"},
		"a chunk that is too long":        {ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhi\r\n0\r\n\r\n", "!"},
		"a body cut off":                  {ok + "Content-Length: 3\r\n\r\nhi", "!"},
		"chunks cut off":                  {ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", "!"},
		"a header cut off":                {ok + "Content-Length: 2\r\n", "!"},
		"nothing":                         {"", "!"},
		"another protocol":                {"220 mail ESMTP\r\n", "!"},
		"a space in the name of a header": {ok + "Content-Length : 1\r\n\r\nhi", "hi"},
		"a header that is too long":       {ok + "X: " + strings.Repeat("x", 2<<20) + "\r\nContent-Length: 2\r\n\r\nhi", "!"},
		"headers that are too many":       {ok + strings.Repeat("X: 0123456789abcdef\r\n", 100_000) + "\r\n", "!"},
		"interim responses without end":   {strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("x", 1<<10)+"\r\n\r\n", 2000), "!"},
		"a bad status":                    {"HTTP/1.1 2000 OK\r\n\r\n", "!"},
		"a bad version":                   {"HTTP/9 200 OK\r\n\r\n", "!"},
	} {
		t.Run(name, func(t *testing.T) {
			url := rawServer(t, func(c net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, tt.response)
				}
			})
			_, body, err := post(t.Context(), transportFor(t, url, true, nil, nil), url, "{}")
			if got := string(body); err == nil && got != tt.want || err != nil && tt.want != "!" {
				t.Errorf("got %q, %v, want %q", body, err, tt.want)
			}
		})
	}
}

// TestUnaskedResponse has a server that sends more than it was asked for: that is never the response to the next
// request.
func TestUnaskedResponse(t *testing.T) {
	const good, evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	url := rawServer(t, func(c net.Conn) {
		for in := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			if _, err := io.WriteString(c, good+evil); err != nil {
				return
			}
		}
	})
	tr := transportFor(t, url, true, nil, nil)
	for range 20 {
		if _, body, err := post(t.Context(), tr, url, "{}"); err == nil && string(body) != "good" {
			t.Fatalf("got %q", body)
		}
	}
}

// TestClosedIdleConnection has a server that closes each connection after its response without saying so. The next call
// notices, and is sent on another connection, even though it must not be repeated.
func TestClosedIdleConnection(t *testing.T) {
	closed := make(chan struct{}, 100)
	url := rawServer(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		m := read(t, r)
		text := strings.ReplaceAll(answer, "$", string(m.ID))
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		_ = c.Close()
		closed <- struct{}{}
	})
	h := dial(t, transport.HTTPOptions{URL: url})
	for range 20 {
		if _, err := h.Call(t.Context(), mcp.MethodToolsCall, []byte(`{"name":"x"}`), nil); err != nil {
			t.Fatal(err)
		}
		<-closed
	}
}

// TestIdleConnectionsEnd has idle connections close after their time, and at once with CloseIdleConnections.
func TestIdleConnectionsEnd(t *testing.T) {
	ended := make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			ended <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	for _, idle := range []time.Duration{10 * time.Millisecond, time.Hour} {
		tr := transport.NewHTTPTransport(server.URL, true)
		tr.SetIdleTimeout(idle)
		if _, _, err := post(t.Context(), tr, server.URL, "{}"); err != nil {
			t.Fatal(err)
		}
		if idle == time.Hour {
			if n := tr.IdleConns(); n != 1 {
				t.Errorf("%d connections are idle, want 1", n)
			}
			tr.CloseIdleConnections()
		}
		<-ended
		if n := tr.IdleConns(); n != 0 {
			t.Errorf("%d connections are idle, want none", n)
		}
	}
}

// TestManyCallersKeepConnections counts the connections of 32 callers: each uses one after the other.
func TestManyCallersKeepConnections(t *testing.T) { overBoth(t, testManyCallersKeepConnections) }

func testManyCallersKeepConnections(t *testing.T) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	tr := transportFor(t, server.URL, true, nil, nil)
	var work sync.WaitGroup
	for caller := range 32 {
		work.Go(func() {
			for n := range 50 {
				want := strconv.Itoa(caller*1000 + n)
				if _, got, err := post(t.Context(), tr, server.URL, want); err != nil || string(got) != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	work.Wait()
	if n := conns.Load(); n > 64 {
		t.Errorf("1,600 calls of 32 callers took %d connections", n)
	}
}

// TestLargeBodies sends and receives bodies of every size that takes another path.
func TestLargeBodies(t *testing.T) { overBoth(t, testLargeBodies) }

func testLargeBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Length") != "" {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	tr := transportFor(t, server.URL, true, nil, nil)
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 256 << 10, 1 << 20, 5 << 20} {
		want := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
		if _, got, err := post(t.Context(), tr, server.URL, want); err != nil || string(got) != want {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
}

// TestTLS has servers with and without HTTP/2: ALPN decides, and connections are kept.
func TestTLS(t *testing.T) { overBoth(t, testTLS) }

func testTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var conns, resumed atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if (r.ProtoMajor == 2) != http2 {
				t.Errorf("HTTP/2 is offered: %v; the request came in %s", http2, r.Proto)
			}
			if r.TLS.DidResume {
				resumed.Add(1)
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		}))
		server.EnableHTTP2 = http2
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		tr := transportFor(t, server.URL, true, nil, config)
		for n := range 20 {
			want := strconv.Itoa(n)
			if _, got, err := post(t.Context(), tr, server.URL, want); err != nil || string(got) != want {
				t.Errorf("got %q, %v", got, err)
			}
		}
		if n := conns.Load(); n != 1 {
			t.Errorf("20 calls took %d connections, want 1", n)
		}
		tr.CloseIdleConnections()
		if _, _, err := post(t.Context(), tr, server.URL, "again"); err != nil {
			t.Error(err)
		}
		if resumed.Load() == 0 {
			t.Error("the second connection did not resume the session of the first")
		}
	}
}

// TestTLSFailures has a certificate that is not trusted, and a server that does not speak TLS. Nothing is sent to them.
func TestTLSFailures(t *testing.T) { overBoth(t, testTLSFailures) }

func testTLSFailures(t *testing.T) {
	var requests atomic.Int32
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	stranger := httptest.NewUnstartedServer(handler)
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	plainText := httptest.NewServer(handler)
	t.Cleanup(plainText.Close)
	for _, address := range []string{stranger.URL, strings.Replace(plainText.URL, "http", "https", 1)} {
		_, err := dial(t, transport.HTTPOptions{URL: address}).Call(t.Context(), mcp.MethodToolsCall, []byte(`{}`), nil)
		if !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: %v, want an error that shows that nothing was sent", address, err)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// TestForbiddenAddresses has addresses that each transport must refuse, whoever names them.
func TestForbiddenAddresses(t *testing.T) { overBoth(t, testForbiddenAddresses) }

func testForbiddenAddresses(t *testing.T) {
	for _, tt := range []struct {
		server string
		own    bool
		called string
	}{
		{"https://mcp.example/", false, "http://127.0.0.1:9/"},
		{"https://mcp.example/", false, "http://[::1]:9/"},
		{"https://mcp.example/", false, "https://10.0.0.1/"},
		{"https://mcp.example/", false, "http://192.168.1.1/"},
		{"https://mcp.example/", false, "http://[::ffff:127.0.0.1]:9/"},
		{"https://mcp.example/", false, "http://169.254.169.254/latest"},
		{"https://mcp.example/", true, "http://169.254.169.254/latest"},
		{"https://mcp.example/", true, "https://169.254.169.254/latest"},
		{"http://127.0.0.1/", true, "http://100.100.100.200/"},
		{"http://127.0.0.1/", true, "http://[fd00:ec2::254]/"},
		{"http://127.0.0.1/", true, "http://[64:ff9b::a9fe:a9fe]/"},
		{"http://127.0.0.1/", true, "http://224.0.0.1/"},
	} {
		_, _, err := post(t.Context(), transportFor(t, tt.server, tt.own, nil, nil), tt.called, "{}")
		if _, refused := errors.AsType[*safehttp.RefusedError](err); !refused {
			t.Errorf("%s called by the row of %s: %v, want a refusal", tt.called, tt.server, err)
		}
	}
}

// TestProxy sends requests to a host that only the proxy knows.
func TestProxy(t *testing.T) {
	var seen atomic.Pointer[string]
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(new(r.RequestURI))
		_, _ = io.WriteString(w, "from the proxy")
	}))
	t.Cleanup(proxy.Close)
	at, err := neturl.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	tr := transport.NewHTTPTransport("http://127.0.0.1", true)
	t.Cleanup(tr.CloseIdleConnections)
	asked := 0
	tr.SetProxy(func(*http.Request) (*neturl.URL, error) { asked++; return at, nil })
	const target = "http://server.invalid/mcp"
	_, body, err := post(t.Context(), tr, target, "{}")
	if err != nil || string(body) != "from the proxy" || *seen.Load() != target {
		t.Errorf("got %q, %v", body, err)
	}
	if asked != 1 {
		t.Errorf("the proxy was determined %d times for one request", asked)
	}
	tr.SetProxy(func(*http.Request) (*neturl.URL, error) { return nil, errors.New("no such proxy") })
	if _, _, err := post(t.Context(), tr, target, "{}"); err == nil || err.Error() != "no such proxy" {
		t.Errorf("got %v", err)
	}
}

// TestCancelledRequest ends a request in each of its phases: the server notices, and the connection is not used again.
func TestCancelledRequest(t *testing.T) { overBoth(t, testCancelledRequest) }

func testCancelledRequest(t *testing.T) {
	for _, phase := range []string{"no response", "half a header", "half a body"} {
		arrived, gone := make(chan struct{}), make(chan struct{})
		url := rawServer(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			switch phase {
			case "half a header":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-")
			case "half a body":
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
			}
			close(arrived)
			_, _ = in.ReadByte()
			close(gone)
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if _, _, err := post(ctx, transportFor(t, url, true, nil, nil), url, "{}"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", phase, err)
		}
		<-gone
	}
}

// FuzzResponse has a server that sends anything, in two pieces. Our transport reads what net/http reads, and never takes
// more than one response from it.
func FuzzResponse(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"), uint16(5))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"), uint16(30))
	f.Add([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), uint16(0))
	f.Add([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nx"), uint16(9))
	f.Fuzz(func(t *testing.T, response []byte, cut uint16) {
		at := min(int(cut), len(response))
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { // ends with the connection
				defer far.Close()
				r, err := http.ReadRequest(bufio.NewReader(far))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				for _, piece := range [][]byte{response[:at], response[at:]} {
					if _, err := far.Write(piece); err != nil {
						return
					}
				}
			}()
			return near, nil
		}
		own := transport.NewHTTPTransport("http://127.0.0.1", true)
		own.SetDial(dial)
		defer own.CloseIdleConnections()
		status, body, err := post(t.Context(), own, "http://server.test/", "{}")
		if status == http.StatusSwitchingProtocols {
			return // net/http hands the connection over
		}
		plain := transport.NewStandardTransport("http://127.0.0.1", true)
		plain.DialContext = dial
		defer plain.CloseIdleConnections()
		wantStatus, want, wantErr := post(t.Context(), plain, "http://server.test/", "{}")
		if (err == nil) != (wantErr == nil) || err == nil && (status != wantStatus || !bytes.Equal(body, want)) {
			t.Errorf("got %d %q %v, net/http %d %q %v", status, body, err, wantStatus, want, wantErr)
		}
	})
}
