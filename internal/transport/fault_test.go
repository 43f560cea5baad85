package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

func TestCodeOf(t *testing.T) {
	reply := func(code int) error { return &ResponseError{mcp.NewErrorObject(code, "no", nil)} }
	for _, tt := range []struct {
		err  error
		want drawbridge.FaultCode
	}{
		{reply(mcp.CodeInvalidParams), drawbridge.InvalidInput},
		{reply(mcp.CodeInvalidRequest), drawbridge.InvalidInput},
		{reply(mcp.CodeParse), drawbridge.InvalidInput},
		{reply(mcp.CodeMissingCapability), drawbridge.InvalidInput},
		{reply(mcp.CodeURLElicitation), drawbridge.InvalidInput},
		{reply(mcp.CodeMethodNotFound), drawbridge.NotFound},
		{reply(mcp.CodeResourceNotFound), drawbridge.NotFound},
		{reply(mcp.CodeInternal), drawbridge.ServerError},
		{reply(12345), drawbridge.ServerError},
		{fmt.Errorf("list tools: %w", reply(mcp.CodeInvalidParams)), drawbridge.InvalidInput},
		{fmt.Errorf("status 400: %w", ErrRefused), drawbridge.ServerError},
		{&drawbridge.Fault{Code: drawbridge.AuthFailure, Err: reply(mcp.CodeInvalidParams)}, drawbridge.AuthFailure},
		{ErrClosed, drawbridge.Transient},
		{fmt.Errorf("%w: %w", ErrLost, errors.New("reset")), drawbridge.Transient},
		{context.DeadlineExceeded, drawbridge.Transient},
	} {
		if got := FaultCodeOf(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestResult(t *testing.T) {
	object := mcp.NewErrorObject(-32603, "oh", nil)
	for _, tt := range []struct {
		name     string
		response mcp.Message
		err      error
		want     string // the result, or the error
	}{
		{"a result", mcp.Message{Result: json.RawMessage(`{"a":1}`)}, nil, `{"a":1}`},
		{"an error object", mcp.Message{Error: object}, nil, "the server answered with error -32603: oh"},
		{"no answer", mcp.Message{}, ErrLost, ErrLost.Error()},
	} {
		result, err := ResultOrError(tt.response, tt.err)
		got := string(result)
		if err != nil {
			got += err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
