package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
	"github.com/google/go-cmp/cmp"
)

// TestWhatAFaultSaysToItsCaller is the table from errors to codes, to whether the call may be made again where it is
// harmless and where it is not, and to what a person is told to do: of a call that was under way, and of a server that
// cannot be mounted.
func TestWhatAFaultSaysToItsCaller(t *testing.T) {
	type told struct {
		Code                       drawbridge.FaultCode
		Harmless, Harmful, Unclear bool
		Next                       string
	}
	const look = "it may have taken effect: check before repeating it"
	status := func(code int) error { return fmt.Errorf("call: %w", &transport.HTTPStatusError{Code: code}) }
	reply := func(code int) error { return &transport.ResponseError{Object: mcp.NewErrorObject(code, "no", nil)} }
	e := &managedServer{config: config.Server{ID: "s", Command: "x"}}
	for name, tt := range map[string]struct {
		err          error
		call, mount  told
		mountedApart bool // what is said of a mount is something else
	}{
		"a connection that came to nothing": {errors.New("connection refused"), told{drawbridge.Transient, true, true,
			false, ""}, told{}, false},
		"a connection that was lost": {fmt.Errorf("%w: reset", transport.ErrLost), told{drawbridge.Transient,
			true, false, true, look}, told{drawbridge.Transient, true, true, false, ""}, true},
		"a time limit": {&callTimeoutError{}, told{drawbridge.Transient, true, false, true, look},
			told{drawbridge.Transient, true, true, false, ""}, true},
		"a caller who gave up": {context.Canceled, told{drawbridge.Transient, true, false, true, ""},
			told{drawbridge.Transient, true, true, false, ""}, true},
		"too many requests": {status(429), told{drawbridge.RateLimited, true, true, false,
			""}, told{}, false},
		"a server that is overloaded": {status(503), told{drawbridge.Transient, true, true, false,
			""}, told{}, false},
		"a server that broke down": {status(500), told{drawbridge.ServerError, true, false, true, look},
			told{drawbridge.ServerError, true, true, false, ""}, true},
		"an error inside": {reply(mcp.CodeInternal), told{drawbridge.ServerError, true, true, false,
			""}, told{}, false},
		"bad params": {reply(mcp.CodeInvalidParams), told{drawbridge.InvalidInput, false, false,
			false, ""}, told{}, false},
		"no such tool": {reply(mcp.CodeMethodNotFound), told{drawbridge.NotFound, false, false,
			false, ""}, told{}, false},
		"no such address": {status(404), told{drawbridge.NotFound, false, false, false,
			""}, told{}, false},
		"an address that is guarded": {fmt.Errorf("dial: %w", &safehttp.RefusedError{}),
			told{drawbridge.PolicyBlocked, false, false, false, ""}, told{}, false},
		"a cage that cannot be had": {&startError{&confine.UnsupportedError{Why: "x"}},
			told{drawbridge.PolicyBlocked, false, false, false, ""}, told{}, false},
		"a program that changed": {&startError{&config.ProgramChangedError{}}, told{drawbridge.PolicyBlocked,
			false, false, false, ""}, told{}, false},
		"a directory that is not there": {&startError{&process.DirError{Dir: "/x", Why: "is not there"}},
			told{drawbridge.Transient, true, true, false, ""},
			told{drawbridge.Transient, true, true, false, `make it, or name another as "cwd"`}, true},
		"a program that is not there": {&startError{fs.ErrNotExist}, told{drawbridge.Transient, true, true, false, ""},
			told{drawbridge.Transient, true, true, false, "install it, or configure its full path"}, true},
	} {
		if !tt.mountedApart {
			tt.mount = tt.call
		}
		for what, pair := range map[string]struct {
			f    *drawbridge.Fault
			want told
		}{"call": {e.callFault("call x on s", tt.err), tt.call}, "mount": {e.mountFault("connect", tt.err), tt.mount}} {
			got := told{pair.f.Code, pair.f.MayRetry(true), pair.f.MayRetry(false), pair.f.Ambiguous, pair.f.Next}
			if diff := cmp.Diff(pair.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, what, diff)
			}
		}
		away := e.unavailableFault("call x on s", tt.err)
		want := told{drawbridge.Transient, true, true, false, "retry"}
		if code := transport.FaultCodeOf(tt.err); code == drawbridge.PolicyBlocked {
			want = told{code, false, false, false, ""}
		}
		got := told{away.Code, away.MayRetry(true), away.MayRetry(false), away.Ambiguous, away.Next}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, away (-want +got):\n%s", name, diff)
		}
	}
}
