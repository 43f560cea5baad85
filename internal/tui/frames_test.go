package tui

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// maxFrameTime is the bar for the 99th percentile of the time that the program is busy with one frame.
const maxFrameTime = 33 * time.Millisecond

// A bench is a program whose output is dropped.
type bench struct {
	screen *screen
	ended  chan struct{}
	run    *atomic.Int64 // runs that have ended and were shown
}

// openBench shows a session on a terminal that drops its output.
func openBench(t testing.TB, session *agent.Session) *bench {
	t.Helper()
	in, keys := io.Pipe()
	o := Options{Session: session, Dir: t.TempDir(), Terminal: Terminal{In: in, Out: io.Discard, Width: 120, Height: 40,
		Env: []string{"TERM=xterm-256color"}}}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	b := &bench{screen: newScreen(t.Context(), o), ended: make(chan struct{}), run: &atomic.Int64{}}
	go func() {
		defer close(b.ended)
		_ = b.screen.run() // ended by the clean-up
	}()
	t.Cleanup(func() {
		b.screen.cancel()
		_ = keys.Close()
		<-b.ended
	})
	return b
}

// lines is an answer of n lines of different kinds, line by line.
func lines(n int) answer {
	return func(ctx context.Context, on func(drawbridge.ModelDelta)) (drawbridge.ModelResponse, error) {
		for i := range n {
			text := fmt.Sprintf("Line %d has some **bold** words, `code` and more words until it is about as wide as usual.\n", i)
			switch i % 60 {
			case 10:
				text = "\n```go\n"
			case 30:
				text = "```\n\n| a | b |\n|---|---|\n"
			case 40:
				text = "\n"
			}
			if i%60 > 30 && i%60 < 40 {
				text = fmt.Sprintf("| %d | a cell with *words* |\n", i)
			}
			on(drawbridge.ModelDelta{Text: text})
		}
		return response("end"), context.Cause(ctx)
	}
}

// p99 returns the 99th percentile of how long the program was busy while a prompt ran: a message was sent to it again and
// again, as a key would be, and waited until it was free.
func (b *bench) p99(prompt string) time.Duration {
	var busy []time.Duration
	type probe struct{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.screen.model.session.Load().Run(b.screen.ctx, []drawbridge.MessagePart{{Text: prompt}}, b.screen.model.push)
	}()
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-pause.C:
		}
		began := time.Now()
		b.screen.tea.Send(probe{})
		busy = append(busy, time.Since(began))
	}
	slices.Sort(busy)
	return busy[len(busy)*99/100]
}

// turn pushes the events of a turn with a call.
func (b *bench) turn(i int) {
	c := drawbridge.ToolCall{ID: fmt.Sprint(i), Name: "bash", Arguments: []byte(`{"command":"ls"}`)}
	for _, e := range []agent.Event{
		{Kind: agent.RunStarted}, {Kind: agent.TextDelta, Text: fmt.Sprintf("Turn %d looks at *things*.\n\nAnd more.", i)},
		{Kind: agent.TurnFinished}, {Kind: agent.ToolStarted, Call: &c},
		{Kind: agent.ToolFinished, Call: &c, Result: &drawbridge.ToolResult{Text: strings.Repeat("result\n", 500)}},
		{Kind: agent.RunFinished, Outcome: agent.Completed},
	} {
		b.screen.events.push(shownEvent{Event: e})
	}
}

// drain waits until all events are shown and all lines are printed.
func (b *bench) drain() {
	for {
		b.screen.tea.Send(eventsMsg{})
		b.screen.events.mu.Lock()
		waiting := len(b.screen.events.waiting)
		b.screen.events.mu.Unlock()
		b.screen.lines.mu.Lock()
		waiting += len(b.screen.lines.lines)
		b.screen.lines.mu.Unlock()
		if waiting == 0 {
			return
		}
		runtime.Gosched()
	}
}

// frameTimes returns the p99 of an answer with n lines, without a transcript and after some turns.
func frameTimes(t *testing.T, n, turns int) (empty, full time.Duration) {
	t.Helper()
	b := openBench(t, newSession(t, &script{answers: []answer{lines(n), lines(n)}}, nil))
	empty = b.p99("first")
	b.drain()
	for i := range turns {
		b.turn(i)
	}
	b.drain()
	return empty, b.p99("second")
}

func TestFrames(t *testing.T) {
	var empty, full time.Duration
	for range 5 { // other programs may use the machine
		if empty, full = frameTimes(t, 1000, 500); max(empty, full) <= slowdown*maxFrameTime {
			break
		}
	}
	t.Logf("p99 %v, after 500 turns %v", empty, full)
	if max(empty, full) > slowdown*maxFrameTime {
		t.Errorf("the p99 of a frame is %v, after 500 turns %v, want at most %v", empty, full, slowdown*maxFrameTime)
	}
}

func TestMemoryIsFlat(t *testing.T) {
	b := openBench(t, newSession(t, &script{}, nil))
	heap := func() int64 {
		b.drain()
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	turns := func(n int) {
		for i := range n {
			b.turn(i)
		}
	}
	turns(200)
	before := heap()
	turns(1000)
	after := heap()
	t.Logf("heap %d, after 1,000 turns %d", before, after)
	if grown := after - before; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes in 1,000 turns", grown)
	}
}

var _ tea.Model = (*model)(nil)
