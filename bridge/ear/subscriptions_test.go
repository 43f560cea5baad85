package ear

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

// TestSubscriptions has a server that refuses what begins with "bad:", and does not answer for what begins with "mute:".
func TestSubscriptions(t *testing.T) {
	var said []string
	s := Subscriptions{Able: true, Logger: slog.New(slog.DiscardHandler)}
	s.Ask = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		uri := wire.GetText(params, "uri")
		said = append(said, strings.TrimPrefix(method, "resources/")+" "+uri)
		switch {
		case strings.HasPrefix(uri, "bad:"):
			return nil, &link.ReplyError{Object: wire.ErrorObject(wire.CodeResourceNotFound, "no", nil)}
		case strings.HasPrefix(uri, "mute:"):
			return nil, link.ErrLost
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
		{[]string{"a:2", "mute:1"}, turn{Said: []string{"unsubscribe a:3", "subscribe mute:1"}, Refused: []string{"mute:1"}}},
		{nil, turn{Said: []string{"unsubscribe a:2"}}},
	} {
		said = nil
		refused := s.Turn(t.Context(), tt.uris)
		got := turn{said, refused.What().URIs, refused.Final().What().URIs}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.uris, diff)
		}
	}
}

func TestNoSubscriptions(t *testing.T) {
	s := Subscriptions{Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		t.Error("the server is asked")
		return nil, nil
	}}
	if refused := s.Turn(t.Context(), nil); refused != nil {
		t.Errorf("%+v", refused)
	}
	refused := s.Turn(t.Context(), []string{"a:1"})
	want := drawbridge.Watched{URIs: []string{"a:1"}}
	if diff := cmp.Diff(want, refused.Final().What()); diff != "" || !errors.Is(refused[0].Err, errNoSubscriptions) {
		t.Errorf("%v %s", refused[0].Err, diff)
	}
}

func TestAnswerOf(t *testing.T) {
	reply := func(code int) error { return &link.ReplyError{Object: wire.ErrorObject(code, "no", nil)} }
	for _, tt := range []struct {
		err  error
		want answer
	}{
		{reply(wire.CodeMethodNotFound), answer{said: true, never: true}},
		{reply(wire.CodeInvalidParams), answer{said: true}},
		{link.ErrLost, answer{mayPass: true}},
		{link.ErrRefused, answer{mayPass: true}},
		{&drawbridge.Fault{Code: drawbridge.AuthFailure}, answer{}},
		{context.DeadlineExceeded, answer{mayPass: true}},
	} {
		if got := answerOf(tt.err); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
	}
}
