package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// stateless handles one message of the stateless generation, and returns after it has sent the response. A
// subscriptions/listen request has no response; stateless then returns when ctx ends.
func (t *talker) stateless(ctx context.Context, m mcp.Message, header http.Header, say func(mcp.Message)) {
	if !m.IsRequest() {
		return
	}
	if err := checkStateless(m); err != nil {
		refused, _ := errors.AsType[refusal](err)
		say(mcp.Message{ID: m.ID, Error: json.RawMessage(refused)})
		return
	}
	switch m.Method {
	case mcp.MethodDiscover:
		say(mcp.Message{ID: m.ID,
			Result: json.RawMessage(completeResult(`"supportedVersions":["2026-07-28"],"capabilities":` +
				`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},` +
				`"logging":{},"completions":{}},"instructions":"Talks.","ttlMs":60000,"cacheScope":"public"`))})
		return
	case mcp.MethodListen:
		t.listenTo(ctx, m, say)
		return
	}
	r, err := newStatelessClient(m.Params)
	if err != nil {
		refused, _ := errors.AsType[refusal](err)
		say(mcp.Message{ID: m.ID, Error: json.RawMessage(refused)})
		return
	}
	c := &talkerTurn{t: t, ctx: ctx, params: m.Params, header: header, say: say, asker: r,
		level: rawjson.GetString(m.Params, "_meta", mcp.MetaLogLevel)}
	if reply, ok := t.take(c, m); ok {
		say(reply)
	}
}

func checkStateless(m mcp.Message) error {
	version := mcp.ProtocolVersion(m.Params)
	switch {
	case m.Method == mcp.MethodInitialize || version != "" && version != mcp.Version20260728:
		data := fmt.Sprintf(`{"supported":["2026-07-28"],"requested":%q}`, version)
		return refusal(mcp.NewErrorObject(mcp.CodeUnsupportedVersion, "unsupported protocol version",
			json.RawMessage(data)))
	case version == "" || rawjson.Get(m.Params, "_meta", mcp.MetaClientCapabilities) == nil:
		return refuseTurn(mcp.CodeInvalidParams, "missing protocolVersion or clientCapabilities in _meta")
	}
	return nil
}

// listenTo serves a subscription until ctx ends.
func (t *talker) listenTo(ctx context.Context, m mcp.Message, say func(mcp.Message)) {
	lists := rawjson.Get(m.Params, "notifications")
	h := &hearer{tag: m.ID, lists: lists, uris: map[string]bool{}, say: say}
	for uri := range rawjson.Elements(rawjson.Get(lists, "resourceSubscriptions")) {
		text, _ := rawjson.DecodeString(uri)
		h.uris[text] = true
	}
	defer t.hear(h)()
	say(mcp.Message{Method: mcp.NoteListenAck, Params: json.RawMessage(`{` + subscriptionMetaMember(m.ID) + `,"notifications":` +
		string(lists) + `}`)})
	<-ctx.Done()
}
