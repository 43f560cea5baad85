package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxJournal is the maximum size of the entries that a run keeps in memory until it waits for a person. A run with
	// more cannot be repeated.
	maxJournal = 32 << 20
	// maxClock is the maximum size of the recorded readings of the clock of a run.
	maxClock = 1 << 20
	// seedSize is the size of the seed of the random numbers of a run.
	seedSize = 32
)

// A Journal keeps the entries of a run, so that the run can be repeated from its start if the program ends while a
// person is asked: see [Script.Entries].
type Journal interface {
	// Append adds entries. They must be durable when it returns. The first call has all entries from the start of the
	// run. It is made when the run waits for a person; a run that never waits has no entries. After an error of the
	// first call the run goes on without a journal; after an error of a later call the run makes no more calls.
	Append(ctx context.Context, entries ...[]byte) error
}

// ErrUnrepeatable is the error of a recorded run that cannot be repeated.
var ErrUnrepeatable = errors.New("sandbox: the run cannot be repeated: it read the clock or changed too much")

// The kinds of entries.
const (
	startEntry    = "start"    // Seed
	requestEntry  = "request"  // Number of the request, Digest, Clock
	foundEntry    = "found"    // Number of the request, Reply: the answer to a question about the tools
	callEntry     = "call"     // Number of the call: it is sent now, or waits for a person
	replyEntry    = "reply"    // Number of the call, Reply
	approvedEntry = "approved" // Number of the call: it waited, and is sent now
	outcomeEntry  = "outcome"  // Number of the call, Reply
	lostEntry     = "lost"     // the run cannot be repeated
)

// A journalEntry is one entry of a [Journal]. Clock has the readings of the clock since the request before.
type journalEntry struct {
	Kind   string          `json:"kind"`
	Number int             `json:"number,omitempty"`
	Digest []byte          `json:"digest,omitempty"`
	Clock  []byte          `json:"clock,omitempty"`
	Seed   []byte          `json:"seed,omitempty"`
	Reply  json.RawMessage `json:"reply,omitempty"`
	// given is the reply to a call; it becomes Reply when the entry is written.
	given *scriptReply
}

// encode returns the entry as it is in the journal.
func (e journalEntry) encode() (text []byte, err error) {
	if e.given != nil {
		if e.Reply, err = json.Marshal(e.given); err != nil {
			return nil, err
		}
	}
	return json.Marshal(e)
}

// A recordedCall is what the journal has about a call.
type recordedCall struct {
	// called reports that the call was sent, or waited; reply is what the script got. approved reports that a call that
	// waited was sent; outcome is its result.
	called, approved bool
	reply, outcome   *scriptReply
}

// A recorder records a run in a journal, and answers the requests of a repeated run from it. The nil recorder records
// nothing. It is safe for concurrent use.
type recorder struct {
	journal Journal
	seed    []byte
	// clock are the recorded readings of the clock of a repeated run.
	clock []byte

	mu sync.Mutex
	// live reports that the journal has all entries, and gets each new one. kept are the entries before that, and size
	// is the size of their replies.
	live bool
	kept []journalEntry
	size int
	// lost reports that the run cannot be repeated.
	lost bool
	// requests is the number of requests so far. digests, found and calls are those of the repeated run.
	requests int
	digests  [][]byte
	found    map[int]json.RawMessage
	calls    map[int]recordedCall
}

// newRecorder returns the recorder of a script; nil if the script has no journal.
func newRecorder(script Script) (*recorder, error) {
	if script.Journal == nil {
		return nil, nil
	}
	r := &recorder{journal: script.Journal, found: map[int]json.RawMessage{}, calls: map[int]recordedCall{}}
	if script.Entries != nil {
		r.live = true
		return r, r.read(script.Entries)
	}
	r.seed = make([]byte, seedSize)
	rand.Read(r.seed) // never fails
	r.kept = []journalEntry{{Kind: startEntry, Seed: r.seed}}
	return r, nil
}

// read reads the entries of the run that is repeated.
func (r *recorder) read(entries [][]byte) error {
	for _, text := range entries {
		var e journalEntry
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("sandbox: read the journal: %w", err)
		}
		c := r.calls[e.Number]
		switch e.Kind {
		case startEntry:
			r.seed = e.Seed
		case requestEntry:
			r.digests, r.clock = append(r.digests, e.Digest), append(r.clock, e.Clock...)
		case foundEntry:
			r.found[e.Number] = e.Reply
		case callEntry:
			r.calls[e.Number] = recordedCall{called: true}
		case replyEntry:
			c.reply = decodeReply(e.Reply)
			r.calls[e.Number] = c
		case approvedEntry:
			c.approved = true
			r.calls[e.Number] = c
		case outcomeEntry:
			c.outcome = decodeReply(e.Reply)
			r.calls[e.Number] = c
		default:
			return ErrUnrepeatable
		}
	}
	if len(r.seed) != seedSize {
		return errors.New("sandbox: read the journal: it has no start")
	}
	return nil
}

// decodeReply returns a recorded reply; an error in its place if it cannot be read.
func decodeReply(text json.RawMessage) *scriptReply {
	var reply scriptReply
	if err := json.Unmarshal(text, &reply); err != nil {
		reply = replyTo(Reply{Err: errors.New("the recorded result cannot be read")})
	}
	return &reply
}

// add adds entries.
func (r *recorder) add(ctx context.Context, entries ...journalEntry) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost {
		return nil
	}
	for _, e := range entries {
		r.kept, r.size = append(r.kept, e), r.size+len(e.Reply)+len(e.Clock)
		if e.given != nil {
			r.size += len(e.given.Result)
		}
	}
	if !r.live {
		if r.size > maxJournal {
			r.kept, r.lost = nil, true
		}
		return nil
	}
	return r.write(ctx)
}

// write appends the kept entries to the journal.
func (r *recorder) write(ctx context.Context) error {
	if len(r.kept) == 0 {
		return nil
	}
	entries := make([][]byte, len(r.kept))
	for i, e := range r.kept {
		var err error
		if entries[i], err = e.encode(); err != nil {
			return fmt.Errorf("record the run: %w", err)
		}
	}
	// A call must not be sent without its entry, and the entry of its result must not be lost with the caller.
	err := r.journal.Append(context.WithoutCancel(ctx), entries...)
	r.kept, r.size = nil, 0
	if err != nil {
		return fmt.Errorf("record the run: %w", err)
	}
	return nil
}

// begin writes all entries to the journal, and has each later one written at once. It is called before a person is
// asked.
func (r *recorder) begin(ctx context.Context) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live || r.lost {
		return
	}
	r.live = true
	if err := r.write(ctx); err != nil {
		r.lost = true
	}
}

// request records the next request of the script, with the readings of the clock before it. For a request of a repeated
// run it returns an error if the script asks for something else than before.
func (r *recorder) request(ctx context.Context, request, clock []byte) (number int, err error) {
	if r == nil {
		return 0, nil
	}
	digest := sha256.Sum256(request)
	r.mu.Lock()
	number = r.requests
	r.requests++
	repeated := number < len(r.digests)
	r.mu.Unlock()
	switch {
	case !repeated:
		return number, r.add(ctx, journalEntry{Kind: requestEntry, Number: number, Digest: digest[:], Clock: clock})
	case bytes.Equal(r.digests[number], digest[:]):
		return number, nil
	}
	return number, &differentError{text: safetext.Truncate(string(request), 200, safetext.Bytes, "…")}
}

// A differentError is the error of a repeated script that asks for something else than it did before.
type differentError struct{ text string }

func (e *differentError) Error() string {
	return "the run was repeated after an interruption, and the script did not make the same calls as before: " + e.text
}

// lose has the run never repeated.
func (r *recorder) lose(ctx context.Context) error {
	if r == nil {
		return nil
	}
	err := r.add(ctx, journalEntry{Kind: lostEntry})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.kept = true, nil
	return err
}

// look answers a question about the tools: from the journal, or by ask.
func (r *recorder) look(ctx context.Context, number int, ask func() []byte) []byte {
	if r == nil {
		return ask()
	}
	if reply, ok := r.found[number]; ok {
		return reply
	}
	reply := ask()
	if err := r.add(ctx, journalEntry{Kind: foundEntry, Number: number, Reply: reply}); err != nil {
		return encodeError(err)
	}
	return reply
}

// repeated returns the recorded reply to a call; ok is false for a call that must be sent.
func (r *recorder) repeated(number int) (reply scriptReply, ok bool) {
	if r == nil {
		return scriptReply{}, false
	}
	switch c := r.calls[number]; {
	case !c.called:
	case c.reply == nil:
		return replyTo(Reply{Err: errOutcomeUnknown}), true
	case c.reply.Pending == "" || c.approved:
		return *c.reply, true
	}
	return scriptReply{}, false
}

// call answers a call that was not made before.
func (r *recorder) call(ctx context.Context, number int, send func() scriptReply) scriptReply {
	if r == nil {
		return send()
	}
	return r.recordCall(ctx, number, callEntry, replyEntry, send)
}

// approved answers a call that waited for a person: from the journal, or by send.
func (r *recorder) approved(ctx context.Context, number int, send func() scriptReply) scriptReply {
	if r == nil {
		return send()
	}
	if reply, ok := r.outcome(number); ok {
		return reply
	}
	return r.recordCall(ctx, number, approvedEntry, outcomeEntry, send)
}

// outcome returns the recorded result of a call that waited, if it was sent.
func (r *recorder) outcome(number int) (scriptReply, bool) {
	if r == nil {
		return scriptReply{}, false
	}
	switch c := r.calls[number]; {
	case c.outcome != nil:
		return *c.outcome, true
	case c.approved:
		return replyTo(Reply{Err: errOutcomeUnknown}), true
	}
	return scriptReply{}, false
}

// recordCall records a call before and after it is sent.
func (r *recorder) recordCall(ctx context.Context, number int, before, after string, send func() scriptReply) scriptReply {
	if err := r.add(ctx, journalEntry{Kind: before, Number: number}); err != nil {
		return replyTo(Reply{Err: err})
	}
	reply := send()
	if ctx.Err() != nil {
		return reply // the call was given up: its outcome is unknown
	}
	if err := r.add(ctx, journalEntry{Kind: after, Number: number, given: &reply}); err != nil {
		return replyTo(Reply{Err: fmt.Errorf("the call was made, but its result is not recorded: %w", err)})
	}
	return reply
}

// errOutcomeUnknown is the error of a call that was sent when the program ended.
var errOutcomeUnknown = &CallError{Code: "outcome_unknown",
	Message: "the call was sent, and the run was interrupted before its result: it may have taken effect",
	Next:    "check with another tool before it is called again"}
