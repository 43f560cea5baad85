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

// If the system supports it, a shim passes its client's input and output to the hub as open files. The hub then reads
// and writes these files itself, as for its own client, and the shim only waits. A shared ring contains everything that
// the shim needs to continue the conversation at another hub.

// The kinds of records in a shared ring. The hub writes the records and the shim reads them. A recRead record contains
// a line of the client's input, and the position in the input at which the line ends.
//
// When the hub writes output to the client, it adds records in this order. First it adds recAnswered for each request
// that the output answers, and recHubRequest for each request that the hub itself sends in the output. Then it adds
// recWriting with the short line that it writes next. Only this record makes the preceding recAnswered records
// effective. After the write it adds recWritten. Before a long write, which may be interrupted, it adds recLongWrite.
//
// If a hub dies between two of these records, it is unknown whether the client has received the output. The next hub
// writes a short line again, unchanged. If a long response was interrupted, it sends a new response to the request. The
// end of a long line is written separately as a short line, and only this end makes the line count as answered. Writing
// such an end twice is harmless.
const (
	recRead         = 'c'
	recLargeRequest = 'C' // the data to answer a request that is too large to record; effective with the next recRead
	recReadPart     = 'p' // a part of a line; the next recRead has the end of the line
	recEOF          = 'z'
	recAnswered     = 'a'
	recHubRequest   = 'q'
	recWriting      = 's'
	recLongWrite    = 'b'
	recWritten      = 'e'
)

// Notices that are used only with passed files.
const (
	// noticeStart asks the hub to read the client's input. The hub first processes the bytes in the inbox, which an
	// earlier hub has read from the input.
	noticeStart = noticePrefix + "go"
	// noticeReadRing asks the shim to read the records in the ring, because the ring is filling up or because the
	// client moves to another hub.
	noticeReadRing = noticePrefix + "look"
)

// pipeAtomicSize is the number of bytes that a pipe accepts atomically (PIPE_BUF on Linux). maxRecord is the maximum
// size of a record's data.
const (
	pipeAtomicSize = 4096
	maxRecord      = 64 << 10
	// maxRecordedName is the maximum length of a tool's name in a largeRequest.
	maxRecordedName = 1 << 10
)

// A passedConn reads the client's input and writes the client's output through the files that a shim passed.
type passedConn struct {
	*shimConn
	shimLine *lineConn
	in       *passedInput
	out      *passedOutput
	ring     *sharedRing
	// conv translates the ids of the hub's requests to the ids that the client sees.
	conv *conversation
	// leaving is set when the conversation ends here: further output is dropped. moving is set when the client must
	// attach again, as soon as its requests are answered.
	leaving, moving atomic.Bool
	// shimGone is closed when the shim has closed its side of the connection. end ends the conversation. It is called
	// when the shim is gone, unless the client moves.
	shimGone chan struct{}
	end      context.CancelFunc
	work     sync.WaitGroup // goroutines that watch the shim
	// readRingAskedAt is the time when the shim was last asked to read the ring, in Unix nanoseconds.
	readRingAskedAt atomic.Int64

	// Only the reader uses the next two fields. pending is input of the client that Read has not returned yet. large is
	// the beginning of a line that is longer than the inbox.
	pending []byte
	large   []byte

	// active is set when the hub begins to read and write the client's files; both locks must be held to set it. held
	// is the output that was produced before, and heldBytes is its size.
	active    bool
	held      []outgoing
	heldBytes int

	reading, writing sync.Mutex // reading is held while reading, writing while writing
}

// receivePassedConn receives the three files that a shim passes: the client's input, the client's output and the shared
// ring. turn is the number of hubs that have served the client before.
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

// release closes the passed files. It first waits for the reader and the writer.
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

// watchShim waits until the shim closes its side of the connection, and then stops the reader. Unless the client moves
// to another hub, it also ends the conversation.
func (l *passedConn) watchShim() {
	_, _ = l.shimLine.in.Next() // returns when the shim closes its side: it sends nothing after noticeStart
	if l.moving.Load() {
		l.leaving.Store(true)
	} else {
		l.end()
	}
	close(l.shimGone)
	l.in.cancelRead()
}

// Read returns one line at a time: before noticeStart a line of the shim, after it a line of the client.
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

// readShimLine reads a line that the shim sent. If it is noticeStart, readShimLine activates the client's files.
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

// activate writes the held output to the client, and makes the reader read the client's input.
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

// readClientLine accepts the next line of the client, or reads more of the client's input if the inbox has no whole
// line.
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
	// Input without a line feed at the end counts as a line.
	if text := l.ring.unconsumedInbox(0); len(text)+len(l.large) > 0 {
		return l.acceptLine(text)
	}
	l.putRecord(recEOF, nil)
	return io.EOF
}

// acceptLine records a line of the client in the ring and stores it in pending. If the client is moving to another hub,
// a line with a request is left in the inbox for that hub. An exception is a line longer than the inbox: its beginning
// is no longer in the inbox, so the next hub could not read it.
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
				return nil // the response was for another hub
			}
		}
	}
	if !bytes.HasSuffix(whole, []byte("\n")) {
		whole = append(whole, '\n')
	}
	l.pending = whole
	return nil
}

// recordLine records a line of the client; place is its end position in the input. If the line is too large for a
// record, recordLine records only the data that is needed to answer each request in the line. A large initialize
// request, which sets up the session, is recorded in several parts.
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
			short, _ := json.Marshal(largeRequest{f.id, f.method, name, f.modern}) // cannot fail for these types
			l.putRecord(recLargeRequest, short)
		}
	}
	l.putRecord(recRead, at)
}

// A largeRequest is the data of a recLargeRequest record. It describes a request that is too large to be recorded as a
// whole.
type largeRequest struct {
	ID     json.RawMessage
	Method string
	Name   string
	Modern bool
}

// readRingInterval is the minimum time between two notices that ask a shim to read its ring. ringPollPause is the pause
// between two attempts to write a record to a full ring, and ringWaitTimeout is the time limit for these attempts.
const (
	readRingInterval = 10 * time.Millisecond
	ringPollPause    = 100 * time.Microsecond
	ringWaitTimeout  = 5 * time.Second
)

// putRecord writes a record to the ring. If the ring is full, it waits until the shim has read the ring, for at most
// ringWaitTimeout; then the record is lost. A stopped shim thus delays only its own client. A text larger than
// maxRecord, such as a huge id, is not recorded, so the next hub does not know it.
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

// askToReadRing asks the shim to read the ring, at most once in readRingInterval.
func (l *passedConn) askToReadRing() {
	now := time.Now().UnixNano()
	if last := l.readRingAskedAt.Load(); now-last > int64(readRingInterval) &&
		l.readRingAskedAt.CompareAndSwap(last, now) {
		l.shimConn.sendNotice(noticeReadRing)
	}
}

// Write writes whole lines to the client and records them. A large output is written line by line, so that only one
// line is uncertain if this process dies.
func (l *passedConn) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if len(p) <= pipeAtomicSize/2 { // rewriting may make ids of requests longer
		return l.writeOutput(p)
	}
	for line := range bytes.Lines(p) {
		if _, err := l.writeOutput(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// writeOutput writes lines to the client and records them. Before the client's files are active, it stores the lines,
// because the shim may still have to end a partial line of an earlier hub. The caller must hold writing.
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

// maxHeldBytes is the maximum size of the output that is stored before the client's files are active. When it is
// reached, only requests and responses are stored, and other lines are dropped.
const maxHeldBytes = 1 << 20

// holdOutput stores output until the client's files are active. The caller must hold writing.
func (l *passedConn) holdOutput(t outgoing) {
	if l.heldBytes+len(t.forClient) <= maxHeldBytes || len(t.answered)+len(t.requests) > 0 {
		l.heldBytes += len(t.forClient)
		l.held = append(l.held, t)
	}
}

// writeClient writes output to the client's active output file and records it. The caller must hold writing.
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

// recordIDs records the ids of the requests that the output t answers, and the ids of the requests that the hub sends
// in it.
func (l *passedConn) recordIDs(t outgoing) {
	for _, id := range t.answered {
		l.putRecord(recAnswered, id)
	}
	for _, id := range t.requests {
		l.putRecord(recHubRequest, id)
	}
}

// Close ends the conversation. It interrupts a write for which the client does not read.
func (l *passedConn) Close() error {
	l.out.cancelWrite()
	l.in.cancelRead()
	return l.shimConn.Close()
}

// An outgoing is a batch of output. forClient are the lines for the client. answered are the ids of the responses in
// these lines, and requests the ids of the requests in them. forShim are the responses to requests that the shim itself
// repeated.
type outgoing struct {
	forClient, forShim []byte
	answered, requests []json.RawMessage
}

func (l *passedConn) classifyLines(p []byte) (t outgoing) {
	plain := true // the lines are sent unchanged
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

// rewriteForClient returns a line of the MCP server with the request ids that the client sees instead of the hub's own
// ids.
func (l *passedConn) rewriteForClient(h lineHead, line []byte) []byte {
	if h.isResponse || h.isBatch || h.id == nil && !bytes.Contains(line, []byte(mcp.NoteCancelled)) {
		return line
	}
	return l.conv.hubLine(bytes.TrimSpace(line))
}

// A lineHead describes the beginning of a line that the MCP server writes: its id, and whether it is a response or a
// batch.
type lineHead struct {
	id                  json.RawMessage
	isResponse, isBatch bool
}

// parseLineHead parses only the beginning of a line, because results may be long. It requires that the id is the first
// member, as mcp.Message.Append writes it.
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

// responseIDs returns the ids of the responses in a batch.
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
