package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
	"github.com/google/go-cmp/cmp"
)

// TestSubscriptions has a server that refuses what begins with "bad:", and does not answer for what begins with
// "mute:".
func TestSubscriptions(t *testing.T) {
	var said []string
	s := resourceSubscriptions{Supported: true, Logger: slog.New(slog.DiscardHandler)}
	s.SendRequest = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		uri := rawjson.GetString(params, "uri")
		said = append(said, strings.TrimPrefix(method, "resources/")+" "+uri)
		switch {
		case strings.HasPrefix(uri, "bad:"):
			return nil, &transport.ResponseError{Object: mcp.NewErrorObject(mcp.CodeResourceNotFound, "no", nil)}
		case strings.HasPrefix(uri, "mute:"):
			return nil, transport.ErrLost
		}
		return json.RawMessage(`{}`), nil
	}
	type turn struct{ Said, Refused, Final []string }
	for _, tt := range []struct {
		uris []string
		want turn
	}{
		{nil, turn{}},
		{[]string{"a:1", "a:2"}, turn{Said: []string{"subscribe a:1", "subscribe a:2"}}},
		{[]string{"a:1", "a:2"}, turn{}},
		{[]string{"a:2", "bad:1", "mute:1", "a:3"}, turn{
			Said:    []string{"unsubscribe a:1", "subscribe bad:1", "subscribe mute:1", "subscribe a:3"},
			Refused: []string{"bad:1", "mute:1"}, Final: []string{"bad:1"},
		}},
		{[]string{"a:2", "mute:1"}, turn{Said: []string{"unsubscribe a:3", "subscribe mute:1"},
			Refused: []string{"mute:1"}}},
		{nil, turn{Said: []string{"unsubscribe a:2"}}},
	} {
		said = nil
		refused := s.update(t.Context(), tt.uris)
		got := turn{said, refused.watchSet().URIs, refused.finalOnes().watchSet().URIs}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.uris, diff)
		}
	}
}

func TestNoSubscriptions(t *testing.T) {
	s := resourceSubscriptions{SendRequest: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		t.Error("the server is asked")
		return nil, nil
	}}
	if refused := s.update(t.Context(), nil); refused != nil {
		t.Errorf("%+v", refused)
	}
	refused := s.update(t.Context(), []string{"a:1"})
	want := drawbridge.WatchSet{URIs: []string{"a:1"}}
	if diff := cmp.Diff(want, refused.finalOnes().watchSet()); diff != "" || !errors.Is(refused[0].Err,
		errNoSubscriptions) {
		t.Errorf("%v %s", refused[0].Err, diff)
	}
}

func TestAnswerOf(t *testing.T) {
	reply := func(code int) error { return &transport.ResponseError{Object: mcp.NewErrorObject(code, "no", nil)} }
	for _, tt := range []struct {
		err  error
		want listenError
	}{
		{reply(mcp.CodeMethodNotFound), listenError{fromServer: true, unsupported: true}},
		{reply(mcp.CodeInvalidParams), listenError{fromServer: true}},
		{transport.ErrLost, listenError{retryable: true}},
		{transport.ErrRefused, listenError{retryable: true}},
		{&drawbridge.Fault{Code: drawbridge.AuthFailure}, listenError{}},
		{context.DeadlineExceeded, listenError{retryable: true}},
	} {
		if got := classifyListenError(tt.err); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
	}
}
