package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A shim lends the hub its client's output, where the system can pass it on: what the hub says then takes one way less.
// What the client says goes through the shim all the same, so that nothing of it is lost when the hub dies; and the hub notes
// for the shim, in memory that both have, what it has said.

// What the hub notes in a ring: that it answers a request, that it makes one of its own, the small lines that it is about to
// say, that it begins something that may be cut off in the middle, and that it has said what it was about to. A hub that dies
// in between may have said it or not: small lines are then said again as they are, and what is cut off is answered otherwise.
const (
	ringAnswered = 'a'
	ringAsked    = 'q'
	ringSaying   = 's'
	ringBegan    = 'b'
	ringEnded    = 'e'
)

// notePassed tells the shim the same where it waits for that, or the ring has no room: the ids of answers and of the hub's
// own requests.
const notePassed = notePrefix + "passed"

// atOnce is how many bytes a pipe takes as a whole (PIPE_BUF on Linux).
const atOnce = 4096

// A lent writes to a client whose shim lent its output.
type lent struct {
	*voice
	out  *output
	ring *ring
	// known gives the ids that the client knows our requests by.
	known *talk
	// leaving says that what comes now is for nobody; moving that the end of what the shim says is the beginning of that.
	leaving, moving atomic.Bool

	mu sync.Mutex
}

// borrow takes what a shim lends: its client's output, and a ring.
func borrow(v *voice, turn int) (*lent, error) {
	f, err := receiveFile(v.conn)
	if err != nil {
		return nil, err
	}
	memory, err := receiveFile(v.conn)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := openRing(memory)
	if err := errors.Join(err, memory.Close()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l := &lent{voice: v, out: newOutput(f), ring: r, known: newTalk()}
	l.known.turn = turn
	return l, nil
}

// giveBack ends the lending, when nothing is written any more.
func (l *lent) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving.Store(true)
	_ = l.out.close()
	l.ring.close()
}

// Read reads what the client said, from the shim.
func (l *lent) Read(p []byte) (int, error) {
	n, err := l.voice.Read(p)
	if err != nil && l.moving.Load() {
		l.leaving.Store(true)
	}
	return n, err
}

// Write says whole lines to the client, and tells the shim of it.
func (l *lent) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving.Load() {
		return len(p), nil
	}
	t := l.sort(p)
	if len(t.forShim) > 0 {
		if _, err := l.voice.Write(t.forShim); err != nil {
			return 0, err
		}
	}
	if len(t.said) == 0 {
		return len(p), nil
	}
	if len(t.said) > atOnce {
		l.ring.put(ringBegan, nil)
		if _, err := l.out.Write(t.said); err != nil {
			return 0, err
		}
		if err := l.note(t); err != nil {
			return 0, err
		}
	} else {
		if err := l.note(t); err != nil {
			return 0, err
		}
		l.ring.put(ringSaying, t.said)
		if _, err := l.out.Write(t.said); err != nil {
			return 0, err
		}
	}
	l.ring.put(ringEnded, nil)
	return len(p), nil
}

// note has the shim know what is said.
func (l *lent) note(t told) error {
	noted := true
	for _, id := range t.answered {
		noted = noted && l.ring.put(ringAnswered, id)
	}
	for _, id := range t.asked {
		noted = noted && l.ring.put(ringAsked, id)
	}
	if noted && !l.moving.Load() { // else it waits to hear of it
		return nil
	}
	params := appendIDs([]byte(`{"answered":`), t.answered)
	params = append(appendIDs(append(params, `,"asked":`...), t.asked), '}')
	_, err := l.voice.Write(append(wire.Message{Method: notePassed, Params: params}.Append(nil), '\n'))
	return err
}

// Close ends the conversation. What is being written to the client is cut off if it does not take it.
func (l *lent) Close() error {
	l.out.cut()
	return l.voice.Close()
}

// told is what becomes of lines: what the client is told, with the ids of answers and of questions in it, and what is for
// the shim: the answers to what it says for itself.
type told struct {
	said, forShim   []byte
	answered, asked []json.RawMessage
}

func (l *lent) sort(p []byte) (t told) {
	plain := true // the lines go as they are
	for line := range bytes.Lines(p) {
		h := headOf(line)
		switch {
		case isReplay(h.id):
			t.forShim = append(t.forShim, line...)
			plain = false
			continue
		case h.answer:
			t.answered = append(t.answered, h.id)
		case h.id != nil:
			t.asked = append(t.asked, h.id)
		case h.batch:
			t.answered = append(t.answered, idsOf(line)...)
		}
		if l.known.turn > 0 {
			plain = false
			line = append(bytes.TrimSuffix(l.renamed(h, line), []byte("\n")), '\n')
		}
		t.said = append(t.said, line...)
	}
	if plain {
		t.said = p
	}
	return t
}

// renamed is a line as the client is to see it.
func (l *lent) renamed(h head, line []byte) []byte {
	if h.answer || h.batch || h.id == nil && !bytes.Contains(line, []byte(wire.NoteCancelled)) {
		return line
	}
	return l.known.heard(bytes.TrimSpace(line))
}

// A head is the beginning of a line of the surface's: its id, and what follows that.
type head struct {
	id            json.RawMessage
	answer, batch bool
}

// headOf reads no more of a line than it must: results are long. The surface writes id first, see wire.Message.Append.
func headOf(line []byte) head {
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return head{batch: wire.IsBatch(line)}
	}
	end, err := wire.Skip(rest, 0)
	if err != nil {
		return head{}
	}
	return head{id: json.RawMessage(rest[:end]), answer: !bytes.HasPrefix(rest[end:], []byte(`,"method":`))}
}

// idsOf are the ids of a batch of answers.
func idsOf(line []byte) (ids []json.RawMessage) {
	for value := range wire.Elements(bytes.TrimSpace(line)) {
		if m, err := wire.Parse(value); err == nil && m.IsResponse() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func appendIDs(dst []byte, ids []json.RawMessage) []byte {
	dst = append(dst, '[')
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, id...)
	}
	return append(dst, ']')
}

// passed takes note of what the hub said to the client by itself.
func (t *talk) passed(params json.RawMessage) {
	for id := range wire.Elements(wire.Get(params, "answered")) {
		delete(t.flights, string(id))
	}
	for own := range wire.Elements(wire.Get(params, "asked")) {
		t.asked[string(t.known(own))] = own
	}
}

// catchUp takes note of what is in the ring.
func (t *talk) catchUp(r *ring) {
	if r == nil {
		return
	}
	r.drain(func(kind byte, text []byte) {
		switch kind {
		case ringAnswered:
			delete(t.flights, string(text))
		case ringAsked:
			t.asked[string(t.known(text))] = text
		case ringSaying:
			t.unsure = text
		case ringBegan:
			t.cut = true
		case ringEnded:
			t.unsure, t.cut = nil, false
		}
	})
}
