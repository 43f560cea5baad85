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

// The notices between hub and shim are not part of MCP, and no client sees them.
const (
	// noticeMove asks the shim to attach again once its requests are answered, since its configuration changed.
	noticeMove = noticePrefix + "move"
	// noticeHubEnds announces the end of the hub. Responses to listening requests after it do not count.
	noticeHubEnds = noticePrefix + "bye"

	noticePrefix = "notifications/drawbridge/"
)

const (
	// moveTime is how long a move waits for responses to earlier requests.
	moveTime = 30 * time.Second
	// replayTimeout bounds the wait for the responses to a repeated session.
	replayTimeout = 10 * time.Second
	// maxHeldLines is how many lines of a client are kept while there is no hub; then reading its input stops.
	maxHeldLines = 1024
	// finalWriteTimeout is how long to wait for a reader that cannot be interrupted.
	finalWriteTimeout = 200 * time.Millisecond
)

// tooLongMessage replaces a line over the size bound. The hub answers it as an invalid message.
const tooLongMessage = `"a message over the size bound"`

// A lineConn is a connection between shim and hub that reads and writes lines.
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
		_ = l.writeLine(m) // a line that does not arrive is lost with the hub
	}
}

// A relayClient is an MCP client on a pair of pipes whose conversation continues when the hub changes. All lines in
// both directions pass through it. A shimClient serves files that can be passed to the hub.
type relayClient struct {
	// sending is held while writing to the hub, so that lines keep their order; writing is held while writing to the
	// client. mu is held for moments only: a hub that waits for this process to read must not keep it from reading.
	sending, writing sync.Mutex
	out              io.Writer

	mu       sync.Mutex
	heldRoom sync.Cond
	conv     *conversation
	hub      *lineConn // nil while there is none
	// moving holds new requests back. leaving reports that the last messages of the hub do not count.
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

// completeHello adds the relay's members to a hello for the next hub.
func (c *relayClient) completeHello(said hello) hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	said.HubNumber = c.conv.nextHubNumber()
	return said
}

// serve passes messages between the client and the hubs that attach returns, until the input or ctx ends. The error is
// that of attach or of the client.
func (c *relayClient) serve(ctx context.Context, in io.Reader, attach func(context.Context) (*lineConn, error)) error {
	var reading sync.WaitGroup
	reading.Go(func() { c.readClient(in) })
	defer func() {
		c.stopReading()
		if closer, ok := in.(io.Closer); ok {
			_ = closer.Close() // wakes a reader that waits in it
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

// readClient passes on the client's lines until the end of its input.
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

// forward sends a line of the client to the hub, or keeps it for the next hub. A line that cannot be written is
// recorded all the same: it is lost with the hub.
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

// hasRequest reports whether a line contains a request.
func hasRequest(text []byte) bool {
	if mcp.IsBatch(text) {
		return true
	}
	m, err := mcp.ParseMessage(text)
	return err != nil || m.IsRequest()
}

// serveHub continues the conversation at a hub until the hub is gone or has sent everything. The error reports a
// client that is gone.
func (c *relayClient) serveHub(hub *lineConn) error {
	defer hub.conn.Close()
	c.mu.Lock()
	moved := c.moving
	c.moving, c.leaving = false, false // from here on they are this hub's word
	c.mu.Unlock()
	if err := c.reopenSession(hub); err != nil {
		return err
	}
	c.sending.Lock() // until all that is open was sent again
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
		case <-timer.C: // a server may refuse a subscription that it accepted before
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

// reopenSession opens the client's session at a new hub and waits for the response.
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

// A resumePlan holds the lines to send when another hub takes over.
type resumePlan struct {
	// first sets up the session; then follows once settled is closed.
	first, then [][]byte
	replayed    <-chan struct{}
	// forClient holds the lines to send to the client.
	forClient [][]byte
}

// resumeAt makes hub the current one. moved reports that another hub sent the client there.
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

// finishResume ends the input of a hub if the client's input has ended, or if the hub sent the client on meanwhile.
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

// handleHubLine records a line of the hub and returns the line for the client. The caller holds mu.
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

// isListenEnd reports whether a line ends a listening request that continues elsewhere. The caller holds mu.
func (c *relayClient) isListenEnd(text []byte) bool {
	m, err := mcp.ParseMessage(text)
	return err == nil && m.IsResponse() && c.conv.pending[string(m.ID)].method == mcp.MethodListen
}

// leaveWhenIdle ends the conversation with a hub that is to be left, once no request is open. The caller holds mu.
func (c *relayClient) leaveWhenIdle() {
	if c.hub != nil && c.moving && !c.leaving && c.conv.openRequests() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// closeConnFunc ends a move that takes too long.
func closeConnFunc(hub *lineConn) func() {
	return func() {
		if hub != nil {
			_ = hub.conn.Close()
		}
	}
}

// writeClient writes to the client.
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

// detach removes the hub and reports whether the conversation is over. After the end of the input it allows one more
// hub, for open requests.
func (c *relayClient) detach() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub = nil
	over = c.eof && len(c.held) == 0 && (c.lastTry || c.conv.openRequests() == 0)
	c.lastTry = c.eof
	return over
}

// failPending returns the responses to open requests when there is no further hub.
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

// stopReading stops the reader.
func (c *relayClient) stopReading() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eof = true
	c.heldRoom.Broadcast()
}

// waitAtMost waits for a group up to a limit. A read of a terminal cannot always be interrupted, and the process is
// about to end.
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
