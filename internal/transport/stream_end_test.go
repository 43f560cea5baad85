package transport_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// TestStreamEnds goes through the ways in which a connection ends, and what a call learns of it.
func TestStreamEnds(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, tt := range []struct {
		name  string
		end   func(*transport.StreamConn, *peer)
		cause error
	}{
		{"the server goes away", func(_ *transport.StreamConn, p *peer) { _ = p.out.Close() }, io.EOF},
		{"reading breaks", func(_ *transport.StreamConn, p *peer) { _ = p.out.CloseWithError(broken) }, broken},
		{"writing breaks", func(s *transport.StreamConn, p *peer) {
			_ = p.r.CloseWithError(broken)
			_ = s.Notify(context.Background(), "notifications/x", nil)
		}, broken},
		{"closed", func(s *transport.StreamConn, _ *peer) { _ = s.Close(context.Background()) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, p := connect(t, transport.StreamConnOptions{})
			got := start(t.Context(), s, "tools/call", "{}", nil)
			p.read()
			if err := s.Err(); err != nil {
				t.Errorf("before: %v", err)
			}
			tt.end(s, p)
			if r := <-got; !errors.Is(r.Err, transport.ErrLost) || !errors.Is(r.Err, tt.cause) && tt.cause != nil {
				t.Errorf("the call got %v, want ErrLost and %v", r.Err, tt.cause)
			}
			<-s.Done()
			if err := s.Err(); !errors.Is(err, tt.cause) {
				t.Errorf("Err = %v, want %v", err, tt.cause)
			}
			if _, err := s.Call(t.Context(), "ping", nil, nil); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Do afterwards: %v", err)
			}
			if err := s.Notify(t.Context(), "x", nil); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Notify afterwards: %v", err)
			}
		})
	}
}

// TestStreamUnsent shows that a call which never left says so: it may be repeated.
func TestStreamUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := connect(t, transport.StreamConnOptions{})
		first := start(t.Context(), s, "tools/call", "{}", nil) // its writing blocks: nobody reads
		synctest.Wait()
		second := start(t.Context(), s, "tools/call", "{}", nil)
		synctest.Wait()
		_ = p.out.Close()
		if r := <-first; !errors.Is(r.Err, transport.ErrLost) {
			t.Errorf("the first got %v, want ErrLost", r.Err)
		}
		if r := <-second; !errors.Is(r.Err, transport.ErrClosed) || errors.Is(r.Err, transport.ErrLost) {
			t.Errorf("the second got %v, want ErrClosed", r.Err)
		}
	})
}

// TestStreamCloseIsBounded has a connection that does not go away.
func TestStreamCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := transport.NewStreamConn(t.Context(), transport.StreamConnOptions{
			Send:    func(context.Context, []byte) error { return nil },
			Receive: func() ([]byte, error) { <-release; return nil, io.EOF },
			Close:   func(context.Context) error { return nil },
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(release)
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("then %v", err)
		}
	})
}
