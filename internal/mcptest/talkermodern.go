package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// stateless takes one message of the stateless generation. It returns when the request is answered, or begun to listen
// to, which lasts as long as ctx.
func (t *talker) stateless(ctx context.Context, m wire.Message, header http.Header, say func(wire.Message)) {
	if !m.IsRequest() {
		return
	}
	if err := checkStateless(m); err != nil {
		refused, _ := errors.AsType[refusal](err)
		say(wire.Message{ID: m.ID, Error: json.RawMessage(refused)})
		return
	}
	switch m.Method {
	case wire.MethodDiscover:
		say(wire.Message{ID: m.ID, Result: json.RawMessage(completeResult(`"supportedVersions":["2026-07-28"],"capabilities":` +
			`{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},` +
			`"logging":{},"completions":{}},"instructions":"Talks.","ttlMs":60000,"cacheScope":"public"`))})
		return
	case wire.MethodListen:
		t.listenTo(ctx, m, say)
		return
	}
	r, err := retrierOf(m.Params)
	if err != nil {
		refused, _ := errors.AsType[refusal](err)
		say(wire.Message{ID: m.ID, Error: json.RawMessage(refused)})
		return
	}
	c := &turn{t: t, ctx: ctx, params: m.Params, header: header, say: say, asker: r, level: wire.GetText(m.Params, "_meta", wire.MetaLogLevel)}
	if reply, ok := t.take(c, m); ok {
		say(reply)
	}
}

func checkStateless(m wire.Message) error {
	version := wire.VersionOf(m.Params)
	switch {
	case m.Method == wire.MethodInitialize || version != "" && version != wire.Version20260728:
		data := fmt.Sprintf(`{"supported":["2026-07-28"],"requested":%q}`, version)
		return refusal(wire.ErrorObject(wire.CodeUnsupportedVersion, "unsupported protocol version", json.RawMessage(data)))
	case version == "" || wire.Get(m.Params, "_meta", wire.MetaClientCapabilities) == nil:
		return refuse(wire.CodeInvalidParams, "missing protocolVersion or clientCapabilities in _meta")
	}
	return nil
}

// listenTo keeps a subscription until ctx ends.
func (t *talker) listenTo(ctx context.Context, m wire.Message, say func(wire.Message)) {
	lists := wire.Get(m.Params, "notifications")
	h := &hearer{tag: m.ID, lists: lists, uris: map[string]bool{}, say: say}
	for uri := range wire.Elements(wire.Get(lists, "resourceSubscriptions")) {
		text, _ := wire.Text(uri)
		h.uris[text] = true
	}
	defer t.hear(h)()
	say(wire.Message{Method: wire.NoteListenAck, Params: json.RawMessage(`{` + subscription(m.ID) + `,"notifications":` + string(lists) + `}`)})
	<-ctx.Done()
}
