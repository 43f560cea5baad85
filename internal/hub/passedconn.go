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

// A shim passes its client's input and output to the hub if the system can. The hub then serves that client as it does
// its own, and the shim only waits. A shared ring holds everything that the shim needs to continue the conversation at
// another hub.

// The kinds of records in a shared ring. A recRead record holds a line of the client, preceded by its end position in
// the input.
//
// The hub records its output in this order: the requests that a response answers (recAnswered) and the hub's own
// requests (recHubRequest); a short line about to be written, which commits the earlier answers (recWriting), or the
// start of a long write that may be cut off (recLongWrite); the end of the write (recWritten).
//
// If a hub dies in between, the client may or may not have the output. Short lines are written again as they are.
// Requests whose long response was cut off get another response. The end of a long line is a short line of its own,
// with which the line counts as answered: to write that twice does no harm.
const (
	recRead         = 'c'
	recLargeRequest = 'C' // data to answer a request that is too large to record; it counts with the next recRead
	recReadPart     = 'p' // a part of the line that the next recRead ends
	recEOF          = 'z'
	recAnswered     = 'a'
	recHubRequest   = 'q'
	recWriting      = 's'
	recLongWrite    = 'b'
	recWritten      = 'e'
)

// These notices belong to passed files.
const (
	// noticeStart lets the hub read the client's input, after the bytes in the inbox, which another hub has read.
	noticeStart = noticePrefix + "go"
	// noticeReadRing asks the shim to read the ring: it fills up, or the shim waits for a record.
	noticeReadRing = noticePrefix + "look"
)

// pipeAtomicSize is how many bytes a pipe accepts atomically (PIPE_BUF on Linux). maxRecord is the most bytes of a
// record.
const (
	pipeAtomicSize = 4096
	maxRecord      = 64 << 10
	// maxRecordedName is how many bytes of a tool's name a largeRequest holds.
	maxRecordedName = 1 << 10
)

// A passedConn reads the input and writes the output that a shim passed for its client.
type passedConn struct {
	*shimConn
	shimLine *lineConn
	in       *passedInput
	out      *passedOutput
	ring     *sharedRing
	// conv translates the ids of the hub's requests to those that the client knows.
	conv *conversation
	// leaving reports that further output is dropped. moving reports that the client is to attach again once its
	// requests are answered.
	leaving, moving atomic.Bool
	// shimGone is closed when the shim has closed its side. end ends the conversation unless the client moves.
	shimGone chan struct{}
	end      context.CancelFunc
	work     sync.WaitGroup // goroutines that watch the shim
	// readRingAskedAt is when the shim was last asked to read the ring, in Unix nanoseconds.
	readRingAskedAt atomic.Int64

	// These fields belong to the reader: input of the client that is not delivered yet, and a line that is too long for
	// the inbox.
	pending []byte
	large   []byte

	// active reports that the hub reads and writes the client's files; to set it needs both locks. held is output from
	// before that, of heldBytes bytes.
	active    bool
	held      []outgoing
	heldBytes int

	reading, writing sync.Mutex // held while reading and writing
}

// receivePassedConn receives the files of a shim: its client's input, its client's output and the shared ring.
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
	passed := &passedConn{
		shimConn: v, shimLine: l, in: newPassedInput(files[0]), out: newPassedOutput(files[1]), ring: s,
		conv:     newConversation(),
		shimGone: make(chan struct{}), end: end,
	}
	passed.conv.hubNumber = turn
	return passed, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// release closes the passed files. It waits for the reader and the writer, who own them until then.
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

// watchShim waits until the shim closes its side, and then stops the reader.
func (l *passedConn) watchShim() {
	_, _ = l.shimLine.in.Next() // the shim sends nothing after noticeStart
	if l.moving.Load() {
		l.leaving.Store(true)
	} else {
		l.end()
	}
	close(l.shimGone)
	l.in.cancelRead()
}

// Read reads lines of the shim, and after noticeStart lines of the client, one at a time.
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

// readShimLine reads a line of the shim before the client's files are active.
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

// activate writes the held output to the client and lets the reader read the client's input.
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
		case string(l.large) == tooLongMessage: // the rest of the line is discarded
		case len(l.large)+len(part) > mcp.DefaultMaxLine:
			l.large = []byte(tooLongMessage)
		default:
			l.large = append(l.large, part...)
		}
		return nil
	case isClosed(l.shimGone) || !errors.Is(err, io.EOF):
		return io.EOF
	}
	// input without a last line feed counts as a line
	if text := l.ring.unconsumedInbox(0); len(text)+len(l.large) > 0 {
		return l.acceptLine(text)
	}
	l.putRecord(recEOF, nil)
	return io.EOF
}

// acceptLine records a line and delivers it. While the client is to move, the next request is left for the next hub. A
// line that was partly consumed before is an exception, since the next hub would never see it whole.
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

// recordLine records a line of the client and its end position in the input. A line that is too large is recorded by
// the data needed to answer each of its requests; one that sets up the session is recorded in parts.
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

// A largeRequest is the record of a request that is too large to be recorded whole.
type largeRequest struct {
	ID     json.RawMessage
	Method string
	Name   string
	Modern bool
}

// The waits for a shim to read its ring.
const (
	readRingInterval = 10 * time.Millisecond
	ringPollPause    = 100 * time.Microsecond
	ringWaitTimeout  = 5 * time.Second
)

// putRecord writes a record. If the ring is full it waits for the shim, but not for ever: a stopped shim delays only
// its own client. Text that does not fit into a record, such as a huge id, is unknown to the next hub.
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

// askToReadRing asks the shim to read the ring, at most once in a while.
func (l *passedConn) askToReadRing() {
	now := time.Now().UnixNano()
	if last := l.readRingAskedAt.Load(); now-last > int64(readRingInterval) &&
		l.readRingAskedAt.CompareAndSwap(last, now) {
		l.shimConn.sendNotice(noticeReadRing)
	}
}

// Write writes whole lines to the client and records them. Lines that cannot be written at once are written one by one,
// so that only the line being written is in doubt if this process dies.
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

// writeOutput writes lines to the client and records them. Until the client's files are active it holds them: the shim
// may still have to end a partial line of another hub. The caller holds writing.
func (l *passedConn) writeOutput(p []byte) (int, error) {
	if l.leaving.Load() || l.ring.closed() {
		return len(p), nil
	}
	if !l.active {
		p = bytes.Clone(p) // the caller may reuse p
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

// maxHeldBytes bounds the held output; beyond it only requests and responses are held.
const maxHeldBytes = 1 << 20

// holdOutput holds output until the client's files are active. The caller holds writing.
func (l *passedConn) holdOutput(t outgoing) {
	if l.heldBytes+len(t.forClient) <= maxHeldBytes || len(t.answered)+len(t.requests) > 0 {
		l.heldBytes += len(t.forClient)
		l.held = append(l.held, t)
	}
}

// writeClient writes output to the active client. The caller holds writing.
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

// Close ends the conversation. A write that the client does not accept is cut off.
func (l *passedConn) Close() error {
	l.out.cancelWrite()
	l.in.cancelRead()
	return l.shimConn.Close()
}

// An outgoing is a batch of output: the lines for the client with the ids of responses and requests in it, and the
// responses to the shim's own requests.
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

// A lineHead is the beginning of a line of the server: its id and the next member.
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

// responseIDs returns the ids of the responses in a line.
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
