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

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A shim lends the hub its client's input and output, where the system can pass them on: then the hub serves the
// client as it does its own, and the shim only waits. All that the shim must know to go on with the conversation at
// another hub is on a slate that both have.

// The notes on a slate. A line that the client said has the place behind it in the input before it. Of what the hub
// says it notes which requests are answered, which it makes itself, the small lines that it is about to say, with
// which the answers before them count, that it begins something that may be cut off in the middle, and that it has
// said what it was about to. A hub that dies in between may have said it or not: small lines are then said again as
// they are, and what is cut off is answered otherwise. Of a large line the end is a small line of its own, with which
// it counts as answered: to say that twice does no harm.
const (
	recRead         = 'c'
	recLargeRequest = 'C' // a request too large to note: what is needed to answer it. It counts with the next recRead
	recReadPart     = 'p' // a part of what the next recRead ends
	recEOF          = 'z'
	recAnswered     = 'a'
	recHubRequest   = 'q'
	recWriting      = 's'
	recLongWrite    = 'b'
	recWritten      = 'e'
)

// What hub and shim say to each other beside the slate.
const (
	// noticeStart has the hub begin to read the client's input, behind what is in the inbox: what another hub had read
	// of it.
	noticeStart = noticePrefix + "go"
	// noticeReadRing has the shim read the slate: it is filling up, or the shim waits for what is on it.
	noticeReadRing = noticePrefix + "look"
)

// pipeAtomicSize is how many bytes a pipe takes as a whole (PIPE_BUF on Linux), maxRecord how many a note has at most.
const (
	pipeAtomicSize = 4096
	maxRecord      = 64 << 10
	// maxRecordedName is how much of a tool's name is noted of a request that is too large to be noted as it is.
	maxRecordedName = 1 << 10
)

// A passedConn reads and writes for a client whose shim lent its input and output.
type passedConn struct {
	*shimConn
	shimLine *lineConn
	in       *passedInput
	out      *passedOutput
	ring     *sharedRing
	// conv gives the ids that the client knows our requests by.
	conv *conversation
	// leaving says that what comes now is for nobody, moving that the client is to go elsewhere once its requests are
	// answered.
	leaving, moving atomic.Bool
	// shimGone is closed when the shim is gone, or wants no more; end ends the conversation in the first case.
	shimGone chan struct{}
	end      context.CancelFunc
	work     sync.WaitGroup // whoever attends to the shim
	// readRingAskedAt is when the shim was last asked to look, in Unix nanoseconds.
	readRingAskedAt atomic.Int64

	// What follows is the reader's: what it has of the client's input and has not given on, and a line that the inbox
	// does not hold.
	pending []byte
	large   []byte

	// active says that the client has the word, which needs both locks to be set; held is what is for it and was to be
	// said before, of waiting bytes.
	active    bool
	held      []outgoing
	heldBytes int

	reading, writing sync.Mutex // are held by who does that
}

// receivePassedConn takes what a shim lends: its client's input and output, and a slate.
func receivePassedConn(v *shimConn, l *lineConn, turn int, end context.CancelFunc) (*passedConn, error) {
	var files [3]*os.File
	for i := range files {
		f, err := receiveFile(v.conn)
		if err != nil {
			closeAll(files[:])
			return nil, err
		}
		files[i] = f
	}
	s, err := openSharedRing(files[2])
	if err := errors.Join(err, files[2].Close()); err != nil {
		closeAll(files[:2])
		return nil, err
	}
	lent := &passedConn{
		shimConn: v, shimLine: l, in: newPassedInput(files[0]), out: newPassedOutput(files[1]), ring: s,
		conv:     newConversation(),
		shimGone: make(chan struct{}), end: end,
	}
	lent.conv.hubNumber = turn
	return lent, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// release ends the lending. It waits for whoever reads or writes: what is lent is theirs until then.
func (l *passedConn) release() {
	l.leaving.Store(true)
	_ = l.Close()
	l.work.Wait()
	l.reading.Lock()
	defer l.reading.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = l.in.close()
	_ = l.out.close()
	l.ring.close()
}

// watchShim waits for the end of what the shim says, and has the reader end with it.
func (l *passedConn) watchShim() {
	_, _ = l.shimLine.in.Next() // it says nothing after noticeStart
	if l.moving.Load() {
		l.leaving.Store(true)
	} else {
		l.end()
	}
	close(l.shimGone)
	l.in.cancelRead()
}

// Read reads what the shim says, and after noticeStart what the client does, a line at a time.
func (l *passedConn) Read(p []byte) (int, error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	for len(l.pending) == 0 {
		next := l.readClientLine
		switch {
		case !l.active:
			next = l.readShimLine
		case l.ring.closed():
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

// readShimLine takes what the shim says before the client has the word.
func (l *passedConn) readShimLine() error {
	text, err := l.shimLine.in.Next()
	if err != nil {
		return err
	}
	m, err := mcp.ParseMessage(text)
	if err != nil || m.Method != noticeStart {
		l.pending = append(text, '\n')
		return nil
	}
	l.work.Go(l.watchShim)
	return l.activate()
}

// activate has the client hear what was held back, and be heard.
func (l *passedConn) activate() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.active = true
	for _, t := range l.held {
		if err := l.writeClient(t); err != nil {
			return err
		}
	}
	l.held = nil
	return nil
}

// readClientLine takes a line of the client's, or reads more of its input.
func (l *passedConn) readClientLine() error {
	text, ok := l.ring.nextLine()
	if ok {
		return l.acceptLine(text)
	}
	err := l.ring.fillInbox(l.in)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errInboxFull):
		part := l.ring.unconsumedInbox(0)
		l.ring.consumeInbox(len(part))
		switch {
		case string(l.large) == tooLongMessage: // the rest of it is thrown away
		case len(l.large)+len(part) > mcp.DefaultMaxLine:
			l.large = []byte(tooLongMessage)
		default:
			l.large = append(l.large, part...)
		}
		return nil
	case isClosed(l.shimGone) || !errors.Is(err, io.EOF):
		return io.EOF
	}
	if text := l.ring.unconsumedInbox(0); len(text)+len(l.large) > 0 { // what the input's end cuts off counts as a line
		return l.acceptLine(text)
	}
	l.putRecord(recEOF, nil)
	return io.EOF
}

// acceptLine notes a line and gives it on. While the client is to move, the next request waits for the hub that comes;
// not one of which a part was taken before, which that hub would never see.
func (l *passedConn) acceptLine(text []byte) error {
	if l.moving.Load() && l.large == nil && hasRequest(text) {
		<-l.shimGone
		return io.EOF
	}
	whole := append(l.large, text...)
	if string(l.large) == tooLongMessage {
		whole = []byte(tooLongMessage)
	}
	l.large = nil
	l.recordLine(whole, l.ring.inboxOffset()+uint64(len(text)))
	l.ring.consumeInbox(len(text))
	if l.conv.hubNumber > 0 {
		if m, err := mcp.ParseMessage(bytes.TrimSpace(whole)); err == nil && m.IsResponse() {
			if whole = l.conv.clientResponse(m, whole); whole == nil {
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

// recordLine notes what the client said, up to a place in its input. Of what is too large to be noted as it is, each
// request is noted with what is needed to answer it, and how a session begins in parts.
func (l *passedConn) recordLine(text []byte, place uint64) {
	at := binary.LittleEndian.AppendUint64(nil, place)
	if text = bytes.TrimSpace(text); len(at)+len(text) <= maxRecord {
		l.putRecord(recRead, append(at, text...))
		return
	}
	for _, value := range splitMessages(text) {
		m, err := mcp.ParseMessage(value)
		switch {
		case err != nil || !m.IsRequest():
		case m.Method == mcp.MethodInitialize:
			for part := range slices.Chunk(value, maxRecord) {
				l.putRecord(recReadPart, part)
			}
		default:
			f := newPendingRequest(m, nil)
			name := f.name[:min(len(f.name), maxRecordedName)]
			short, _ := json.Marshal(largeRequest{f.id, f.method, name, f.modern}) // plain data always encodes
			l.putRecord(recLargeRequest, short)
		}
	}
	l.putRecord(recRead, at)
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
	readRingInterval = 10 * time.Millisecond
	ringPollPause    = 100 * time.Microsecond
	ringWaitTimeout  = 5 * time.Second
)

// putRecord takes a note. Where the slate is full the shim is waited for, but not for ever: one that is stopped holds
// up nobody but its own client. What no note holds, an id of such a length, is not known to the next hub.
func (l *passedConn) putRecord(kind byte, text []byte) {
	if len(text) > maxRecord {
		return
	}
	ok, full := l.ring.putRecord(kind, text)
	if full {
		l.askToReadRing()
	}
	for end := time.Now().Add(ringWaitTimeout); !ok && !isClosed(l.shimGone) && time.Now().Before(end); {
		time.Sleep(ringPollPause)
		ok, _ = l.ring.putRecord(kind, text)
	}
}

// askToReadRing asks the shim to read the slate, once in a while.
func (l *passedConn) askToReadRing() {
	now := time.Now().UnixNano()
	if last := l.readRingAskedAt.Load(); now-last > int64(readRingInterval) &&
		l.readRingAskedAt.CompareAndSwap(last, now) {
		l.shimConn.sendNotice(noticeReadRing)
	}
}

// Write says whole lines to the client, and notes that. Those that cannot be said at once are said one by one: of
// answers that were heard whole none is left for the next hub to give again, but for the one in whose midst we die.
func (l *passedConn) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if len(p) <= pipeAtomicSize/2 { // the ids of questions may become longer
		return l.writeOutput(p)
	}
	for line := range bytes.Lines(p) {
		if _, err := l.writeOutput(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// writeOutput says lines to the client, and notes that. Before the client has the word they wait: the shim may still
// have to end a line that another hub was cut off in. It needs writing.
func (l *passedConn) writeOutput(p []byte) (int, error) {
	if l.leaving.Load() || l.ring.closed() {
		return len(p), nil
	}
	if !l.active {
		p = bytes.Clone(p) // what waits is the caller's otherwise
	}
	t := l.classifyLines(p)
	if len(t.forShim) > 0 {
		if _, err := l.shimConn.Write(t.forShim); err != nil {
			return 0, err
		}
	}
	if !l.active {
		l.holdOutput(t)
		return len(p), nil
	}
	if err := l.writeClient(t); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxHeldBytes is how many bytes wait for the client to have the word; of more only what answers or asks does.
const maxHeldBytes = 1 << 20

// holdOutput keeps what is for the client until it has the word. It needs writing.
func (l *passedConn) holdOutput(t outgoing) {
	if l.heldBytes+len(t.forClient) <= maxHeldBytes || len(t.answered)+len(t.requests) > 0 {
		l.heldBytes += len(t.forClient)
		l.held = append(l.held, t)
	}
}

// writeClient is what say does once the client has the word. It needs writing.
func (l *passedConn) writeClient(t outgoing) error {
	last := t.forClient
	if len(last) == 0 || l.leaving.Load() {
		return nil
	}
	if len(last) > pipeAtomicSize {
		body := bytes.TrimSuffix(last, []byte("\n"))
		l.putRecord(recLongWrite, nil)
		if _, err := l.out.Write(body); err != nil {
			return err
		}
		last = last[len(body):]
	}
	l.recordIDs(t)
	l.putRecord(recWriting, last)
	if _, err := l.out.Write(last); err != nil {
		return err
	}
	l.putRecord(recWritten, nil)
	if l.moving.Load() {
		l.shimConn.sendNotice(noticeReadRing)
	}
	return nil
}

// recordIDs notes which requests are answered and made.
func (l *passedConn) recordIDs(t outgoing) {
	for _, id := range t.answered {
		l.putRecord(recAnswered, id)
	}
	for _, id := range t.requests {
		l.putRecord(recHubRequest, id)
	}
}

// Close ends the conversation. What is being written to the client is cut off if it does not take it.
func (l *passedConn) Close() error {
	l.out.cancelWrite()
	l.in.cancelRead()
	return l.shimConn.Close()
}

// outgoing is what becomes of lines: what the client is told, with the ids of answers and of questions in it, and what
// is for the shim: the answers to what it says for itself.
type outgoing struct {
	forClient, forShim []byte
	answered, requests []json.RawMessage
}

func (l *passedConn) classifyLines(p []byte) (t outgoing) {
	plain := true // the lines go as they are
	for line := range bytes.Lines(p) {
		h := parseLineHead(line)
		switch {
		case isReplayID(h.id):
			t.forShim = append(t.forShim, line...)
			plain = false
			continue
		case h.isResponse:
			t.answered = append(t.answered, h.id)
		case h.id != nil:
			t.requests = append(t.requests, h.id)
		case h.isBatch:
			t.answered = append(t.answered, responseIDs(line)...)
		}
		if l.conv.hubNumber > 0 {
			plain = false
			line = append(bytes.TrimSuffix(l.rewriteForClient(h, line), []byte("\n")), '\n')
		}
		t.forClient = append(t.forClient, line...)
	}
	if plain {
		t.forClient = p
	}
	return t
}

// rewriteForClient is a line as the client is to see it.
func (l *passedConn) rewriteForClient(h lineHead, line []byte) []byte {
	if h.isResponse || h.isBatch || h.id == nil && !bytes.Contains(line, []byte(mcp.NoteCancelled)) {
		return line
	}
	return l.conv.hubLine(bytes.TrimSpace(line))
}

// A lineHead is the beginning of a line of the surface's: its id, and what follows that.
type lineHead struct {
	id                  json.RawMessage
	isResponse, isBatch bool
}

// parseLineHead reads no more of a line than it must: results are long. The surface writes id first, see
// wire.Message.Append.
func parseLineHead(line []byte) lineHead {
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return lineHead{isBatch: mcp.IsBatch(line)}
	}
	end, err := rawjson.SkipValue(rest, 0)
	if err != nil {
		return lineHead{}
	}
	return lineHead{id: json.RawMessage(rest[:end]), isResponse: !bytes.HasPrefix(rest[end:], []byte(`,"method":`))}
}

// responseIDs are the ids of a batch of answers.
func responseIDs(line []byte) (ids []json.RawMessage) {
	for value := range rawjson.Elements(bytes.TrimSpace(line)) {
		if m, err := mcp.ParseMessage(value); err == nil && m.IsResponse() {
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
