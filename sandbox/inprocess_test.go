package sandbox

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestACancelledRunInProcess cancels a run that computes, and one that waits for a tool. The next script runs.
func TestACancelledRunInProcess(t *testing.T) {
	s := openTest(t, Options{InProcess: true, Workers: 1})
	for _, code := range []string{"tools.begun()\nwhile True: pass", "tools.waits()"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the person is gone")
		_, err := s.Run(ctx, Script{Code: code}, HostFunc(func(ctx context.Context, c ToolCall) Reply {
			cancel(why)
			if c.Name == "waits" {
				<-ctx.Done()
			}
			return Reply{Result: []byte(`{}`)}
		}))
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", code, err)
		}
		if o := run(t, s, "print(1)", Limits{}); o.Stdout != "1\n" {
			t.Errorf("after %s: %+v", code, o)
		}
	}
}

// TestNoWorkersNeedsAChoice: without the hook in main, a program must say that scripts run in it.
func TestNoWorkersNeedsAChoice(t *testing.T) {
	engine := programEngine.Swap(nil)
	defer programEngine.Store(engine)
	if _, err := Open(t.Context(), Options{}); !errors.Is(err, ErrNoWorkers) || !strings.Contains(err.Error(), "InProcess") {
		t.Errorf("%v", err)
	}
	s := openTest(t, Options{InProcess: true})
	if o := run(t, s, "print(1)", Limits{}); o.Stdout != "1\n" {
		t.Errorf("%+v", o)
	}
}
