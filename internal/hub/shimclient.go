package hub

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// A shimClient is the shim's side of the conversation with an MCP client whose input and output the shim passes to the
// hub. While there is a hub, the shim itself neither reads nor writes these files. Only one goroutine uses the fields.
type shimClient struct {
	in, out *os.File
	conv    *conversation
	hub     *lineConn
	// hubLines delivers the hub's lines and is closed when the hub is gone.
	hubLines chan []byte
	ring     *sharedRing
	// inputOffset is the position in the input up to which the ring contains records, counted from the first byte in
	// the ring's inbox. eof is set if the input has ended there.
	inputOffset uint64
	eof         bool
	// unrecordedInput is input that an earlier hub has read but not recorded.
	unrecordedInput []byte
	// answeredNext are the ids of requests whose responses the hub is about to write. The next recWriting record marks
	// these requests as answered. If the hub dies before that record, it has written nothing.
	answeredNext [][]byte
	// readPart and largeRequests contain data of a line that the hub is recording in several records. The next recRead
	// record, the last one of the line, makes them effective.
	readPart      []byte
	largeRequests []pendingRequest
	// replayTimeout is the time limit for the responses to a repeated session setup. See the constant of the same name.
	replayTimeout   time.Duration
	moving, leaving bool
	lastTry         bool
}

// serve passes the client's files to the hubs that attach returns, one after the other, until the client's input or ctx
// ends. It returns an error of attach or of writing to the client, or the cause of ctx's end.
func (c *shimClient) serve(ctx context.Context, attach func(context.Context) (*lineConn, error)) error {
	defer c.releaseRing()
	for {
		hub, err := attach(ctx)
		c.releaseRing()
		if err != nil {
			_ = c.writeClient(lostResponseLines(c.lostRequests())...) // the caller returns the error
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = hub.conn.Close() })
		err = c.serveHub(hub)
		stop()
		switch {
		case err != nil || ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		case c.isOver():
			c.releaseRing()
			return c.writeClient(lostResponseLines(c.lostRequests())...)
		}
	}
}

// completeHello sets the fields of a hello for the next hub that depend on the kind of shim and on the conversation.
func (c *shimClient) completeHello(said hello) hello {
	said.PassesFiles, said.HubNumber = true, c.conv.nextHubNumber()
	return said
}

// isOver reports whether the conversation is over. After the end of the client's input, one more hub may be used to
// answer the open requests.
func (c *shimClient) isOver() bool {
	done := c.conv.openRequests() == 0 && c.conv.unsureLines == nil
	over := c.eof && (c.lastTry || done)
	c.lastTry = c.eof
	return over
}

// serveHub passes the client's files to a hub, and waits until the hub closes the connection. It returns an error if
// the client is gone, or if no shared memory can be created.
func (c *shimClient) serveHub(hub *lineConn) error {
	defer hub.conn.Close()
	ring, file, err := newSharedRing()
	if err != nil {
		return err
	}
	defer file.Close()
	ring.loadInbox(c.unrecordedInput) // copied before the hub is used, because it may die before it reads anything
	c.hub, c.ring, c.inputOffset, c.hubLines = hub, ring, 0, make(chan []byte)
	c.answeredNext, c.readPart, c.largeRequests = nil, nil, nil
	for _, f := range []*os.File{c.in, c.out, file} {
		if sendFile(hub.conn, f) != nil {
			return nil // the hub is gone
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(c.hubLines)
		for text, err := hub.in.Next(); err == nil; text, err = hub.in.Next() {
			c.hubLines <- text
		}
	})
	moved := c.moving
	c.moving, c.leaving = false, false // from here on only this hub sets them
	err = c.runConversation(moved)
	_ = hub.conn.Close()
	for range c.hubLines {
		// Discard the last lines of the hub: the ring contains everything that is needed.
	}
	reading.Wait()
	c.readRing()
	return err
}

// releaseRing reads the remaining records in the ring of the last hub, and closes the ring. It must be called when the
// next hub exists, or when there will be no other hub. Before that, the last hub may still read and write, even after
// its connection was closed. Only when the next hub holds the lock, the last hub has certainly ended.
func (c *shimClient) releaseRing() {
	if c.ring == nil {
		return
	}
	c.readRing()
	c.unrecordedInput = c.ring.unconsumedInbox(c.inputOffset)
	c.ring.close()
	c.ring = nil
}

// runConversation runs the conversation with one hub until the hub is gone. moved reports whether the previous hub
// asked the client to move. It returns an error only if the client is gone; otherwise the next hub continues.
func (c *shimClient) runConversation(moved bool) error {
	if greeting := c.conv.replayInitialize(); greeting != nil {
		_ = c.hub.writeLine(greeting)
		if !c.awaitMessage(func(m mcp.Message) bool { return isReplayID(m.ID) }) {
			return nil
		}
	}
	if err := c.resumeAt(moved); err != nil {
		return err
	}
	process.ReleaseProgramPages() // from here on the shim only waits for notices
	for text := range c.hubLines {
		c.handleNotice(text)
	}
	return nil
}

// awaitMessage handles lines of the hub until the awaited message arrives, for at most replayTimeout. It reports
// whether the message arrived.
func (c *shimClient) awaitMessage(awaited func(mcp.Message) bool) bool {
	timer := time.NewTimer(c.replayTimeout)
	defer timer.Stop()
	for {
		select {
		case text, ok := <-c.hubLines:
			if !ok {
				return false
			}
			if m, err := mcp.ParseMessage(text); err == nil && awaited(m) {
				return true
			}
			c.handleNotice(text)
		case <-timer.C:
			return false
		}
	}
}

// resumeAt continues the conversation at a new hub. It repeats the session setup, sends error responses to the client
// for lost requests, and repeats the requests that are safe to repeat. Then it asks the hub to read the client's input.
// moved reports whether the previous hub asked the client to move.
func (c *shimClient) resumeAt(moved bool) error {
	first, _ := c.conv.replaySession()
	c.hub.writeLines(first)
	if c.conv.openReplays > 0 { // some requests of the session setup are not answered yet
		c.awaitMessage(func(m mcp.Message) bool {
			if isReplayID(m.ID) {
				c.conv.replayAnswered()
			}
			return c.conv.openReplays == 0
		})
	}
	var told [][]byte
	if c.conv.partialLine {
		// End the partial line, so that the next line does not continue it. The "!" makes it invalid even if only the
		// line feed was missing.
		told = append(told, []byte("!\n"))
	}
	if c.conv.unsureLines != nil {
		told = append(told, c.conv.unsureLines)
	}
	c.conv.partialLine, c.conv.unsureLines = false, nil
	if c.conv.requestCount > 0 {
		repeat, lost, cancelled := c.conv.changeHub()
		c.hub.writeLines(repeat)
		told = append(append(told, cancelled...), lostResponseLines(lost)...)
	}
	if moved && c.conv.initialized != nil {
		told = append(told, listChangedLines()...)
	}
	if err := c.writeClient(told...); err != nil {
		return err
	}
	_ = c.hub.writeLine(mcp.Message{Method: noticeStart}.Append(nil))
	return nil
}

// handleNotice handles a notice of the hub.
func (c *shimClient) handleNotice(text []byte) {
	switch m, _ := mcp.ParseMessage(text); m.Method {
	case noticeReadRing:
		c.readRing()
	case noticeMove:
		c.moving = true
		c.readRing()
		time.AfterFunc(moveTime, closeWriteFunc(c.hub))
	case noticeHubEnds:
		c.leaving = true
	}
	if c.moving && !c.leaving && c.conv.openRequests() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// closeWriteFunc returns a function that closes the writing side of the connection to the hub. It is called when a move
// takes longer than moveTime. The reading side stays open: when the hub closes it, the hub no longer uses the client's
// output, and another hub may write to it.
func closeWriteFunc(hub *lineConn) func() { return func() { _ = hub.conn.CloseWrite() } }

// readRing reads the records in the ring and updates the conversation by them.
func (c *shimClient) readRing() {
	c.ring.readRecords(func(kind byte, text []byte) {
		switch kind {
		case recRead:
			c.applyRead(text)
		case recLargeRequest:
			var r largeRequest
			if json.Unmarshal(text, &r) == nil {
				c.largeRequests = append(c.largeRequests, pendingRequest{id: r.ID, method: r.Method, name: r.Name,
					modern: r.Modern})
			}
		case recReadPart:
			c.readPart = append(c.readPart, text...)
		case recEOF:
			c.eof = true
		case recAnswered:
			c.answeredNext = append(c.answeredNext, text)
		case recHubRequest:
			c.conv.hubRequests[string(c.conv.clientID(text))] = text
		case recWriting:
			for _, id := range c.answeredNext {
				delete(c.conv.pending, string(id))
			}
			c.conv.unsureLines, c.conv.partialLine, c.answeredNext = text, false, nil
		case recLongWrite:
			c.conv.partialLine = true
		case recWritten:
			c.conv.unsureLines, c.conv.partialLine = nil, false
		}
	})
}

// applyRead updates the conversation by a recRead record, which contains a line of the client and the end position of
// the line in the input.
func (c *shimClient) applyRead(text []byte) {
	if len(text) < 8 {
		return
	}
	c.inputOffset = binary.LittleEndian.Uint64(text)
	c.conv.clientLine(append(c.readPart, text[8:]...))
	for _, f := range c.largeRequests {
		c.conv.addRequest(f)
	}
	c.readPart, c.largeRequests = nil, nil
}

// lostRequests returns the open requests. It is used when there will be no other hub.
func (c *shimClient) lostRequests() (lost []pendingRequest) {
	for _, f := range c.conv.pending {
		lost = append(lost, f)
	}
	return lost
}

// writeClient writes lines to the client. The error is errClientGone.
func (c *shimClient) writeClient(lines ...[]byte) error {
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}
