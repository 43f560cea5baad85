package hub

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A shim lends the hub its client's input and output, where the system can pass them on: then the hub serves the client as it
// does its own, and the shim only waits. All that the shim must know to go on with the conversation at another hub is on a
// slate that both have.

// The notes on a slate. A line that the client said has the place behind it in the input before it. Of what the hub says it
// notes which requests are answered, which it makes itself, the small lines that it is about to say, with which the answers before
// them count, that it begins something that may be cut off in the middle, and that it has said what it was about to. A hub that
// dies in between may have said it or not: small lines are then said again as they are, and what is cut off is answered
// otherwise. Of a large line the end is a small line of its own, with which it counts as answered: to say that twice does no harm.
const (
	noteSaid     = 'c'
	noteRequest  = 'C' // a request too large to note: what is needed to answer it. It counts with the next noteSaid
	notePart     = 'p' // a part of what the next noteSaid ends
	noteEOF      = 'z'
	noteAnswered = 'a'
	noteAsked    = 'q'
	noteSaying   = 's'
	noteBegan    = 'b'
	noteEnded    = 'e'
)

// What hub and shim say to each other beside the slate.
const (
	// noteGo has the hub begin to read the client's input, behind what is in the inbox: what another hub had read of it.
	noteGo = notePrefix + "go"
	// noteLook has the shim read the slate: it is filling up, or the shim waits for what is on it.
	noteLook = notePrefix + "look"
)

// atOnce is how many bytes a pipe takes as a whole (PIPE_BUF on Linux), noteMost how many a note has at most.
const (
	atOnce   = 4096
	noteMost = 64 << 10
	// mostName is how much of a tool's name is noted of a request that is too large to be noted as it is.
	mostName = 1 << 10
)

// A lent reads and writes for a client whose shim lent its input and output.
type lent struct {
	*voice
	line  *line
	in    *input
	out   *output
	slate *slate
	// known gives the ids that the client knows our requests by.
	known *talk
	// leaving says that what comes now is for nobody, moving that the client is to go elsewhere once its requests are answered.
	leaving, moving atomic.Bool
	// over is closed when the shim is gone, or wants no more; end ends the conversation in the first case.
	over chan struct{}
	end  context.CancelFunc
	work sync.WaitGroup // whoever attends to the shim
	// looked is when the shim was last asked to look, in Unix nanoseconds.
	looked atomic.Int64

	// What follows is the reader's: what it has of the client's input and has not given on, and a line that the inbox does not hold.
	pending []byte
	large   []byte

	// going says that the client has the word, which needs both locks to be set; held is what is for it and was to be said before,
	// of waiting bytes.
	going   bool
	held    []told
	waiting int

	reading, writing sync.Mutex // are held by who does that
}

// borrow takes what a shim lends: its client's input and output, and a slate.
func borrow(v *voice, l *line, turn int, end context.CancelFunc) (*lent, error) {
	var files [3]*os.File
	for i := range files {
		f, err := receiveFile(v.conn)
		if err != nil {
			closeAll(files[:])
			return nil, err
		}
		files[i] = f
	}
	s, err := openSlate(files[2])
	if err := errors.Join(err, files[2].Close()); err != nil {
		closeAll(files[:2])
		return nil, err
	}
	lent := &lent{
		voice: v, line: l, in: newInput(files[0]), out: newOutput(files[1]), slate: s, known: newTalk(),
		over: make(chan struct{}), end: end,
	}
	lent.known.turn = turn
	return lent, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// giveBack ends the lending. It waits for whoever reads or writes: what is lent is theirs until then.
func (l *lent) giveBack() {
	l.leaving.Store(true)
	_ = l.Close()
	l.work.Wait()
	l.reading.Lock()
	defer l.reading.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.in.close()
	_ = l.out.close()
	l.slate.close()
}

// attend waits for the end of what the shim says, and has the reader end with it.
func (l *lent) attend() {
	_, _ = l.line.in.Next() // it says nothing after noteGo
	if l.moving.Load() {
		l.leaving.Store(true)
	} else {
		l.end()
	}
	close(l.over)
	l.in.stop()
}

// Read reads what the shim says, and after noteGo what the client does, a line at a time.
func (l *lent) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	for len(l.pending) == 0 {
		next := l.next
		switch {
		case !l.going:
			next = l.begin
		case l.slate.closed():
			return 0, io.EOF
		}
		if err := next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.pending)
	l.pending = l.pending[n:]
	return n, nil
}

// begin takes what the shim says before the client has the word.
func (l *lent) begin() error {
	text, err := l.line.in.Next()
	if err != nil {
		return err
	}
	m, err := wire.Parse(text)
	if err != nil || m.Method != noteGo {
		l.pending = append(text, '\n')
		return nil
	}
	l.work.Go(l.attend)
	return l.goOn()
}

// goOn has the client hear what was held back, and be heard.
func (l *lent) goOn() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.going = true
	for _, t := range l.held {
		if err := l.tell(t); err != nil {
			return err
		}
	}
	l.held = nil
	return nil
}

// next takes a line of the client's, or reads more of its input.
func (l *lent) next() error {
	text, ok := l.slate.line()
	if ok {
		return l.take(text)
	}
	err := l.slate.fill(l.in)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errInboxFull):
		part := l.slate.rest(0)
		l.slate.take(len(part))
		switch {
		case string(l.large) == tooLong: // the rest of it is thrown away
		case len(l.large)+len(part) > wire.DefaultMaxLine:
			l.large = []byte(tooLong)
		default:
			l.large = append(l.large, part...)
		}
		return nil
	case isClosed(l.over) || !errors.Is(err, io.EOF):
		return io.EOF
	}
	if text := l.slate.rest(0); len(text)+len(l.large) > 0 { // what the input's end cuts off counts as a line
		return l.take(text)
	}
	l.put(noteEOF, nil)
	return io.EOF
}

// take notes a line and gives it on. While the client is to move, the next request waits for the hub that comes; not one of which a
// part was taken before, which that hub would never see.
func (l *lent) take(text []byte) error {
	if l.moving.Load() && l.large == nil && asks(text) {
		<-l.over
		return io.EOF
	}
	whole := append(l.large, text...)
	if string(l.large) == tooLong {
		whole = []byte(tooLong)
	}
	l.large = nil
	l.noteLine(whole, l.slate.place()+uint64(len(text)))
	l.slate.take(len(text))
	if l.known.turn > 0 {
		if m, err := wire.Parse(bytes.TrimSpace(whole)); err == nil && m.IsResponse() {
			if whole = l.known.replied(m, whole); whole == nil {
				return nil // it was for another hub
			}
		}
	}
	if !bytes.HasSuffix(whole, []byte("\n")) {
		whole = append(whole, '\n')
	}
	l.pending = whole
	return nil
}

// noteLine notes what the client said, up to a place in its input. Of what is too large to be noted as it is, each request is noted
// with what is needed to answer it, and how a session begins in parts.
func (l *lent) noteLine(text []byte, place uint64) {
	at := binary.LittleEndian.AppendUint64(nil, place)
	if text = bytes.TrimSpace(text); len(at)+len(text) <= noteMost {
		l.put(noteSaid, append(at, text...))
		return
	}
	for _, value := range valuesOf(text) {
		m, err := wire.Parse(value)
		switch {
		case err != nil || !m.IsRequest():
		case m.Method == wire.MethodInitialize:
			for part := range slices.Chunk(value, noteMost) {
				l.put(notePart, part)
			}
		default:
			f := newFlight(m, nil)
			name := f.name[:min(len(f.name), mostName)]
			short, _ := json.Marshal(largeRequest{f.id, f.method, name, f.modern}) // plain data always encodes
			l.put(noteRequest, short)
		}
	}
	l.put(noteSaid, at)
}

// A largeRequest is what is noted of a request that is too large to be noted as it is.
type largeRequest struct {
	ID     json.RawMessage
	Method string
	Name   string
	Modern bool
}

// The waits for a shim that is to read its slate.
const (
	lookEvery = 10 * time.Millisecond
	lookPause = 100 * time.Microsecond
	lookTime  = 5 * time.Second
)

// put takes a note. Where the slate is full the shim is waited for, but not for ever: one that is stopped holds up nobody
// but its own client. What no note holds, an id of such a length, is not known to the next hub.
func (l *lent) put(kind byte, text []byte) {
	if len(text) > noteMost {
		return
	}
	ok, full := l.slate.put(kind, text)
	if full {
		l.askToLook()
	}
	for end := time.Now().Add(lookTime); !ok && !isClosed(l.over) && time.Now().Before(end); {
		time.Sleep(lookPause)
		ok, _ = l.slate.put(kind, text)
	}
}

// askToLook asks the shim to read the slate, once in a while.
func (l *lent) askToLook() {
	now := time.Now().UnixNano()
	if last := l.looked.Load(); now-last > int64(lookEvery) && l.looked.CompareAndSwap(last, now) {
		l.voice.notice(noteLook)
	}
}

// Write says whole lines to the client, and notes that. Those that cannot be said at once are said one by one: of answers
// that were heard whole none is left for the next hub to give again, but for the one in whose midst we die.
func (l *lent) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if len(p) <= atOnce/2 { // the ids of questions may become longer
		return l.say(p)
	}
	for line := range bytes.Lines(p) {
		if _, err := l.say(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// say says lines to the client, and notes that. Before the client has the word they wait: the shim may still have to end a line that
// another hub was cut off in. It needs writing.
func (l *lent) say(p []byte) (int, error) {
	if l.leaving.Load() || l.slate.closed() {
		return len(p), nil
	}
	if !l.going {
		p = bytes.Clone(p) // what waits is the caller's otherwise
	}
	t := l.sort(p)
	if len(t.forShim) > 0 {
		if _, err := l.voice.Write(t.forShim); err != nil {
			return 0, err
		}
	}
	if !l.going {
		l.hold(t)
		return len(p), nil
	}
	if err := l.tell(t); err != nil {
		return 0, err
	}
	return len(p), nil
}

// mostWaiting is how many bytes wait for the client to have the word; of more only what answers or asks does.
const mostWaiting = 1 << 20

// hold keeps what is for the client until it has the word. It needs writing.
func (l *lent) hold(t told) {
	if l.waiting+len(t.said) <= mostWaiting || len(t.answered)+len(t.asked) > 0 {
		l.waiting += len(t.said)
		l.held = append(l.held, t)
	}
}

// tell is what say does once the client has the word. It needs writing.
func (l *lent) tell(t told) error {
	last := t.said
	if len(last) == 0 || l.leaving.Load() {
		return nil
	}
	if len(last) > atOnce {
		body := bytes.TrimSuffix(last, []byte("\n"))
		l.put(noteBegan, nil)
		if _, err := l.out.Write(body); err != nil {
			return err
		}
		last = last[len(body):]
	}
	l.note(t)
	l.put(noteSaying, last)
	if _, err := l.out.Write(last); err != nil {
		return err
	}
	l.put(noteEnded, nil)
	if l.moving.Load() {
		l.voice.notice(noteLook)
	}
	return nil
}

// note notes which requests are answered and made.
func (l *lent) note(t told) {
	for _, id := range t.answered {
		l.put(noteAnswered, id)
	}
	for _, id := range t.asked {
		l.put(noteAsked, id)
	}
}

// Close ends the conversation. What is being written to the client is cut off if it does not take it.
func (l *lent) Close() error {
	l.out.cut()
	l.in.stop()
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
