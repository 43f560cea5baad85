package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

const mib = 1 << 20

// fill adds n bytes to a buffer in pieces.
func fill(a *mcp.AnswerBuffer, n int) error {
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	for n > 0 {
		k := min(n, len(piece))
		if err := a.Append(piece[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// bounded fails the test if more is held than the limit.
func bounded(t *testing.T, b *mcp.AnswerBudget, limit int64) {
	t.Helper()
	if held := b.Held(); held > limit {
		t.Errorf("%d bytes are held, want at most %d", held, limit)
	}
}

// TestAnswerBuffer has messages of every size come out as they went in, with and without a budget and a known length.
func TestAnswerBuffer(t *testing.T) {
	for _, size := range []int{0, 1, 1023, 64 << 10, 64<<10 + 1, 256 << 10, mib, 3*mib + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7 / 3)
		}
		for name, budget := range map[string]*mcp.AnswerBudget{"none": nil, "16 MiB": mcp.NewAnswerBudget(16 * mib)} {
			for _, expected := range []int{0, size, size / 2, 2 * size} {
				a := mcp.NewAnswerBuffer(t.Context(), budget, 0)
				a.Expect(expected)
				for rest := want; len(rest) > 0; {
					space, err := a.Space()
					if err != nil {
						t.Fatal(err)
					}
					n := copy(space, rest)
					a.Commit(n)
					rest = rest[n:]
				}
				got, err := a.Bytes()
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes, %d expected, budget %s: %d bytes came out, %v", size, expected, name, len(got), err)
				}
				if a.Len() != 0 {
					t.Errorf("%d bytes: the buffer has %d afterwards", size, a.Len())
				}
			}
		}
	}
}

func TestSmallAnswersAreNotCounted(t *testing.T) {
	b := mcp.NewAnswerBudget(mib)
	for range 100 {
		a := mcp.NewAnswerBuffer(t.Context(), b, 0)
		if err := fill(a, 64<<10); err != nil {
			t.Fatal(err)
		}
		bounded(t, b, 0)
	}
}

func TestAnswerOverTheBudget(t *testing.T) {
	b := mcp.NewAnswerBudget(2 * mib)
	for name, size := range map[string]int{"more than all": 3 * mib, "no room for the whole of it": 2*mib - 1} {
		a := mcp.NewAnswerBuffer(t.Context(), b, 0)
		err := fill(a, size)
		if err == nil {
			_, err = a.Bytes()
		}
		refused, ok := errors.AsType[*mcp.NoRoomError](err)
		if !ok || !refused.Alone || refused.FaultCode() != drawbridge.ServerError ||
			!strings.Contains(err.Error(), mcp.AnswersInFlightSetting) {
			t.Errorf("%s: %v, want a refusal that names the setting", name, err)
		}
	}
	a := mcp.NewAnswerBuffer(t.Context(), b, 0)
	if err := fill(a, mib/2); err != nil {
		t.Errorf("after them: %v", err)
	}
	a.Drop()
}

// TestAnswerWaitsForRoom has an answer that finds room when the one before it is dropped.
func TestAnswerWaitsForRoom(t *testing.T) {
	b := mcp.NewAnswerBudget(4 * mib)
	first := mcp.NewAnswerBuffer(t.Context(), b, 0)
	if err := fill(first, 3*mib); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		second := mcp.NewAnswerBuffer(t.Context(), b, 0)
		err := fill(second, 2*mib-64<<10)
		if err == nil {
			_, err = second.Bytes()
		}
		waited <- err
	}()
	for b.Waiting() == 0 {
		select {
		case err := <-waited:
			t.Fatalf("an answer without room did not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	first.Drop()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	bounded(t, b, 4*mib)
}

// TestAnswerWaitsInVain ends with the context, or with the patience of a stream.
func TestAnswerWaitsInVain(t *testing.T) {
	b := mcp.NewAnswerBudget(4 * mib)
	first := mcp.NewAnswerBuffer(t.Context(), b, 0)
	if err := fill(first, 3*mib); err != nil {
		t.Fatal(err)
	}
	defer first.Drop()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for name, a := range map[string]*mcp.AnswerBuffer{
		"the context":  mcp.NewAnswerBuffer(short, b, 0),
		"the patience": mcp.NewAnswerBuffer(t.Context(), b, 20*time.Millisecond),
	} {
		err := fill(a, 2*mib)
		refused, ok := errors.AsType[*mcp.NoRoomError](err)
		if !ok || refused.Alone || refused.FaultCode() != drawbridge.RateLimited || !errors.Is(err, mcp.ErrTooLong) ||
			!strings.Contains(err.Error(), mcp.AnswersInFlightSetting) {
			t.Errorf("%s: %v, want a *NoRoomError that names the setting", name, err)
		}
	}
}

// TestUsedMemoryCounts has an answer that is complete count until nobody uses it any more.
func TestUsedMemoryCounts(t *testing.T) {
	b := mcp.NewAnswerBudget(4 * mib)
	for n := range 20 {
		a := mcp.NewAnswerBuffer(t.Context(), b, 0)
		a.Expect(mib)
		if err := fill(a, mib); err != nil {
			t.Fatalf("answer %d, though the ones before it are not used: %v", n, err)
		}
		if data, err := a.Bytes(); err != nil || len(data) != mib {
			t.Fatal(len(data), err)
		}
		bounded(t, b, 4*mib)
	}
	var kept [][]byte
	for {
		a := mcp.NewAnswerBuffer(t.Context(), b, 100*time.Millisecond)
		a.Expect(mib)
		if err := fill(a, mib); err != nil {
			if mcp.IsNoRoom(err) {
				break
			}
			t.Fatal(err)
		}
		data, err := a.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if kept = append(kept, data); len(kept) > 4 {
			t.Fatal("more answers are in use than the budget allows")
		}
	}
	if len(kept) < 2 {
		t.Errorf("%d answers of 1 MiB were in use at once, want 2 or 3", len(kept))
	}
}

// TestAnswersDoNotBlockEachOther has answers that together need far more than there is. Each of them could pass alone;
// at least the one that began first does, and the others pass or are told.
func TestAnswersDoNotBlockEachOther(t *testing.T) {
	for _, size := range []int{mib, 2 * mib, 3*mib + mib/2} {
		b := mcp.NewAnswerBudget(8 * mib)
		var mu sync.Mutex
		passed, refused := 0, 0
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				a := mcp.NewAnswerBuffer(t.Context(), b, 0)
				err := fill(a, size)
				if err == nil {
					_, err = a.Bytes()
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					passed++
				case mcp.IsNoRoom(err):
					refused++
				default:
					t.Error(err)
				}
				bounded(t, b, 8*mib)
			})
		}
		work.Wait()
		if passed == 0 || passed+refused != 8 {
			t.Errorf("answers of %d bytes: %d passed and %d were refused", size, passed, refused)
		}
		if size <= 2*mib && refused > 0 { // half of the budget is kept for the first one, which is enough
			t.Errorf("answers of %d bytes: %d were refused", size, refused)
		}
	}
}

// TestReadersUseTheBudget has a line and an event without room: they are refused, and the next ones are read.
func TestReadersUseTheBudget(t *testing.T) {
	long := `{"x":"` + strings.Repeat("y", 3*mib) + `"}`
	b := mcp.NewAnswerBudget(2 * mib)
	lines := mcp.NewLineReader(strings.NewReader(long+"\n{}\n"), 0)
	lines.UseBudget(t.Context(), b, time.Second)
	_, err := lines.Next()
	next, after := lines.Next()
	if !mcp.IsNoRoom(err) || after != nil || string(next) != "{}" {
		t.Errorf("lines: %v, then %q, %v", err, next, after)
	}
	events := mcp.NewSSEReader(strings.NewReader("data: "+long+"\nid: 3\n\n: z\ndata: {}\n\n"), 0)
	events.UseBudget(t.Context(), b, time.Second)
	_, err = events.Next()
	e, after := events.Next()
	if !mcp.IsNoRoom(err) || after != nil || string(e.Data) != "{}" || e.ID != "" {
		t.Errorf("events: %v, then %+v, %v", err, e, after)
	}
	if _, err := events.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestLongCommentsTakeNoMemory has comments and fields that nobody needs, each longer than the budget.
func TestLongCommentsTakeNoMemory(t *testing.T) {
	b := mcp.NewAnswerBudget(mib)
	waste := strings.Repeat("z", 2*mib)
	events := mcp.NewSSEReader(strings.NewReader(":"+waste+"\nother: "+waste+"\ndata: {}\n\n"), 0)
	events.UseBudget(t.Context(), b, 0)
	e, err := events.Next()
	if err != nil || string(e.Data) != "{}" {
		t.Errorf("%q, %v", e.Data, err)
	}
	bounded(t, b, 0)
}
