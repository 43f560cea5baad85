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
)

// A shimClient is a client whose input and output are passed to the hub. While there is a hub, the shim neither reads
// nor writes them. One goroutine owns all fields.
type shimClient struct {
	in, out *os.File
	conv    *conversation
	hub     *lineConn
	// hubLines yields the hub's lines and is closed when the hub is gone.
	hubLines chan []byte
	ring     *sharedRing
	// inputOffset is the position in the input up to which this ring has records. eof reports that the input ended
	// there.
	inputOffset uint64
	eof         bool
	// unrecordedInput is input that another hub read and did not record.
	unrecordedInput []byte
	// answeredNext are requests whose responses the hub is about to write. They count with the next recWriting record:
	// if the hub dies before that, it has written nothing.
	answeredNext [][]byte
	// readPart and largeRequests belong to a line that the hub is about to record, in the same way.
	readPart      []byte
	largeRequests []pendingRequest
	// replayTimeout bounds the wait for the responses to a repeated session; see the constant.
	replayTimeout   time.Duration
	moving, leaving bool
	lastTry         bool
}

// serve passes the client to the hubs that attach returns, until its input or ctx ends. The error is that of attach or
// of the client.
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

// completeHello adds the shim's members to a hello for the next hub.
func (c *shimClient) completeHello(said hello) hello {
	said.PassesFiles, said.HubNumber = true, c.conv.nextHubNumber()
	return said
}

// isOver reports whether the conversation is over. After the end of the input it allows one more hub, for open
// requests.
func (c *shimClient) isOver() bool {
	done := c.conv.openRequests() == 0 && c.conv.unsureLines == nil
	over := c.eof && (c.lastTry || done)
	c.lastTry = c.eof
	return over
}

// serveHub passes the client to a hub, until the hub is gone or has sent everything. The error is for a client that
// is gone, and for a system without shared memory.
func (c *shimClient) serveHub(hub *lineConn) error {
	defer hub.conn.Close()
	ring, file, err := newSharedRing()
	if err != nil {
		return err
	}
	defer file.Close()
	ring.loadInbox(c.unrecordedInput) // done here, since the next hub may die before it reads anything
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
		// the last lines of the hub; everything that counts is in the ring
	}
	reading.Wait()
	c.readRing()
	return err
}

// releaseRing closes the ring of the last hub once there is another, or none. Until then that hub may read and write,
// also after its connection was closed: it is certainly gone only when the next one holds the lock.
func (c *shimClient) releaseRing() {
	if c.ring == nil {
		return
	}
	c.readRing()
	c.unrecordedInput = c.ring.unconsumedInbox(c.inputOffset)
	c.ring.close()
	c.ring = nil
}

// runConversation runs the conversation with one hub; moved reports that another hub sent the client there. The only
// error is that of a client that is gone; in every other case the next hub takes over.
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
	releaseProgramPages() // the hub has the client's files: from here on the shim only waits for notices
	for text := range c.hubLines {
		c.handleNotice(text)
	}
	return nil
}

// awaitMessage handles lines of the hub until the awaited message, for at most replayTimeout. It reports whether the
// message came.
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

// resumeAt repeats the session at the hub, answers lost requests, repeats those that are safe to repeat, and then lets
// the hub read the client's input.
func (c *shimClient) resumeAt(moved bool) error {
	first, _ := c.conv.replaySession()
	c.hub.writeLines(first)
	if c.conv.openReplays > 0 { // a server may refuse a subscription that it accepted before
		c.awaitMessage(func(m mcp.Message) bool {
			if isReplayID(m.ID) {
				c.conv.replayAnswered()
			}
			return c.conv.openReplays == 0
		})
	}
	var told [][]byte
	if c.conv.partialLine {
		// end the partial line: it is not a message, even if only its end is missing, and must not run into the next
		// one
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

// closeWriteFunc returns a function that ends a move that takes too long. It closes the writing side only, so that the
// hub releases the client's output before another hub writes to it.
func closeWriteFunc(hub *lineConn) func() { return func() { _ = hub.conn.CloseWrite() } }

// readRing applies the records in the ring.
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

// applyRead applies the record of a line that the client sent, preceded by its end position in the input.
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

// lostRequests returns the open requests when there is no further hub.
func (c *shimClient) lostRequests() (lost []pendingRequest) {
	for _, f := range c.conv.pending {
		lost = append(lost, f)
	}
	return lost
}

// writeClient writes lines to the client.
func (c *shimClient) writeClient(lines ...[]byte) error {
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}
