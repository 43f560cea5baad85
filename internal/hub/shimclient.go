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

// A shimClient is a client whose input and output are lent to the hub: it reads and says nothing itself while there is
// one. One goroutine has all of it.
type shimClient struct {
	in, out *os.File
	conv    *conversation
	hub     *lineConn
	// hubLines has what the hub says, until it is gone.
	hubLines chan []byte
	ring     *sharedRing
	// inputOffset is up to where in the input of this slate the client was heard; eof says that it has no end after
	// that.
	inputOffset uint64
	eof         bool
	// unrecordedInput is what another hub had read of the input and not taken note of.
	unrecordedInput []byte
	// answeredNext are the requests whose answers a hub is about to note. They count with the note of what it says:
	// one that dies in between has said nothing, and left nothing to say again.
	answeredNext [][]byte
	// readPart and large are of a line that a hub is about to note, in the same way.
	readPart      []byte
	largeRequests []pendingRequest
	// replayTimeout is how long what a session said before may take to settle: replayTimeout.
	replayTimeout   time.Duration
	moving, leaving bool
	lastTry         bool
}

// serve lends the client to the hubs that attach gives, until its input or ctx ends. The error is attach's, or the
// client's.
func (c *shimClient) serve(ctx context.Context, attach func(context.Context) (*lineConn, error)) error {
	defer c.releaseRing()
	for {
		hub, err := attach(ctx)
		c.releaseRing()
		if err != nil {
			_ = c.writeClient(lostResponseLines(c.lostRequests())...) // the error says why
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

// completeHello completes what is said to the next hub.
func (c *shimClient) completeHello(said hello) hello {
	said.PassesFiles, said.HubNumber = true, c.conv.nextHubNumber()
	return said
}

// isOver says whether the conversation is. After the end of the input another hub is looked for once, for what is open.
func (c *shimClient) isOver() bool {
	done := c.conv.openRequests() == 0 && c.conv.unsureLines == nil
	over := c.eof && (c.lastTry || done)
	c.lastTry = c.eof
	return over
}

// serveHub lends the client to a hub, until the hub is gone or has nothing more to say. The error is for a client that
// is gone, and for a system that has no memory to share.
func (c *shimClient) serveHub(hub *lineConn) error {
	defer hub.conn.Close()
	slate, file, err := newSharedRing()
	if err != nil {
		return err
	}
	defer file.Close()
	slate.loadInbox(c.unrecordedInput) // in the next hub's place: it may die before it has read a word
	c.hub, c.ring, c.inputOffset, c.hubLines = hub, slate, 0, make(chan []byte)
	c.answeredNext, c.readPart, c.largeRequests = nil, nil, nil
	for _, f := range []*os.File{c.in, c.out, file} {
		if sendFile(hub.conn, f) != nil {
			return nil // it is gone again
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
	c.moving, c.leaving = false, false // from here on they are this hub's word
	err = c.runConversation(moved)
	_ = hub.conn.Close()
	for range c.hubLines {
		// what the hub said last; all that counts of it is on the slate
	}
	reading.Wait()
	c.readRing()
	return err
}

// releaseRing takes leave of the last hub, once there is another, or none at all. Until then it may read and say more,
// also after its connection was closed: a hub that ends is gone for sure when the next one is there.
func (c *shimClient) releaseRing() {
	if c.ring == nil {
		return
	}
	c.readRing()
	c.unrecordedInput = c.ring.unconsumedInbox(c.inputOffset)
	c.ring.close()
	c.ring = nil
}

// runConversation is what is said with a hub; moved says that another sent the client there. Why it ends does not
// matter but for a client that is gone: there is another hub, or nobody to tell.
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
	for text := range c.hubLines {
		c.handleNotice(text)
	}
	return nil
}

// awaitMessage takes what the hub says until something that is waited for, and no longer than patience: it says
// whether that came.
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

// resumeAt tells the hub what the session was told before, tells the client what is lost, asks again what may be, and
// gives the client the word.
func (c *shimClient) resumeAt(moved bool) error {
	first, _ := c.conv.replaySession()
	c.hub.writeLines(first)
	if c.conv.openReplays > 0 { // a server need not take back what it let be watched once
		c.awaitMessage(func(m mcp.Message) bool {
			if isReplayID(m.ID) {
				c.conv.replayAnswered()
			}
			return c.conv.openReplays == 0
		})
	}
	var told [][]byte
	if c.conv.partialLine {
		// what was cut off is no message, also where only its end is missing, and the next one is no part of it
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

// handleNotice takes what the hub says to the shim.
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

// closeWriteFunc ends a move that takes too long. The hub lets go of the client's output first: two would speak at
// once otherwise.
func closeWriteFunc(hub *lineConn) func() { return func() { _ = hub.conn.CloseWrite() } }

// readRing reads the slate.
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

// applyRead takes a note of what the client said, behind its place in the input.
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

// lostRequests gives up what is open where there is no hub any more.
func (c *shimClient) lostRequests() (lost []pendingRequest) {
	for _, f := range c.conv.pending {
		lost = append(lost, f)
	}
	return lost
}

// writeClient writes to the client.
func (c *shimClient) writeClient(lines ...[]byte) error {
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}
