package transport_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

const (
	smallResult = `{"jsonrpc":"2.0","id":$,"result":{"content":[{"type":"text","text":"hello"}]}}`
	smallParams = `{"name":"echo","arguments":{"text":"0123456789012345678901234567890123456789"},` + modern + `}`
)

// small is a server that answers a small call.
func small(t testing.TB, contentType, body string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := read(t, r)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "$", string(m.ID)))
	}))
	t.Cleanup(server.Close)
	return server
}

// BenchmarkHTTPDo is a small call over loopback, beside a bare POST of the same body by net/http. The server's half is
// in all numbers.
func BenchmarkHTTPDo(b *testing.B) {
	stream := "event: message\ndata: " + smallResult + "\n\n"
	b.Run("control", func(b *testing.B) {
		server := small(b, plain, smallResult)
		transport := transport.NewHTTPTransport("http://127.0.0.1", true)
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + smallParams + `}`
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Post(server.URL, plain, strings.NewReader(body))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
	})
	for _, bb := range []struct{ name, contentType, body string }{{"JSON", plain, smallResult},
		{"events", events, stream}} {
		b.Run(bb.name, func(b *testing.B) {
			h := dial(b, transport.HTTPOptions{URL: small(b, bb.contentType, bb.body).URL})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Call(b.Context(), "tools/call", json.RawMessage(smallParams), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bb.name+" parallel", func(b *testing.B) {
			h := dial(b, transport.HTTPOptions{URL: small(b, bb.contentType, bb.body).URL})
			b.SetParallelism(16)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := h.Call(b.Context(), "tools/call", json.RawMessage(smallParams), nil); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// TestStreamsShareBuffers holds the garbage of a small call under the size of one reading buffer, with the server's
// half.
func TestStreamsShareBuffers(t *testing.T) { overBoth(t, testStreamsShareBuffers) }

func testStreamsShareBuffers(t *testing.T) {
	h := dial(t, transport.HTTPOptions{URL: small(t, events, "data: "+smallResult+"\n\n").URL})
	const calls = 300
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		if _, err := h.Call(t.Context(), "tools/call", json.RawMessage(smallParams), nil); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if perCall := (after.TotalAlloc - before.TotalAlloc) / calls; perCall > 60<<10 {
		t.Errorf("a call allocates %d bytes, want less than 60 KiB", perCall)
	}
}

// A canned transport answers everything with the same response.
type canned func() *http.Response

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	resp := c()
	resp.Request = r
	return resp, nil
}

// FuzzAnswer has a server that answers with anything: a Do ends with an answer or an error. It is row FZ-4.
func FuzzAnswer(f *testing.F) {
	f.Add(200, plain, strings.ReplaceAll(answer, "$", "1"))
	f.Add(200, events, "data: "+strings.ReplaceAll(answer, "$", "1")+"\n\n")
	f.Add(200, events, "id: 1\nretry: 0\ndata: [{\"method\":\"x\",\"id\":2}]\r\n\r\nevent: y\n: z\n\n")
	f.Add(404, plain, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}`)
	f.Add(301, "text/html", "")
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		in := &httpHeard{answer: "{}"}
		h := dial(t, transport.HTTPOptions{MaxBody: 1 << 16,
			Client: &http.Client{Transport: canned(func() *http.Response {
				return &http.Response{
					StatusCode: status, ProtoMajor: 1, Header: http.Header{"Content-Type": {contentType}},
					ContentLength: -1, Body: io.NopCloser(strings.NewReader(body)),
				}
			})}})
		m, err := h.Call(t.Context(), "tools/call", json.RawMessage(`{`+modern+`}`), in)
		if (err == nil) != m.IsResponse() {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
