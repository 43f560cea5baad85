package transport

import (
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// eachMessage calls take with each message in data, in order. Usually data contains one message, but lines with several
// messages and batches occur. eachMessage returns false if data also contains anything that is not a message.
func eachMessage(data []byte, take func(mcp.Message)) (clean bool) {
	if m, err := mcp.ParseMessage(data); err == nil {
		return yieldIfValid(m, take)
	}
	values, clean := mcp.SplitJSONValues(data)
	for _, v := range values {
		if !mcp.IsBatch(v) {
			m, err := mcp.ParseMessage(v)
			clean = err == nil && yieldIfValid(m, take) && clean
			continue
		}
		for e := range rawjson.Elements(v) {
			m, err := mcp.ParseMessage(e)
			clean = err == nil && yieldIfValid(m, take) && clean
		}
	}
	return clean
}

func yieldIfValid(m mcp.Message, take func(mcp.Message)) bool {
	if !isResponseOrMalformed(m) && !m.IsRequest() && !m.IsNotification() {
		return false
	}
	take(m)
	return true
}

// readLoop reads the server's messages in a separate goroutine, until the connection ends or another goroutine gets the
// turn to read. The goroutine in which the connection ends is the last one to end.
func (s *StreamConn) readLoop() {
	var resume Parker
	take := func(m mcp.Message) {
		if next := s.dispatch(m); next != nil {
			if resume != nil {
				resume.Wake() // a line with several messages
			}
			resume = next
		}
	}
	for {
		if resume != nil && !s.resume(resume) {
			return
		}
		resume = nil
		line, err := s.o.Receive()
		if s.ctx.Err() != nil {
			break
		}
		switch {
		case errors.Is(err, mcp.ErrNotMessage):
			s.reportJunk(nil)
			continue
		case errors.Is(err, mcp.ErrTooLong):
			s.failOversized(err)
			continue
		}
		if err != nil {
			s.markEnded(fmt.Errorf("receive: %w", err))
			break
		}
		if !eachMessage(line, take) {
			s.reportJunk(line)
			s.failGarbled(line)
		}
	}
	s.responder.closeAndWait()
	s.writer.Wait()
	close(s.finished)
}

// maxInlineResponse is the maximum size in bytes of a response whose request continues in the reading goroutine. A
// larger response takes longer to process.
const maxInlineResponse = 16 << 10

// resume continues a request whose response was read. It returns false if another goroutine has got the turn to read.
func (s *StreamConn) resume(p Parker) bool {
	if s.pending.hasOthers() || s.o.MoreReceived != nil && s.o.MoreReceived() {
		p.Wake()
		return true
	}
	return s.turn.Do(p.Resume)
}

func (s *StreamConn) reportJunk(line []byte) {
	if s.o.OnJunk != nil {
		s.o.OnJunk(line)
	}
}

// failOversized fails the waiting call if there is exactly one. A message above the size limit was almost certainly its
// response, and without it the call would wait until its timeout.
func (s *StreamConn) failOversized(err error) {
	s.reportJunk(nil)
	if c := s.pending.removeOnlyWaiting(); c != nil {
		c.complete(mcp.Message{}, wrapCause(ErrLost, err))
	}
}

// failGarbled fails the call whose ID an invalid line contains. The server does not repeat the response, so the call
// would wait until its timeout.
func (s *StreamConn) failGarbled(line []byte) {
	err := rawjson.Valid(line)
	if err == nil || len(line) == 0 || line[0] != '{' || rawjson.Get(line, "method") != nil {
		return
	}
	id, ok := parseRequestID(rawjson.Get(line, "id"))
	if !ok {
		return
	}
	if c := s.pending.remove(id); c != nil {
		c.complete(mcp.Message{}, wrapCause(ErrLost, fmt.Errorf("the answer is not valid JSON: %w", err)))
	}
}

// dispatch handles one message of the server. If the message is the response to a parked request that must be resumed,
// dispatch returns its Parker.
func (s *StreamConn) dispatch(m mcp.Message) (resume Parker) {
	switch {
	case isResponseOrMalformed(m):
		return s.deliverResponse(m)
	case m.IsRequest():
		s.responder.respond(s.ctx, s.pending.sharedRequestHandler(), m)
	case m.Method == mcp.NoteCancelled:
		s.responder.cancelRequest(m.Params)
	default:
		if to := s.pending.sharedNotificationHandler(m.Method, m.Params); to != nil {
			to.HandleNotification(m.Method, m.Params)
		}
	}
	return nil
}

// deliverResponse passes a response to its request. If the request is parked and the response is small, it returns the
// Parker, and the request must be resumed.
func (s *StreamConn) deliverResponse(m mcp.Message) (resume Parker) {
	var c *pendingRequest
	if id, ok := parseRequestID(m.ID); ok {
		c = s.pending.remove(id)
	} else if isParseFailure(m) {
		c = s.pending.removeOnlyWaiting()
	}
	if c == nil {
		s.log.Debug("dropped a response without a matching request")
		return nil
	}
	if c.parker == nil || len(m.Result)+len(m.Error) > maxInlineResponse {
		c.complete(m, nil)
		return nil
	}
	c.reply = m
	close(c.ready)
	return c.parker
}
