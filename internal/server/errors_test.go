package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// TestFailed shows what callers are told of what went wrong.
func TestFailed(t *testing.T) {
	var log strings.Builder
	s := newServer(t, newFakeDeck(), Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	fault := func(kind drawbridge.FaultKind, code drawbridge.FaultCode) *drawbridge.Fault {
		return &drawbridge.Fault{Kind: kind, Code: code, Step: "call fake", Err: errors.New("it is away"),
			Next: "try again"}
	}
	ambiguous := fault(drawbridge.BridgeFault, drawbridge.Transient)
	ambiguous.Ambiguous = true
	raw := &drawbridge.Fault{Code: drawbridge.ServerError,
		Raw: json.RawMessage(`{"code":-32050,"message":"<no>","data":9007199254740993,"x":0}`)}
	gone := func(code, rest string) error {
		return &drawbridge.Fault{Code: drawbridge.ServerError, Raw: json.RawMessage(`{"x":1.0, "code": ` + code +
			` ,` + rest + `}`)}
	}
	const (
		call, get, read = mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead
		text            = `{"content":[{"type":"text","text":"call fake: it is away (try again)"}],"isError":true,"_meta":{"drawbridge/fault":`
	)
	for _, tt := range []struct {
		era    drawbridge.ProtocolEra
		method string
		err    error
		want   string
	}{
		{drawbridge.Legacy, call, raw, `{"code":-32050,"message":"<no>","data":9007199254740993,"x":0}`},
		{drawbridge.Legacy, call, fmt.Errorf("outer: %w", fault(drawbridge.BridgeFault, drawbridge.ServerError)), text +
			`{"code":"server_error","server":"fake","ambiguous":false}}}`},
		{drawbridge.Modern, call, ambiguous, text +
			`{"code":"transient","server":"fake","ambiguous":true},"io.modelcontextprotocol/serverInfo":` + ourInfo +
			`},"resultType":"complete"}`},
		{drawbridge.Legacy, call, fault(drawbridge.BridgeFault, drawbridge.PolicyBlocked), text +
			`{"code":"policy_blocked","server":"fake","ambiguous":false}}}`},
		{drawbridge.Legacy, call, fault(drawbridge.UnknownCapability, drawbridge.NotFound),
			`{"code":-32602,"message":"Unknown tool: plain"}`},
		{drawbridge.Legacy, get, fault(drawbridge.UnknownCapability, drawbridge.NotFound),
			`{"code":-32602,"message":"Unknown prompt: plain"}`},
		{drawbridge.Legacy, call, fault(drawbridge.BridgeFault, drawbridge.InvalidInput),
			`{"code":-32602,"message":"call fake: it is away (try again)"}`},
		{drawbridge.Legacy, read, fault(drawbridge.UnknownCapability, drawbridge.NotFound),
			`{"code":-32002,"message":"Resource not found","data":{"uri":"a:b"}}`},
		{drawbridge.Modern, read, fault(drawbridge.BridgeFault, drawbridge.NotFound),
			`{"code":-32602,"message":"Resource not found","data":{"uri":"a:b"}}`},
		{drawbridge.Modern, read, gone("-32002", `"message":"gone"`), `{"x":1.0, "code": -32602 ,"message":"gone"}`},
		{drawbridge.Modern, read, gone("-32602", `"message":"gone","data":{"uri":"a:b"}`),
			`{"x":1.0, "code": -32602 ,"message":"gone","data":{"uri":"a:b"}}`},
		{drawbridge.Legacy, read, gone("-32602", `"message":"gone","data":{"uri":"a:b", "n":1e3}`),
			`{"x":1.0, "code": -32002 ,"message":"gone","data":{"uri":"a:b", "n":1e3}}`},
		{drawbridge.Legacy, read, gone("-32602", `"message":"bad cursor"`),
			`{"x":1.0, "code": -32602 ,"message":"bad cursor"}`},
		{drawbridge.Legacy, read, gone("-32002", `"message":"gone"`), `{"x":1.0, "code": -32002 ,"message":"gone"}`},
		{drawbridge.Modern, get, gone("-32002", `"message":"own"`), `{"x":1.0, "code": -32002 ,"message":"own"}`},
		{drawbridge.Modern, get, ambiguous,
			`{"code":-32603,"message":"call fake: it is away (try again)","data":{"code":"transient","ambiguous":true}}`},
		{drawbridge.Legacy, get, errors.New("password=hunter2"),
			`{"code":-32603,"message":"internal error: see the log","data":{"code":"server_error","ambiguous":false}}`},
	} {
		caller := owner
		caller.Era = tt.era
		r := s.errorReply(t.Context(), caller, tt.method, json.RawMessage(`{"name":"plain","uri":"a:b"}`), tt.err)
		if got := string(r.body) + string(r.tail) + string(r.fault); got != tt.want {
			t.Errorf("%s %s: %v\n got %s\nwant %s", tt.era, tt.method, tt.err, got, tt.want)
		}
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "hunter2") {
		t.Errorf("the log has %q, want the one internal error", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := s.errorReply(ctx, owner, call, nil, context.Canceled); !r.isNone() {
		t.Errorf("a cancelled call is answered: %s%s", r.body, r.fault)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    Deck
		o    Options
	}{
		{"no deck", nil, Options{}},
		{"a negative limit", newFakeDeck(), Options{PageSize: -1}},
	} {
		if _, err := New(t.Context(), tt.d, tt.o); err == nil {
			t.Errorf("%s: no error", tt.name)
		}
	}
}
