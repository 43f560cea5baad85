//go:build !nomcp

package attack

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A door is the HTTP door of a house.
type door struct {
	*house
	url string
}

// openDoor opens a house with its HTTP door.
func openDoor(t testing.TB, c gateway.Config) *door {
	t.Helper()
	h := openWith(t, c)
	web := httptest.NewServer(h.Server().Handler())
	t.Cleanup(func() {
		h.stop() // it ends the streams that the door waits for
		web.CloseClientConnections()
		web.Close()
	})
	h.MountNew(t.Context())
	return &door{h, web.URL + "/mcp"}
}

// An answer is what came back from the door.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends bytes to the door, with the headers of a request of the stateless generation and more: name and value in
// turn. An empty value takes a header away.
func (d *door) post(body string, headers ...string) answer {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		mcp.HeaderVersion: mcp.Version20260728, mcp.HeaderMethod: mcp.MethodToolsCall, mcp.HeaderName: "up__safe",
	} {
		r.Header.Set(name, value)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Add(headers[i], headers[i+1])
			r.Header[http.CanonicalHeaderKey(headers[i])] = r.Header.Values(headers[i])[max(0,
				len(r.Header.Values(headers[i]))-1):]
		}
	}
	return d.do(r)
}

func (d *door) do(r *http.Request) answer {
	d.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// went says whether an answer is a result.
func (a answer) went() bool {
	return a.status == http.StatusOK && strings.Contains(a.body, `"result":`) && !strings.Contains(a.body, `"error":`)
}

const (
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"siege","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
	// safe calls the tool that everybody may; the rows of matrices change it.
	safe = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__safe","arguments":{"n":12345678901234567890,"x":1.0},` + meta + `}}`
)

// The outcomes of a row: the message is refused and no server hears of it; or the server hears exactly what was
// decided on.
const (
	refused = "refused"
	asIs    = "as it is"
)

// TestSmuggling has messages that two readers read differently: one that decides, one that does. The rows are those of
// the matrix JS. A message is refused, or what was decided on is what the server hears, and the tool "other" is never
// called.
func TestSmuggling(t *testing.T) {
	up := mcptest.NewServer(t, mcptest.OnlyEra(drawbridge.Modern), mcptest.Tool{Name: "safe"},
		mcptest.Tool{Name: "other"})
	d := openDoor(t, gateway.Config{Servers: serversOf(up.HTTP("up"))})
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(safe) }
	for _, tt := range []struct {
		name, body string
		headers    []string
		want       string
	}{
		{"JS-0 nothing", safe, nil, asIs},
		{"JS-1 the name twice", change(`"name":"up__safe"`, `"name":"up__safe","name":"up__other"`), nil, refused},
		{"JS-1 the name twice, once with an escape", change(`"name":"up__safe"`,
			`"name":"up__safe","n\u0061me":"up__other"`), nil, refused},
		{"JS-1 the arguments twice", change(`"arguments":{`, `"arguments":{"a":1},"arguments":{`), nil, refused},
		{"JS-1 the method twice", change(`"method":"tools/call"`, `"method":"tools/list","method":"tools/call"`), nil,
			refused},
		{"JS-2 the name in capitals beside", change(`"name":"up__safe"`, `"name":"up__safe","NAME":"other"`), nil,
			refused},
		{"JS-2 the method in capitals beside", change(`"id":1`, `"id":1,"METHOD":"tools/list"`), nil, refused},
		{"JS-1 the id twice", change(`"id":1`, `"id":1,"id":2`), nil, refused},
		{"JS-1 the version twice", change(`"id":1`, `"id":1,"jsonrpc":"2.0"`), nil, refused},
		{"JS-2 a long s in arguments", change(`"arguments":{`,
			"\"argument\u017f\":{\"name\":\"other\"},\"arguments\":{"), nil, refused},
		{"JS-2 meta in capitals beside", change(`"_meta":{`, `"_META":{},"_meta":{`), nil, refused},
		{"JS-3 a NUL behind the name", change(`"name":"up__safe"`, `"name":"up__safe","name\u0000":"other"`), nil,
			refused},
		{"JS-3 a space of no width in the name", change(`"name":"up__safe"`,
			"\"name\":\"up__safe\",\"na\u200bme\":\"other\""), nil, refused},
		{"JS-4 params twice, first a list", change(`"params":{`, `"params":[],"params":{`), nil, refused},
		{"JS-4 params as a list", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["up__safe"]}`, nil, refused},
		{"JS-5 an id of null", change(`"id":1`, `"id":null`), nil, refused},
		{"JS-5 an id that is an object", change(`"id":1`, `"id":{}`), nil, refused},
		{"JS-6 a batch with one of another tool", "[" + safe + "," + change("up__safe", "up__other") +
			"]", nil, refused},
		{"JS-7 another method in the header", safe, []string{mcp.HeaderMethod, "tools/list"}, refused},
		{"JS-7 another name in the header", safe, []string{mcp.HeaderName, "up__other"}, refused},
		{"JS-7 another revision in the header", safe, []string{mcp.HeaderVersion, "2025-06-18"}, refused},
		{"JS-8 unknown members of the message", change(`"id":1`, `"id":1,"x":{"name":"other"}`), nil, asIs},
		{"JS-9 a comment", change(`"id":1`, `/* "id":2, */ "id":1`), nil, refused},
		{"JS-9 a comma too many", change(`"id":1`, `"id":1,`), nil, refused},
		{"JS-9 NaN", change(`"x":1.0`, `"x":NaN`), nil, refused},
		{"JS-9 single quotes", change(`"up__safe"`, `'up__safe'`), nil, refused},
		{"JS-9 more behind the message", safe + change("up__safe", "up__other"), nil, refused},
		{"JS-10 UTF-16", utf16(safe), nil, refused},
		{"JS-10 a byte order mark", "\xef\xbb\xbf" + safe, nil, refused},
		{"JS-10 an overlong slash", change(`"x":1.0`, "\"x\":\"\xc0\xaf\""), nil, refused},
		{"JS-10 half of a surrogate pair in bytes", change(`"x":1.0`, "\"x\":\"\xed\xa0\x80\""), nil, refused},
		{"JS-11 meta that looks like ours",
			change(`"_meta":{`,
				`"_meta":{"drawbridge/server":"other","io.modelcontextprotocol/serverInfo":{"name":"x"},`), nil, asIs},
		{"JS-12 numbers no double holds", safe, nil, asIs},
		{"JS-14 another type", safe, []string{"Content-Type", "text/plain"}, refused},
		{"JS-14 another charset", safe, []string{"Content-Type", "application/json; charset=utf-16"}, refused},
		{"JS-14 a compressed body", safe, []string{"Content-Encoding", "gzip"}, refused},
		{"HC-11 nested too deep", change(`"x":1.0`, `"x":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)), nil,
			refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(up.Requests())
			got := d.post(tt.body, tt.headers...)
			heard := callsAfter(up, before)
			switch {
			case tt.want == refused && (got.went() || len(heard) > 0):
				t.Errorf("it is answered with %d %s; the server hears %v", got.status, got.body, heard)
			case tt.want == asIs && (!got.went() || len(heard) != 1 || heard[0].Name != "safe"):
				t.Errorf("it is answered with %d %s; the server hears %v", got.status, got.body, heard)
			case tt.want == asIs &&
				string(rawjson.Get(heard[0].Params, "arguments")) != `{"n":12345678901234567890,"x":1.0}`:
				t.Errorf("the server hears %s", heard[0].Params)
			case tt.want == asIs && bytes.Contains(heard[0].Params, []byte("other")) &&
				!strings.HasPrefix(tt.name, "JS-11"):
				t.Errorf("the server hears of the other: %s", heard[0].Params)
			}
		})
	}
}

// callsAfter gives the calls that a server has heard behind its first so many messages.
func callsAfter(s *mcptest.Server, from int) []mcptest.Request {
	var calls []mcptest.Request
	for _, r := range s.Requests()[from:] {
		if r.Method == mcp.MethodToolsCall {
			calls = append(calls, r)
		}
	}
	return calls
}

func utf16(text string) string {
	var b strings.Builder
	b.WriteString("\xff\xfe")
	for _, c := range []byte(text) {
		b.WriteByte(c)
		b.WriteByte(0)
	}
	return b.String()
}
