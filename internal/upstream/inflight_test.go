package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

const limit = time.Minute

// A party is a server or a caller that keeps what it is told. A question is answered after thinks.
type party struct {
	thinks time.Duration
	holds  chan struct{} // where it is there, a notification is not taken before it is closed

	mu    sync.Mutex
	heard []string
}

func (p *party) keep(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, method+" "+string(params))
}

func (p *party) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

// A server answers with what the caller answers.
type server struct{ party }

func (s *server) Wake() { s.keep("wake", nil) }

func (s *server) HandleNotification(method string, params json.RawMessage) { s.keep(method, params) }

func (s *server) RecordNotification(string, json.RawMessage) {}

func (s *server) AnswerServerRequest(ctx context.Context, call drawbridge.Call, method string, params json.RawMessage) (
	result, errorObject json.RawMessage) {
	result, err := call.Peer.Request(ctx, method, params)
	if err != nil {
		return nil, mcp.NewErrorObject(mcp.CodeInternal, err.Error(), nil)
	}
	return result, nil
}

type exchangePeer struct{ party }

func (p *exchangePeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if p.holds != nil {
		select {
		case <-p.holds:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.keep(method, params)
	return nil
}

func (p *exchangePeer) Request(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	select {
	case <-time.After(p.thinks):
		return json.RawMessage(`{"answer":1}`), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func begin(t *testing.T, era drawbridge.ProtocolEra, params string, p *exchangePeer) (*inFlightCall, *server) {
	t.Helper()
	s := &server{}
	call := drawbridge.Call{Caller: drawbridge.Caller{Era: era}, Method: mcp.MethodToolsCall,
		Params: json.RawMessage(params)}
	if p != nil {
		call.Peer = p
	}
	return newInFlightCall(t.Context(), s, call, limit, slog.New(slog.DiscardHandler)), s
}

// lasted waits for the end of the call's time, and says how long that took.
func lasted(x *inFlightCall) time.Duration {
	began := time.Now()
	<-x.Context().Done()
	return time.Since(began)
}

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		life  func(x *inFlightCall)
		after time.Duration
		want  *callTimeoutError
	}{
		{"silence", func(*inFlightCall) {}, limit, &callTimeoutError{After: limit}},
		{"progress once", func(x *inFlightCall) {
			time.AfterFunc(30*time.Second, func() { x.HandleNotification(mcp.NoteProgress, nil) })
		}, 90 * time.Second, &callTimeoutError{After: limit}},
		{"log lines are no progress", func(x *inFlightCall) {
			time.AfterFunc(30*time.Second, func() { x.HandleNotification(mcp.NoteMessage, nil) })
		}, limit, &callTimeoutError{After: limit}},
		{"progress for ever", func(x *inFlightCall) {
			var again func()
			again = func() {
				x.HandleNotification(mcp.NoteProgress, nil)
				if x.Context().Err() == nil {
					time.AfterFunc(30*time.Second, again)
				}
			}
			again()
		}, 10 * limit, &callTimeoutError{After: 10 * limit, Hard: true}},
		{"a question stops the time", func(x *inFlightCall) {
			time.AfterFunc(3*time.Minute, x.pauseTimeout())
		}, 4 * time.Minute, &callTimeoutError{After: limit}},
		{"but not for ever", func(x *inFlightCall) { x.pauseTimeout() }, 10 * limit,
			&callTimeoutError{After: 10 * limit, Hard: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, _ := begin(t, drawbridge.Legacy, `{}`, &exchangePeer{})
				tt.life(x)
				after := lasted(x)
				got, _ := errors.AsType[*callTimeoutError](x.finish())
				if diff := cmp.Diff(tt.want, got); diff != "" || after != tt.after ||
					!errors.Is(got, context.DeadlineExceeded) {
					t.Errorf("after %v, want %v: %s", after, tt.after, diff)
				}
			})
		})
	}
}

// TestAServerIsWoken has calls of which nothing is heard: their server is woken once each time, unless it is the
// caller who is waited for.
func TestAServerIsWoken(t *testing.T) {
	for _, tt := range []struct {
		name string
		life func(x *inFlightCall)
		want []int // after so many seconds
	}{
		{"silence", func(*inFlightCall) {}, []int{5}},
		{"progress", func(x *inFlightCall) {
			time.AfterFunc(4*time.Second, func() { x.HandleNotification(mcp.NoteProgress, nil) })
			time.AfterFunc(20*time.Second, func() { x.HandleNotification(mcp.NoteProgress, nil) })
		}, []int{9, 25}},
		{"a question", func(x *inFlightCall) { time.AfterFunc(30*time.Second, x.pauseTimeout()) }, []int{35}},
		{"an end", func(x *inFlightCall) { time.AfterFunc(4*time.Second, func() { _ = x.finish() }) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, s := begin(t, drawbridge.Legacy, `{}`, &exchangePeer{})
				began := time.Now()
				var woken []int
				tick := time.NewTicker(time.Second)
				defer tick.Stop()
				tt.life(x)
				for x.Context().Err() == nil {
					<-tick.C
					synctest.Wait()
					if n := len(s.all()); n > len(woken) {
						woken = append(woken, int(time.Since(began)/time.Second))
					}
				}
				if tt.name != "an end" {
					_ = x.finish()
				}
				if diff := cmp.Diff(tt.want, woken); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestAnEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := begin(t, drawbridge.Legacy, `{}`, nil)
		if err := x.finish(); err != nil || x.Context().Err() == nil {
			t.Errorf("%v, and the context is %v", err, x.Context().Err())
		}
	})
}

func TestWhoHears(t *testing.T) {
	const token = `{"_meta":{"progressToken":"mine"}}`
	for _, tt := range []struct {
		name           string
		era            drawbridge.ProtocolEra
		call           string
		method, params string
		caller, server []string
	}{
		{"progress", drawbridge.Legacy, token, mcp.NoteProgress, `{"progressToken":7,"progress":1}`,
			[]string{`notifications/progress {"progressToken":"mine","progress":1}`}, nil},
		{"progress that nobody asked for", drawbridge.Legacy, `{}`, mcp.NoteProgress, `{"progressToken":7}`, nil, nil},
		{"a log line", drawbridge.Modern, `{}`, mcp.NoteMessage, `{"data":1}`,
			[]string{`notifications/message {"data":1}`}, nil},
		{"lists", drawbridge.Legacy, token, mcp.NoteToolsChanged, `{}`, nil,
			[]string{`notifications/tools/list_changed {}`}},
		{"the end of an elicitation", drawbridge.Legacy, `{}`, mcp.NoteElicitComplete, `{}`,
			[]string{`notifications/elicitation/complete {}`}, nil},
		{"which stateless callers do not know", drawbridge.Modern, `{}`, mcp.NoteElicitComplete, `{}`, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &exchangePeer{}
				x, s := begin(t, tt.era, tt.call, p)
				x.HandleNotification(tt.method, json.RawMessage(tt.params))
				if err := x.finish(); err != nil {
					t.Error(err)
				}
				x.HandleNotification(mcp.NoteMessage, json.RawMessage(`"late"`))
				synctest.Wait()
				if diff := cmp.Diff([][]string{tt.caller, tt.server}, [][]string{p.all(), s.all()}); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestASlowCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &exchangePeer{party{holds: make(chan struct{})}}
		x, _ := begin(t, drawbridge.Legacy, `{}`, p)
		x.HandleNotification(mcp.NoteMessage, nil)
		synctest.Wait() // this one is on its way to the caller
		for range maxQueuedNotifications + 5 {
			x.HandleNotification(mcp.NoteMessage, nil)
		}
		time.AfterFunc(time.Second, func() { close(p.holds) })
		if err := x.finish(); err != nil || len(p.all()) != maxQueuedNotifications+1 {
			t.Errorf("%v, %d notifications, want %d", err, len(p.all()), maxQueuedNotifications+1)
		}
	})
}

func TestQuestions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		thinks time.Duration
		ends   time.Duration // when the call does
		want   string
		after  time.Duration
	}{
		{"answered", 5 * time.Minute, 330 * time.Second, `{"answer":1}`, 5 * time.Minute},
		{"the call ends first", time.Hour, time.Minute, `{"code":-32603,"message":"context canceled"}`, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, _ := begin(t, drawbridge.Legacy, `{}`, &exchangePeer{party{thinks: tt.thinks}})
				ended := make(chan error, 1)
				time.AfterFunc(tt.ends, func() { ended <- x.finish() })
				began := time.Now()
				result, errorObject := x.HandleRequest(t.Context(), mcp.MethodSampling, nil)
				after := time.Since(began)
				if got := string(result) + string(errorObject); got != tt.want || after != tt.after {
					t.Errorf("%s after %v, want %s after %v", got, after, tt.want, tt.after)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
