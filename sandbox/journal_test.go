package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A memoryJournal keeps entries in memory. fails has Append return an error once it has so many entries.
type memoryJournal struct {
	mu      sync.Mutex
	entries [][]byte
	appends int
	fails   int
}

func (j *memoryJournal) Append(_ context.Context, entries ...[]byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.appends++; j.fails > 0 && j.appends >= j.fails {
		return errors.New("the disk is full")
	}
	j.entries = append(j.entries, entries...)
	return nil
}

// An askingHost is a host whose calls of "ask" wait for a person. It counts what was sent.
type askingHost struct {
	mu      sync.Mutex
	sent    []string
	reads   int
	pending map[string]ToolCall
	// crashAt ends the run, as the end of the program does, before the person has answered the nth question, or after so
	// many calls were sent. crash ends it.
	crashAsked, crashSent int
	asked                 int
	crash                 func()
}

func (h *askingHost) Call(ctx context.Context, c ToolCall) Reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Name == "ask" {
		id := "host-" + strconv.Itoa(len(h.pending))
		h.pending[id] = c
		return Reply{Pending: id, Tool: "ask"}
	}
	if c.Name == "read" {
		h.reads++
		return Reply{Result: fmt.Appendf(nil, `{"structuredContent":{"read":%d}}`, h.reads)}
	}
	return h.send(c)
}

// send sends a call. The effect takes place before the program ends.
func (h *askingHost) send(c ToolCall) Reply {
	h.sent = append(h.sent, string(c.Arguments))
	if len(h.sent) == h.crashSent {
		h.crash()
	}
	return Reply{Result: json.RawMessage(`{"structuredContent":` + string(c.Arguments) + `}`)}
}

func (h *askingHost) Flush(ctx context.Context, ids []string, batch Batch) []Reply {
	defer batch.Pause()()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked++; h.asked == h.crashAsked {
		h.crash()
	}
	replies := make([]Reply, len(ids))
	for i, id := range ids {
		if ctx.Err() != nil {
			replies[i] = Reply{Err: errors.New("the run has ended")}
			continue
		}
		replies[i] = batch.Send(ctx, id, func() Reply { return h.send(h.pending[id]) })
	}
	return replies
}

// repeatingScript asks twice, and prints what differs between runs: the time, random numbers and what it read.
const repeatingScript = `
import random, time, secrets, datetime
first = time.time(), time.perf_counter(), random.random(), secrets.token_hex(4), datetime.datetime.now().isoformat()
read = tools.read()["read"]
tools.write(n=0)
a, b = tools.ask(n=1), tools.ask(n=2)
print(a["n"] + b["n"])
time.sleep(0.02)
tools.write(n=3)
middle = time.monotonic(), random.random(), tools.read()["read"]
[tools.ask(n=i) for i in (4, 5)]
print(first, read, middle, time.monotonic() >= middle[0], time.time() >= first[0])
`

// interrupt runs the script until the crash, and then repeats it until it ends without one. It returns the last outcome.
func interrupt(t *testing.T, s *Sandbox, code string, h *askingHost, j *memoryJournal) Outcome {
	t.Helper()
	h.pending = map[string]ToolCall{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.crash = cancel
	o, err := s.Run(ctx, Script{Code: code, Journal: j}, h)
	if err == nil {
		return o
	}
	h.crashAsked, h.crashSent, h.asked, h.pending = 0, 0, 0, map[string]ToolCall{}
	if o, err = s.Run(t.Context(), Script{Code: code, Journal: j, Entries: slices.Clone(j.entries)}, h); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestARunIsRepeatedWithoutDoubledEffects(t *testing.T) {
	eachMode(t, Options{}, testARunIsRepeatedWithoutDoubledEffects)
}

func testARunIsRepeatedWithoutDoubledEffects(t *testing.T, s *Sandbox) {
	for name, h := range map[string]*askingHost{
		"while the first question is asked":  {crashAsked: 1},
		"while the second question is asked": {crashAsked: 2},
		"after the last call":                {crashSent: 99},
	} {
		t.Run(name, func(t *testing.T) {
			o := interrupt(t, s, repeatingScript, h, &memoryJournal{})
			if o.Error != nil || !strings.HasPrefix(o.Stdout, "3\n") || !strings.HasSuffix(o.Stdout, "True True\n") {
				t.Errorf("%s, %+v", o.Stdout, o.Error)
			}
			want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`}
			if !slices.Equal(h.sent, want) {
				t.Errorf("sent %s, want %s", h.sent, want)
			}
			if h.reads != 2 {
				t.Errorf("%d reads, want 2", h.reads)
			}
		})
	}
}

func TestAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	eachMode(t, Options{}, testAnUnknownOutcomeIsNotRepeated)
}

func testAnUnknownOutcomeIsNotRepeated(t *testing.T, s *Sandbox) {
	for name, tt := range map[string]struct {
		crashSent int
		want      string
	}{
		"a call that was approved": {2, "ask (line 5): the call was sent, and the run was interrupted before its result"},
		"a call that needs no one": {4, "write (line 8): the call was sent, and the run was interrupted before its result"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &askingHost{crashSent: tt.crashSent}
			o := interrupt(t, s, strings.TrimPrefix(repeatingScript, "\n"), h, &memoryJournal{})
			if o.Error == nil || !strings.Contains(o.Error.Message, tt.want) {
				t.Errorf("%+v", o.Error)
			}
			counts := map[string]int{}
			for _, sent := range h.sent {
				if counts[sent]++; counts[sent] > 1 {
					t.Errorf("%s was sent twice", sent)
				}
			}
		})
	}
}

func TestARepeatedRunHasTheSameClockAndRandomNumbers(t *testing.T) {
	eachMode(t, Options{}, testARepeatedRunHasTheSameClockAndRandomNumbers)
}

func testARepeatedRunHasTheSameClockAndRandomNumbers(t *testing.T, s *Sandbox) {
	j := &memoryJournal{}
	h := &askingHost{crashAsked: 2}
	h.pending = map[string]ToolCall{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.crash = cancel
	code := repeatingScript + "tools.note(first=first, middle=middle)\n"
	if _, err := s.Run(ctx, Script{Code: code, Journal: j}, h); err == nil {
		t.Fatal("the run was not interrupted")
	}
	var printed []string
	for range 2 {
		h := &askingHost{pending: map[string]ToolCall{}}
		o, err := s.Run(t.Context(), Script{Code: code, Journal: &memoryJournal{}, Entries: j.entries}, h)
		if err != nil || o.Error != nil {
			t.Fatal(err, o.Error)
		}
		printed = append(printed, o.Stdout+h.sent[len(h.sent)-1])
	}
	if printed[0] != printed[1] {
		t.Errorf("the repeated runs differ:\n%s\n%s", printed[0], printed[1])
	}
}

func TestAScriptThatTakesAnotherWayIsEnded(t *testing.T) {
	eachMode(t, Options{}, testAScriptThatTakesAnotherWayIsEnded)
}

func testAScriptThatTakesAnotherWayIsEnded(t *testing.T, s *Sandbox) {
	j := &memoryJournal{}
	h := &askingHost{pending: map[string]ToolCall{}, crashAsked: 1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.crash = cancel
	if _, err := s.Run(ctx, Script{Code: "tools.write(n=1)\nprint(tools.ask(n=2))", Journal: j}, h); err == nil {
		t.Fatal("the run was not interrupted")
	}
	h = &askingHost{pending: map[string]ToolCall{}}
	o, err := s.Run(t.Context(), Script{Code: "tools.write(n=7)\nprint(tools.ask(n=2))", Journal: j, Entries: j.entries}, h)
	if err != nil || o.Limit != "journal" || !strings.Contains(o.Error.Message, "did not make the same calls as before") {
		t.Errorf("%+v, %v", o, err)
	}
	if len(h.sent) > 0 {
		t.Errorf("sent %s", h.sent)
	}
}

func TestWithoutAJournalEntryNothingIsSent(t *testing.T) {
	s := openTest(t, Options{})
	h := &askingHost{pending: map[string]ToolCall{}}
	o, err := s.Run(t.Context(), Script{Code: "print(tools.ask(n=2))", Journal: &memoryJournal{fails: 2}}, h)
	if err != nil || o.Error == nil || !strings.Contains(o.Error.Message, "the disk is full") || len(h.sent) > 0 {
		t.Errorf("%+v, %v, sent %s", o.Error, err, h.sent)
	}
	h = &askingHost{pending: map[string]ToolCall{}}
	o, err = s.Run(t.Context(), Script{Code: "print(tools.ask(n=2))", Journal: &memoryJournal{fails: 1}}, h)
	if err != nil || o.Error != nil || len(h.sent) != 1 {
		t.Errorf("a run whose journal cannot be begun: %+v, %v, sent %s", o.Error, err, h.sent)
	}
}

func TestARunThatReadsTheClockTooOftenIsNotRepeated(t *testing.T) {
	s := openTest(t, Options{})
	h := &askingHost{pending: map[string]ToolCall{}}
	j := &memoryJournal{}
	code := "import time\nprint(tools.ask(n=1))\nfor i in range(%d): time.perf_counter_ns()\nprint(tools.ask(n=2))"
	o, err := s.Run(t.Context(), Script{Code: fmt.Sprintf(code, maxClock), Journal: j}, h)
	if err != nil || o.Error != nil || len(h.sent) != 2 {
		t.Fatalf("%+v, %v, sent %s", o.Error, err, h.sent)
	}
	if _, err := s.Run(t.Context(), Script{Code: code, Journal: j, Entries: j.entries}, h); !errors.Is(err, ErrUnrepeatable) {
		t.Errorf("%v", err)
	}
}

// TestARefusedCallStaysRefused has a call that was not made because of the size of the results before it: it is not made in
// the repeated run either.
func TestARefusedCallStaysRefused(t *testing.T) {
	j := &memoryJournal{}
	h := &askingHost{pending: map[string]ToolCall{}}
	answer := func(entries [][]byte, fits bool) scriptReply {
		record, err := newRecorder(Script{Journal: j, Entries: entries})
		if err != nil {
			t.Fatal(err)
		}
		r := &requests{host: h, limits: Limits{}.WithDefaults(), recorder: record, pending: map[string]string{}}
		reply := r.call(t.Context(), ToolCall{Name: "write"}, 1, func() bool { return fits })
		record.begin(t.Context())
		return reply
	}
	if reply := answer(nil, false); reply.Error == nil || len(h.sent) > 0 {
		t.Errorf("the first run: %+v, sent %s", reply, h.sent)
	}
	if reply := answer(j.entries, true); reply.Error == nil || len(h.sent) > 0 {
		t.Errorf("the repeated run: %+v, sent %s", reply, h.sent)
	}
}
