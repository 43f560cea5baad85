package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A listener is a request that hears, each thing for a while if it is slow, and fails if it is told to.
type listener struct {
	slow  time.Duration
	fails bool

	mu    sync.Mutex
	heard []string
}

func (l *listener) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if l.fails {
		return errors.New("gone")
	}
	select {
	case <-time.After(l.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, string(rawjson.Get(params, "progress"))+rawjson.GetString(params, "data"))
	return nil
}

func (l *listener) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("a stateless caller is asked by results")
}

func (l *listener) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.heard, " ")
}

// told is a call whose request hears, of progress too.
func told(call drawbridge.Call, l *listener) drawbridge.Call {
	call.Peer = l
	call.Params = rawjson.Apply(call.Params, rawjson.Put(json.RawMessage("1"), "_meta", mcp.MetaProgressToken))
	return call
}

func progress(t *testing.T, peer drawbridge.Peer, from, to int) {
	for i := from; i < to; i++ {
		if err := peer.Notify(t.Context(), mcp.NoteProgress, fmt.Appendf(nil, `{"progress":%d}`, i)); err != nil {
			t.Error(err)
		}
	}
}

func numbers(from, to int) string {
	var said []string
	for i := from; i < to; i++ {
		said = append(said, fmt.Sprint(i))
	}
	return strings.Join(said, " ")
}

// TestProgressNeverGoesBack has a server make progress before, while and after its call is parked, faster than
// requests hear.
func TestProgressNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
			progress(t, call.Peer, 0, 1000) // more than may wait: the server does
			work.Go(func() {
				<-time.After(time.Hour / 2) // when no one listens
				progress(t, call.Peer, 1000, 1100)
			})
			_, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
			progress(t, call.Peer, 1100, 1500)
			return `{}`, err
		})
		p, first, second := interop.NewParkedCalls(2*time.Hour, 10), &listener{slow: time.Millisecond},
			&listener{slow: time.Millisecond}
		call := stateless("ada")
		result, err := p.BeginCall(t.Context(), line, told(call, first))
		if err != nil || first.said() != numbers(0, 1000) {
			t.Fatalf("%v, the first request heard %s", err, first.said())
		}
		work.Wait()
		next, handle := again(told(call, second), result, `{"1":{}}`)
		if _, err := p.ResumeCall(t.Context(), "up", "again", handle, next); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(numbers(1000, 1500), second.said()); diff != "" {
			t.Errorf("the second request heard otherwise (-want +got):\n%s", diff)
		}
	})
}

func TestWhatARequestDidNotTakeTheNextOneHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
			progress(t, call.Peer, 0, 3)
			_, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
			return `{}`, err
		})
		p, second := interop.NewParkedCalls(time.Hour, 10), &listener{}
		call := stateless("ada")
		result, err := p.BeginCall(t.Context(), line, told(call, &listener{fails: true}))
		if err != nil {
			t.Fatal(err)
		}
		next, handle := again(told(call, second), result, `{"1":{}}`)
		if _, err := p.ResumeCall(t.Context(), "up", "again", handle, next); err != nil || second.said() != "0 1 2" {
			t.Errorf("%v, the second request heard %s", err, second.said())
		}
	})
}

// TestASlowRequestDoesNotHoldOthersForLong has one block for good: its end ends the call and frees the server.
func TestASlowRequestDoesNotHoldOthersForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freed := make(chan error, 1)
		line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
			var err error
			for err == nil {
				err = call.Peer.Notify(ctx, mcp.NoteProgress, json.RawMessage(`{"progress":1}`))
			}
			freed <- err
			return "", err
		})
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		_, err := interop.NewParkedCalls(time.Hour, 10).BeginCall(ctx, line, told(stateless("ada"),
			&listener{slow: 24 * time.Hour}))
		if !errors.Is(err, context.DeadlineExceeded) || <-freed == nil {
			t.Error(err)
		}
	})
}

func TestWhatAParkedTalkKeeps(t *testing.T) {
	const level = `"info"`
	for name, tt := range map[string]struct {
		level string // that the first request asks for
		note  string
		size  int
		count int
		want  int // how many of them the next request hears
	}{
		"log lines without a request":         {"", mcp.NoteMessage, 10, 5, 0},
		"log lines":                           {level, mcp.NoteMessage, 10, 5, 5},
		"many log lines":                      {level, mcp.NoteMessage, 10, 1000, 256},
		"large log lines":                     {level, mcp.NoteMessage, 100 << 10, 5, 2},
		"a log line that is too large":        {level, mcp.NoteMessage, 300 << 10, 1, 0},
		"progress with more than a few words": {"", mcp.NoteProgress, 100 << 10, 5, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var server drawbridge.Peer
				line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
					server = call.Peer
					_, err := call.Peer.Request(ctx, mcp.MethodRootsList, nil)
					return `{}`, err
				})
				p, second := interop.NewParkedCalls(time.Hour, 10), &listener{}
				call := told(stateless("ada"), &listener{})
				first := call
				if tt.level != "" {
					first.Params = rawjson.Apply(call.Params, rawjson.Put(json.RawMessage(tt.level), "_meta",
						mcp.MetaLogLevel))
				}
				result, err := p.BeginCall(t.Context(), line, first)
				if err != nil {
					t.Fatal(err)
				}
				for range tt.count {
					if err := server.Notify(t.Context(), tt.note, json.RawMessage(`{"level":"info","data":"`+
						strings.Repeat("x", tt.size)+`"}`)); err != nil {
						t.Error(err)
					}
				}
				next, handle := again(told(call, second), result, `{"1":{}}`)
				if _, err := p.ResumeCall(t.Context(), "up", "again", handle, next); err != nil ||
					len(second.heard) != tt.want {
					t.Errorf("%v, of %d the next request heard %d, want %d", err, tt.count, len(second.heard), tt.want)
				}
			})
		})
	}
}

func TestALargeNoteReachesWhoListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := lineTo(t, func(ctx context.Context, call drawbridge.Call) (string, error) {
			for range 3 {
				if err := call.Peer.Notify(ctx, mcp.NoteMessage, json.RawMessage(`{"data":"`+strings.Repeat("x", 1<<20)+
					`"}`)); err != nil {
					return "", err
				}
			}
			return `{}`, nil
		})
		first := &listener{slow: time.Second}
		if _, err := interop.NewParkedCalls(time.Hour, 10).BeginCall(t.Context(), line, told(stateless("ada"),
			first)); err != nil || len(first.heard) != 3 {
			t.Errorf("%v, %d of 3 were heard", err, len(first.heard))
		}
	})
}
