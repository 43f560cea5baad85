package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// smallCall is a tools/call with 64 bytes of text; bigText and bigRows are results of about 256 KiB: one long text full
// of line breaks and quotes, and structured content made of many small values.
var (
	smallCall = []byte(
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"every__echo","arguments":{"text":"` +
			strings.Repeat("x", 64) + `"},"_meta":{"progressToken":3}}}`)
	bigText = []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` +
		strings.Repeat(`{\"key\": \"a value of some length, as text has it\"}\n`, 256<<10/53) + `"}]}}`)
	bigRows = []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"rows":[` +
		strings.Repeat(`{"id":123456,"name":"some name","on":true,"at":1.5},`, 256<<10/52) + `null]}}}`)
)

var messages = []struct {
	name string
	raw  []byte
}{{"call", smallCall}, {"text256k", bigText}, {"rows256k", bigRows}}

func BenchmarkParse(b *testing.B) {
	for _, m := range messages {
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(m.raw)))
			for b.Loop() {
				if _, err := mcp.ParseMessage(m.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkApply makes the edits of one hop: the name and two hop keys of a call, the server's info of a result.
func BenchmarkApply(b *testing.B) {
	name, token, version := rawjson.Quote("echo"), json.RawMessage("12"), rawjson.Quote(mcp.Version20260728)
	for _, m := range messages {
		parsed, err := mcp.ParseMessage(m.raw)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(m.raw)))
			for b.Loop() {
				if parsed.IsRequest() {
					rawjson.Apply(parsed.Params, rawjson.Put(name, "name"), rawjson.Put(token, "_meta",
						mcp.MetaProgressToken),
						rawjson.Put(version, "_meta", mcp.MetaProtocolVersion))
				} else {
					rawjson.Apply(parsed.Result, rawjson.Put(rawjson.Quote("complete"), "resultType"),
						rawjson.Drop("_meta", mcp.MetaServerInfo))
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, m := range messages {
		parsed, err := mcp.ParseMessage(m.raw)
		if err != nil {
			b.Fatal(err)
		}
		out := make([]byte, 0, len(m.raw)+64)
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(m.raw)))
			for b.Loop() {
				out = parsed.Append(out[:0])
			}
		})
	}
}
