package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

func TestStreamRouting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rest, first, second, subscription := &heard{}, &heard{}, &heard{}, &heard{}
		s, p := connect(t, transport.StreamConnOptions{Handler: rest})
		expect := func(h *heard, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, h.noted()); diff != "" {
				t.Error(diff)
			}
			h.notes = nil
		}
		const line = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`
		const message = `notifications/message {"data":1}`

		p.write(nil, line)
		expect(rest, message)

		listening := start(t.Context(), s, mcp.MethodListen, "{}", subscription)
		listen := p.read()
		p.write(nil, line)
		expect(rest, message)

		one := start(t.Context(), s, "tools/call", "{}", first)
		req := p.read()
		p.write(nil, line)
		expect(first, message)
		p.write(nil, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		expect(rest, "notifications/tools/list_changed ")
		p.write(listen.ID,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$}}}`)
		expect(subscription, `notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`)

		two := start(t.Context(), s, "tools/call", "{}", second)
		req2 := p.read()
		p.write(nil, line)
		expect(rest, message)
		p.write(req2.ID,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$,"progress":1}}`)
		expect(second, `notifications/progress {"progressToken":3,"progress":1}`)
		p.write(req.ID, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"$","progress":1}}`)
		expect(first, `notifications/progress {"progressToken":"2","progress":1}`)

		p.write(req2.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
		<-two
		p.write(req2.ID,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$,"progress":2}}`)
		for _, h := range []*heard{first, second, rest} {
			expect(h)
		}
		p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
		<-one
		p.write(listen.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
		<-listening
	})
}

func TestStreamAsk(t *testing.T) {
	answers := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) {
		return json.RawMessage(`{"roots":[]}`), nil
	}}
	refuses := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) {
		return nil, json.RawMessage(`{"code":-1,"message":"declined"}`)
	}}
	silent := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) { return nil, nil }}
	for _, tt := range []struct {
		name    string
		handler transport.Handler
		method  string
		want    mcp.Message
	}{
		{"result", answers, "roots/list", mcp.Message{Result: json.RawMessage(`{"roots":[]}`)}},
		{"error", refuses, "elicitation/create",
			mcp.Message{Error: json.RawMessage(`{"code":-1,"message":"declined"}`)}},
		{"neither", silent, "roots/list", mcp.Message{Error: json.RawMessage(`{"code":-32603,"message":"no answer"}`)}},
		{"ping", refuses, "ping", mcp.Message{Result: json.RawMessage(`{}`)}},
		{"nobody", nil, "roots/list",
			mcp.Message{Error: json.RawMessage(`{"code":-32601,"message":"method not found"}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, p := connect(t, transport.StreamConnOptions{Handler: tt.handler})
			p.write(nil, `{"jsonrpc":"2.0","id":"s-1","method":"`+tt.method+`"}`)
			tt.want.ID = json.RawMessage(`"s-1"`)
			if diff := cmp.Diff(tt.want, p.read()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStreamAskOfACall shows that what a server asks in the course of a call reaches that call's handler.
func TestStreamAskOfACall(t *testing.T) {
	in := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	s, p := connect(t, transport.StreamConnOptions{})
	got := start(t.Context(), s, "tools/call", "{}", in)
	req := p.read()
	p.write(nil, `{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}`)
	if m := p.read(); string(m.Result) != `{"action":"accept"}` || string(m.ID) != "0" {
		t.Errorf("the server got %+v", m)
	}
	p.write(req.ID, `{"jsonrpc":"2.0","id":$,"result":{}}`)
	if r := <-got; r.Err != nil {
		t.Error(r.Err)
	}
}

func TestStreamAskIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var causes []string
		h := &heard{}
		h.answer = func(ctx context.Context) (result, errorObject json.RawMessage) {
			<-ctx.Done()
			h.mu.Lock()
			defer h.mu.Unlock()
			causes = append(causes, ctx.Err().Error())
			return json.RawMessage("{}"), nil
		}
		s, p := connect(t, transport.StreamConnOptions{Handler: h})
		p.write(nil, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		p.write(nil, `{"jsonrpc":"2.0","id":2,"method":"roots/list"}`)
		p.write(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		if len(causes) != 1 {
			t.Fatalf("%d requests ended by the server's cancellation, want 1", len(causes))
		}
		// Nothing is sent for it: the next message is another one.
		go p.write(nil, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		if m := p.read(); string(m.ID) != "3" {
			t.Errorf("the server got %+v", m)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(causes) != 2 {
			t.Errorf("%d requests ended with the connection, want 2", len(causes))
		}
	})
}

func TestStreamTooManyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := &heard{answer: func(context.Context) (result, errorObject json.RawMessage) {
			<-release
			return json.RawMessage("{}"), nil
		}}
		_, p := connect(t, transport.StreamConnOptions{Handler: h, MaxServerRequests: 2})
		for i := range 3 {
			p.write(nil, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i))
			synctest.Wait()
		}
		want := mcp.Message{ID: json.RawMessage("2"),
			Error: json.RawMessage(`{"code":-32603,"message":"too many requests at once"}`)}
		if diff := cmp.Diff(want, p.read()); diff != "" {
			t.Error(diff)
		}
		close(release)
		for range 2 {
			if m := p.read(); m.Error != nil {
				t.Errorf("the server got %+v", m)
			}
		}
		p.write(nil, `{"jsonrpc":"2.0","id":4,"method":"roots/list"}`)
		if m := p.read(); m.Error != nil {
			t.Errorf("later the server got %+v", m)
		}
	})
}
