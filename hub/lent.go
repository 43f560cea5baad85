package hub

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A shim lends the hub its client's output, where the system can pass it on: what the hub says then takes one way less.
// What the client says goes through the shim all the same, so that nothing of it is lost when the hub dies; and the hub tells
// the shim, after the fact, what it has said.

// notePassed tells the shim of what the hub said to its client: the ids of answers and of the hub's own requests. noteBegan
// comes before a message that may be cut off in the middle.
const (
	notePassed = notePrefix + "passed"
	noteBegan  = notePrefix + "began"
)

// atOnce is how many bytes a pipe takes as a whole (PIPE_BUF on Linux).
const atOnce = 4096

// A lent writes to a client whose shim lent its output.
type lent struct {
	*voice
	out *output
	// known gives the ids that the client knows our requests by.
	known *talk
	// leaving says that what comes now is for nobody; moving that the end of what the shim says is the beginning of that.
	leaving, moving atomic.Bool

	mu sync.Mutex
}

func newLent(v *voice, out *output, turn int) *lent {
	l := &lent{voice: v, out: out, known: newTalk()}
	l.known.turn = turn
	return l
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
	if l.leaving.Load() {
		return len(p), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	said, note, forShim := l.sort(p)
	if len(forShim) > 0 {
		if _, err := l.voice.Write(forShim); err != nil {
			return 0, err
		}
	}
	if len(said) > atOnce {
		l.voice.notice(noteBegan)
	}
	if _, err := l.out.Write(said); err != nil {
		return 0, err
	}
	if note != nil {
		if _, err := l.voice.Write(append(note, '\n')); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close ends the conversation. What is being written to the client is cut off if it does not take it.
func (l *lent) Close() error {
	l.out.cut()
	return l.voice.Close()
}

// sort says which of the lines are for the client, and as what; what the shim is to know of them; and which are for the shim:
// the answers to what it says for itself.
func (l *lent) sort(p []byte) (said, note, forShim []byte) {
	var answered, asked []json.RawMessage
	plain := true // the lines go as they are
	for line := range bytes.Lines(p) {
		h := headOf(line)
		switch {
		case isReplay(h.id):
			forShim = append(forShim, line...)
			plain = false
			continue
		case h.answer:
			answered = append(answered, h.id)
		case h.id != nil:
			asked = append(asked, h.id)
		case h.batch:
			answered = append(answered, idsOf(line)...)
		}
		if l.known.turn == 0 {
			said = append(said, line...)
			continue
		}
		plain = false
		said = append(append(said, bytes.TrimSuffix(l.renamed(h, line), []byte("\n"))...), '\n')
	}
	if plain {
		said = p
	}
	if len(answered)+len(asked) > 0 || len(said) > atOnce {
		params := appendIDs([]byte(`{"answered":`), answered)
		params = append(appendIDs(append(params, `,"asked":`...), asked), '}')
		note = wire.Message{Method: notePassed, Params: params}.Append(nil)
	}
	return said, note, forShim
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
