package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

func TestCodeOf(t *testing.T) {
	reply := func(code int) error { return &ReplyError{wire.ErrorObject(code, "no", nil)} }
	for _, tt := range []struct {
		err  error
		want drawbridge.FaultCode
	}{
		{reply(wire.CodeInvalidParams), drawbridge.InvalidInput},
		{reply(wire.CodeInvalidRequest), drawbridge.InvalidInput},
		{reply(wire.CodeParse), drawbridge.InvalidInput},
		{reply(wire.CodeMissingCapability), drawbridge.InvalidInput},
		{reply(wire.CodeURLElicitation), drawbridge.InvalidInput},
		{reply(wire.CodeMethodNotFound), drawbridge.NotFound},
		{reply(wire.CodeResourceNotFound), drawbridge.NotFound},
		{reply(wire.CodeInternal), drawbridge.ServerError},
		{reply(12345), drawbridge.ServerError},
		{fmt.Errorf("list tools: %w", reply(wire.CodeInvalidParams)), drawbridge.InvalidInput},
		{fmt.Errorf("status 400: %w", ErrRefused), drawbridge.ServerError},
		{&drawbridge.Fault{Code: drawbridge.AuthFailure, Err: reply(wire.CodeInvalidParams)}, drawbridge.AuthFailure},
		{ErrClosed, drawbridge.Transient},
		{fmt.Errorf("%w: %w", ErrLost, errors.New("reset")), drawbridge.Transient},
		{context.DeadlineExceeded, drawbridge.Transient},
	} {
		if got := CodeOf(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestResult(t *testing.T) {
	object := wire.ErrorObject(-32603, "oh", nil)
	for _, tt := range []struct {
		name     string
		response wire.Message
		err      error
		want     string // the result, or the error
	}{
		{"a result", wire.Message{Result: json.RawMessage(`{"a":1}`)}, nil, `{"a":1}`},
		{"an error object", wire.Message{Error: object}, nil, "the server answered with error -32603: oh"},
		{"no answer", wire.Message{}, ErrLost, ErrLost.Error()},
	} {
		result, err := Result(tt.response, tt.err)
		got := string(result)
		if err != nil {
			got += err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
