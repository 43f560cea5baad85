package hub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// Notices are notifications between hub and shim. They are not part of MCP and are never sent to clients.
const (
	// noticeMove asks the shim to attach again, because its configuration has changed. The shim first waits until its
	// client's requests are answered.
	noticeMove = noticePrefix + "move"
	// noticeHubEnds announces the end of the hub. After this notice, the shim drops the responses that end listen
	// requests, because these requests continue at the next hub.
	noticeHubEnds = noticePrefix + "bye"

	noticePrefix = "notifications/drawbridge/"
)

const (
	// moveTime is how long a client that moves to another hub or gateway waits for the responses to its earlier
	// requests.
	moveTime = 30 * time.Second
	// replayTimeout is the time limit for a new hub's responses to the repeated requests that set up a session.
	replayTimeout = 10 * time.Second
	// maxHeldLines is the maximum number of lines of a client that are stored while there is no hub. When it is
	// reached, the client's input is not read until there is a hub.
	maxHeldLines = 1024
	// finalWriteTimeout is how long to wait for a blocked read or write that cannot be interrupted, when a process or a
	// hub ends.
	finalWriteTimeout = 200 * time.Millisecond
)

// tooLongMessage replaces a line of the client that is too long. The hub responds to it as to an invalid message.
const tooLongMessage = `"a message over the size bound"`

// A lineConn is a connection between a shim and the hub, for reading and writing lines.
type lineConn struct {
	conn *net.UnixConn
	in   *mcp.LineReader
}

// writeLine writes a message and a line feed.
func (l *lineConn) writeLine(message []byte) error {
	_, err := l.conn.Write(append(message[:len(message):len(message)], '\n'))
	return err
}

func (l *lineConn) writeLines(messages [][]byte) {
	for _, m := range messages {
		_ = l.writeLine(m) // an error means that the hub is gone, and the line is lost with it
	}
}

// A relayClient is the shim's side of the conversation with an MCP client on a pair of pipes. It passes every line
// between the client and the hub, and continues the conversation when the hub changes. A shimClient is used instead if
// the client's files can be passed to the hub.
type relayClient struct {
	// sending is locked while writing to the hub, so that lines keep their order. writing is locked while writing to
	// the client. mu must be locked only briefly: if the hub waits until this process reads, this process must still be
	// able to read.
	sending, writing sync.Mutex
	out              io.Writer

	mu       sync.Mutex
	heldRoom sync.Cond
	conv     *conversation
	hub      *lineConn // nil if there is no hub
	// moving is set after the hub sent noticeMove: new requests of the client are stored for the next hub. leaving is
	// set when the conversation with this hub ends: responses that end listen requests are dropped.
	moving, leaving bool
	held            [][]byte
	eof, lastTry    bool
}

func newRelayClient(out io.Writer) *relayClient {
	c := &relayClient{out: out, conv: newConversation()}
	c.heldRoom.L = &c.mu
	return c
}

// errClientGone reports that the client no longer reads its output.
var errClientGone = errors.New("the client is gone")

// completeHello sets the field of a hello for the next hub that depends on the conversation: HubNumber.
func (c *relayClient) completeHello(said hello) hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	said.HubNumber = c.conv.nextHubNumber()
	return said
}

// serve passes messages between the client and a hub, until the client's input or ctx ends. When a hub is gone, serve
// calls attach for the next hub. It returns an error of attach or of writing to the client, or the cause of ctx's end.
func (c *relayClient) serve(ctx context.Context, in io.Reader, attach func(context.Context) (*lineConn, error)) error {
	var reading sync.WaitGroup
	reading.Go(func() { c.readClient(in) })
	defer func() {
		c.stopReading()
		if closer, ok := in.(io.Closer); ok {
			_ = closer.Close() // interrupts a blocked read
		}
		waitAtMost(&reading, finalWriteTimeout)
	}()
	for {
		hub, err := attach(ctx)
		if err != nil {
			_ = c.writeClient(c.failPending()...) // the caller returns the error
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = hub.conn.Close() })
		err = c.serveHub(hub)
		stop()
		switch over := c.detach(); {
		case err != nil || ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		case over:
			return c.writeClient(c.failPending()...)
		}
	}
}

// readClient passes the client's lines to the hub until the end of the client's input.
func (c *relayClient) readClient(in io.Reader) {
	lines := mcp.NewLineReader(in, 0)
	for {
		text, err := lines.Next()
		switch {
		case errors.Is(err, mcp.ErrTooLong):
			text = []byte(tooLongMessage)
		case err != nil:
			c.endInput()
			return
		}
		c.forward(text)
	}
}

func (c *relayClient) endInput() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eof = true
	if c.hub != nil && len(c.held) == 0 {
		_ = c.hub.conn.CloseWrite()
	}
}

// forward sends a line of the client to the hub, or stores it for the next hub. An error of the write is ignored. The
// conversation already contains the line, so a request in it counts as lost with the hub.
func (c *relayClient) forward(text []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	for len(c.held) >= maxHeldLines && !c.eof {
		c.sending.Unlock()
		c.heldRoom.Wait()
		c.mu.Unlock()
		c.sending.Lock()
		c.mu.Lock()
	}
	if c.hub == nil || c.moving && hasRequest(text) || len(c.held) > 0 {
		c.held = append(c.held, text)
		c.mu.Unlock()
		return
	}
	hub := c.hub
	text = c.conv.clientLine(text)
	c.mu.Unlock()
	if text != nil {
		_ = hub.writeLine(text)
	}
}

// hasRequest reports whether a line contains a request, or may contain one because it is a batch or not a single
// message.
func hasRequest(text []byte) bool {
	if mcp.IsBatch(text) {
		return true
	}
	m, err := mcp.ParseMessage(text)
	return err != nil || m.IsRequest()
}

// serveHub continues the conversation at a hub until the hub closes the connection. It returns an error only if the
// client is gone.
func (c *relayClient) serveHub(hub *lineConn) error {
	defer hub.conn.Close()
	c.mu.Lock()
	moved := c.moving
	c.moving, c.leaving = false, false // from here on only this hub sets them
	c.mu.Unlock()
	if err := c.reopenSession(hub); err != nil {
		return err
	}
	c.sending.Lock() // held until all open requests were sent again
	r := c.resumeAt(hub, moved)
	err := c.writeClient(r.forClient...)
	var sending sync.WaitGroup
	sending.Go(func() {
		defer c.sending.Unlock()
		hub.writeLines(r.first)
		timer := time.NewTimer(replayTimeout)
		defer timer.Stop()
		select {
		case <-r.replayed:
		case <-timer.C: // continue without the responses
		}
		hub.writeLines(r.then)
		c.finishResume(hub)
	})
	for err == nil {
		text, lost := hub.in.Next()
		if lost != nil {
			break // the reason does not matter: the next hub takes over, or the client is gone
		}
		err = c.passToClient(text)
	}
	_ = hub.conn.Close()
	sending.Wait()
	return err
}

// reopenSession opens the client's session at a new hub and waits for the response. It returns an error only if the
// client is gone.
func (c *relayClient) reopenSession(hub *lineConn) error {
	c.mu.Lock()
	greeting := c.conv.replayInitialize()
	c.mu.Unlock()
	if greeting == nil || hub.writeLine(greeting) != nil {
		return nil
	}
	for {
		text, err := hub.in.Next()
		if err != nil {
			return nil // the hub is gone again
		}
		if m, err := mcp.ParseMessage(text); err == nil && m.IsResponse() && isReplayID(m.ID) {
			return nil
		}
		if err := c.passToClient(text); err != nil {
			return err
		}
	}
}

// A resumePlan holds the lines to send when another hub continues a conversation.
type resumePlan struct {
	// first are the lines that set up the session. then are the lines to send after replayed is closed.
	first, then [][]byte
	replayed    <-chan struct{}
	// forClient holds the lines to send to the client.
	forClient [][]byte
}

// resumeAt makes hub the current hub and returns the lines to send. moved reports whether the previous hub asked the
// client to move; then the client is also told that its lists may have changed.
func (c *relayClient) resumeAt(hub *lineConn, moved bool) (r resumePlan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub = hub
	r.first, r.replayed = c.conv.replaySession()
	if c.conv.requestCount > 0 {
		repeat, lost, cancelled := c.conv.changeHub()
		r.then = repeat
		r.forClient = append(cancelled, lostResponseLines(lost)...)
	}
	if moved && c.conv.initialized != nil {
		r.forClient = append(r.forClient, listChangedLines()...)
	}
	for _, text := range c.held {
		if text = c.conv.clientLine(text); text != nil {
			r.then = append(r.then, text)
		}
	}
	c.held = nil
	c.heldRoom.Broadcast()
	return r
}

// finishResume ends the resumption at a hub. If the client's input has ended, it closes the writing side of the hub's
// connection. If the hub has sent noticeMove meanwhile, it begins the move to the next hub.
func (c *relayClient) finishResume(hub *lineConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.eof {
		_ = hub.conn.CloseWrite()
	}
	if c.moving {
		c.leaveWhenIdle()
		time.AfterFunc(moveTime, closeConnFunc(hub))
	}
}

func listChangedLines() (lines [][]byte) {
	for _, method := range []string{mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged} {
		lines = append(lines, append(mcp.Message{Method: method}.Append(nil), '\n'))
	}
	return lines
}

// passToClient passes a line of the hub to the client.
func (c *relayClient) passToClient(text []byte) error {
	c.mu.Lock()
	text = c.handleHubLine(text)
	c.mu.Unlock()
	if text == nil {
		return nil
	}
	return c.writeClient(append(text[:len(text):len(text)], '\n'))
}

// handleHubLine processes a line of the hub and returns the line for the client; nil if the client must not receive a
// line. The caller must hold mu.
func (c *relayClient) handleHubLine(text []byte) []byte {
	if bytes.Contains(text, []byte(noticePrefix)) {
		switch m, _ := mcp.ParseMessage(text); m.Method {
		case noticeMove:
			c.moving = true
			c.leaveWhenIdle()
			time.AfterFunc(moveTime, closeConnFunc(c.hub))
			return nil
		case noticeHubEnds:
			c.leaving = true
			return nil
		}
	}
	if c.leaving && c.isListenEnd(text) {
		return nil
	}
	text = c.conv.hubLine(text)
	c.leaveWhenIdle()
	return text
}

// isListenEnd reports whether a line is the response that ends a listen request at this hub. The client does not get it,
// because its listen request is sent again to the next hub. The caller must hold mu.
func (c *relayClient) isListenEnd(text []byte) bool {
	m, err := mcp.ParseMessage(text)
	return err == nil && m.IsResponse() && c.conv.pending[string(m.ID)].method == mcp.MethodListen
}

// leaveWhenIdle closes the writing side of the hub's connection if the client is moving and all its requests are
// answered. The caller must hold mu.
func (c *relayClient) leaveWhenIdle() {
	if c.hub != nil && c.moving && !c.leaving && c.conv.openRequests() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// closeConnFunc returns a function that closes the connection to the hub. It is called when a move takes longer than
// moveTime.
func closeConnFunc(hub *lineConn) func() {
	return func() {
		if hub != nil {
			_ = hub.conn.Close()
		}
	}
}

// writeClient writes lines to the client. The error is errClientGone.
func (c *relayClient) writeClient(lines ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}

// detach removes the current hub and reports whether the conversation is over. After the end of the client's input, one
// more hub may be used to answer the open requests.
func (c *relayClient) detach() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub = nil
	over = c.eof && len(c.held) == 0 && (c.lastTry || c.conv.openRequests() == 0)
	c.lastTry = c.eof
	return over
}

// failPending returns error responses to all open requests. It is used when there will be no other hub.
func (c *relayClient) failPending() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.held {
		c.conv.clientLine(text)
	}
	c.held = nil
	lost := make([]pendingRequest, 0, len(c.conv.pending))
	for _, f := range c.conv.pending {
		lost = append(lost, f)
	}
	return lostResponseLines(lost)
}

// stopReading makes readClient return if it waits for room to store a line.
func (c *relayClient) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eof = true
	c.heldRoom.Broadcast()
}

// waitAtMost waits for a group, but not longer than most. The limit is needed because a read of a terminal cannot
// always be interrupted, and the process is about to end.
func waitAtMost(g *sync.WaitGroup, most time.Duration) {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(most):
	}
}
