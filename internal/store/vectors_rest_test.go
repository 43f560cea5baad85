package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// A moody place fails as it is told, and counts how often it was asked.
type moody struct {
	vectorBackend
	err   error
	asked int
	// hold keeps an answer back until it is closed.
	hold chan struct{}
}

func (m *moody) Nearest(ctx context.Context, _ string, _ []float32, _ int,
	_ []index.TextKey) ([]index.Neighbor, error) {
	m.asked++
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, m.err
}

// TestAPlaceRests sees that one which does not answer is left alone for a while, that one asks for all after it, and
// that it works again at once when it answers; and that no other error has it rest.
func TestAPlaceRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moody{err: errors.New("away")}
		code := drawbridge.Transient
		v := &VectorStore{name: "x", backend: m, searchTimeout: time.Second, retryPause: vectorRetryPause,
			fault: func(error) (drawbridge.FaultCode, string) { return code, "" }}
		ask := func(ctx context.Context, want string, asked int) {
			t.Helper()
			_, err := v.Nearest(ctx, "m", []float32{1}, 1, []index.TextKey{{}})
			if got := ""; err != nil && err.Error() != want || err == nil && want != got || m.asked != asked {
				t.Errorf("%v after it was asked %d times, want %s after %d", err, m.asked, want, asked)
			}
		}
		const away = "vector store x: find the nearest vectors: away"
		start := time.Now()
		ask(t.Context(), away, 1)
		ask(t.Context(), away, 1)
		<-time.After(vectorRetryPause)
		ask(t.Context(), away, 2)
		ask(t.Context(), away, 2)

		// While one asks after the rest, others do not wait with it.
		<-time.After(vectorRetryPause)
		m.hold = make(chan struct{})
		go ask(t.Context(),
			"vector store x: find the nearest vectors: no answer within 1s (see that the server runs and can be reached)", 3)
		synctest.Wait()
		ask(t.Context(), away, 3)
		<-time.After(time.Second)
		synctest.Wait()

		<-time.After(vectorRetryPause)
		m.hold, m.err = nil, nil
		ask(t.Context(), "", 4)
		ask(t.Context(), "", 5)
		m.err, code = errors.New("wrong"), drawbridge.InvalidInput
		ask(t.Context(), "vector store x: find the nearest vectors: wrong", 6)
		ask(t.Context(), "vector store x: find the nearest vectors: wrong", 7)

		// Who gave up says nothing of the place.
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		m.hold = make(chan struct{})
		ask(gone, "vector store x: find the nearest vectors: context canceled", 8)
		m.hold, m.err = nil, nil
		ask(t.Context(), "", 9)
		if took := time.Since(start); took != 3*vectorRetryPause+time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
