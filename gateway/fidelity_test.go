//go:build !nomcp

package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// A fidelityRow is something that a typed round trip loses, changes or trips over, and that must pass as it was sent.
type fidelityRow struct {
	name string
	// result is what the server answers to tools/call, arguments what the client sends.
	result, arguments string
}

var fidelityRows = []fidelityRow{
	{"unknown members of the result, a block and its annotations",
		`{"content":[{"type":"text","text":"x","future":{"a":1},"annotations":{"audience":["user"],"mood":"good"}}],"later":[true]}`, `{}`},
	{"integers beyond 2^53", `{"content":[],"structuredContent":{"id":9007199254740993,"neg":-9223372036854775809}}`,
		`{"id":18446744073709551617}`},
	{"a number outside the range of a float64", `{"content":[],"structuredContent":{"n":1e400,"tiny":1e-400}}`,
		`{"n":-1E+999}`},
	{"a number as it was written", `{"content":[],"structuredContent":[1.0,1e2,-0,0.10]}`, `{"n":[1.0,1e2,-0,0.10]}`},
	{"a content block of unknown type", `{"content":[{"type":"hologram","data":{"depth":3}}]}`, `{}`},
	{"Base64 without padding", `{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo"}]}`,
		`{"blob":"aGVsbG8"}`},
	{"Base64 with line breaks", `{"content":[{"type":"audio","mimeType":"audio/wav","data":"UklG\r\nRg=="}]}`, `{}`},
	{"an empty text of an embedded resource", `{"content":[{"type":"resource","resource":{"uri":"a:b","text":""}}]}`,
		`{"text":""}`},
	{"zero, false and empty values",
		`{"content":[{"type":"resource_link","uri":"a:b","name":"","size":0,"description":"","annotations":{"priority":0}}],"isError":false}`, `{"n":0,"b":false,"s":"","a":[],"o":{}}`},
	{"null", `{"content":[],"structuredContent":null}`, `{"nothing":null}`},
	{"an array and a scalar as structured content", `{"content":[],"structuredContent":[1,"two",null]}`, `{}`},
	{"characters that HTML knows", `{"content":[{"type":"text","text":"<a href=\"x\">&amp;</a> \u2028"}]}`,
		`{"q":"<>&"}`},
	{"escapes as they were written", `{"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00"}]}`,
		`{"k\u0065y":"\u00e9"}`},
	{"the order of members", `{"structuredContent":{"z":1,"a":2,"m":{"y":1,"b":2}},"content":[]}`,
		`{"z":1,"a":{"y":1,"b":2}}`},
	{"members of _meta that belong to no hop",
		`{"content":[],"_meta":{"com.example/n":12345678901234567890,"traceparent":"00-x"}}`, `{}`},
	{"an error of the tool's own", `{"content":[{"type":"text","text":"no"}],"isError":true,"code":0}`, `{}`},
}

// fidelityTool has in its definition what a typed round trip drops or adds.
const fidelityTool = `{"name":"echo","title":"","description":"","execution":{"taskSupport":"optional"},` +
	`"inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993,"x-future":[0]}},"$comment":"<&>"},` +
	`"annotations":{"openWorldHint":false,"com.example/hint":1},"icons":[{"src":"data:,","sizes":["any"],"theme":null}],"_meta":{"b":1,"a":18446744073709551615},"unknown":{"z":null}}`

// A rawServer answers MCP over HTTP with exactly the bytes it is told to, in one era.
type rawServer struct {
	modern bool

	mu     sync.Mutex
	result string          // the answer to tools/call
	fail   string          // the error object to answer with instead
	params json.RawMessage // what the last tools/call came with
}

func (s *rawServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := mcp.ParseMessage(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	m.Result, m.Error = s.answer(m)
	m.Method, m.Params = "", nil
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(m.Append(nil))
}

func (s *rawServer) answer(m mcp.Message) (result, errorObject json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const capabilities = `"capabilities":{"tools":{}}`
	switch {
	case m.Method == mcp.MethodDiscover && s.modern:
		return json.RawMessage(`{"supportedVersions":["2026-07-28"],` + capabilities +
			`,"resultType":"complete","ttlMs":0,"cacheScope":"private"}`), nil
	case m.Method == mcp.MethodInitialize && !s.modern:
		return json.RawMessage(`{"protocolVersion":"2025-11-25",` + capabilities +
			`,"serverInfo":{"name":"raw","version":"0"}}`), nil
	case m.Method == mcp.MethodToolsList:
		return json.RawMessage(`{"tools":[` + fidelityTool + `]}`), nil
	case m.Method == mcp.MethodToolsCall:
		s.params = bytes.Clone(m.Params)
		if s.fail != "" {
			return nil, json.RawMessage(s.fail)
		}
		return json.RawMessage(s.result), nil
	}
	return nil, mcp.NewErrorObject(mcp.CodeMethodNotFound, "no "+m.Method, nil)
}

func (s *rawServer) set(result, fail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result, s.fail, s.params = result, fail, nil
}

func (s *rawServer) got() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.params
}

// TestFidelity sends every row through the gateway, for clients and servers of both eras.
func TestFidelity(t *testing.T) {
	for _, server := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
		raw := &rawServer{modern: server == drawbridge.Modern}
		upstream := httptest.NewServer(raw)
		t.Cleanup(upstream.Close)
		url := serveConfig(t, fmt.Sprintf(`{"servers":{"raw":{"type":"http","url":%q}}}`, upstream.URL))
		for _, client := range []drawbridge.ProtocolEra{drawbridge.Legacy, drawbridge.Modern} {
			t.Run(fmt.Sprintf("%s client, %s server", client, server), func(t *testing.T) {
				c := newClient(t, client, mcp.Version20251125, "",
					func(hear func(mcp.Message)) line { return dialHTTP(url, client, hear) })
				t.Run("definition", func(t *testing.T) {
					items := rawjson.Get(c.do(mcp.MethodToolsList, `{}`).Result, "tools")
					for item := range rawjson.Elements(items) {
						if rawjson.GetString(item, "name") == "raw__echo" {
							want := strings.Replace(fidelityTool, `"name":"echo"`, `"name":"raw__echo"`, 1)
							if diff := cmp.Diff(want, string(item)); diff != "" {
								t.Errorf("definition changed (-sent +arrived):\n%s", diff)
							}
							return
						}
					}
					t.Errorf("raw__echo is not in %s", items)
				})
				for _, row := range fidelityRows {
					t.Run(row.name, func(t *testing.T) { checkRow(t, raw, c, row) })
				}
				t.Run("an error object", func(t *testing.T) {
					const fail = `{"code":-32050,"message":"<no>","data":{"n":9007199254740993,"empty":""},"more":0}`
					raw.set("", fail)
					if got := string(c.do(mcp.MethodToolsCall,
						`{"name":"raw__echo","arguments":{}}`).Error); got != fail {
						t.Errorf("error object\n got %s\nwant %s", got, fail)
					}
				})
			})
		}
	}
}

func checkRow(t *testing.T, raw *rawServer, c *client, row fidelityRow) {
	raw.set(row.result, "")
	answer := c.do(mcp.MethodToolsCall, `{"name":"raw__echo","arguments":`+row.arguments+`,"future":[1.0]}`)
	if answer.Error != nil {
		t.Fatalf("the call failed: %s", answer.Error)
	}
	// What belongs to the hop between gateway and client is taken off again; all else must be the server's bytes.
	result := rawjson.Apply(answer.Result, rawjson.Drop("resultType"), rawjson.Drop("_meta", mcp.MetaServerInfo))
	if rawjson.Get([]byte(row.result), "_meta") == nil {
		result = rawjson.Apply(result, rawjson.Drop("_meta"))
	}
	if diff := cmp.Diff(row.result, string(result)); diff != "" {
		t.Errorf("result changed (-sent +arrived):\n%s", diff)
	}
	params := raw.got()
	if diff := cmp.Diff(row.arguments, string(rawjson.Get(params, "arguments"))); diff != "" {
		t.Errorf("arguments changed (-sent +arrived):\n%s", diff)
	}
	if got := string(rawjson.Get(params, "future")); got != `[1.0]` {
		t.Errorf("an unknown member of params arrived as %s", got)
	}
	if got := rawjson.GetString(params, "name"); got != "echo" {
		t.Errorf("the server was called by the name %q", got)
	}
}
