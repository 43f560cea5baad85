package transport

import (
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// eachMessage gives take every message in data, in order: nearly always one, but several on a line and batches are
// seen too. It says whether data held nothing else.
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
	if !isResponse(m) && !m.IsRequest() && !m.IsNotification() {
		return false
	}
	take(m)
	return true
}

// readLoop is the goroutine that takes in what the server writes. It ends last.
func (s *StreamConn) readLoop() {
	defer close(s.finished)
	take := s.dispatch
	for {
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
}

func (s *StreamConn) reportJunk(line []byte) {
	if s.o.OnJunk != nil {
		s.o.OnJunk(line)
	}
}

// failOversized reports a message over the bound. Where one call waits it was its answer, nearly surely, and to wait
// on would be to wait for the time-out.
func (s *StreamConn) failOversized(err error) {
	s.reportJunk(nil)
	if c := s.pending.removeOnlyWaiting(); c != nil {
		c.complete(mcp.Message{}, wrapCause(ErrLost, err))
	}
}

// failGarbled ends the call whose answer a line would have been, were it JSON throughout: it is not said again, and to
// wait on would be to wait for the time-out.
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
		c.complete(mcp.Message{}, wrapCause(ErrLost, fmt.Errorf("the answer is no JSON: %w", err)))
	}
}

// dispatch takes in one message.
func (s *StreamConn) dispatch(m mcp.Message) {
	switch {
	case isResponse(m):
		s.deliverResponse(m)
	case m.IsRequest():
		s.responder.respond(s.ctx, s.pending.sharedRequestHandler(), m)
	case m.Method == mcp.NoteCancelled:
		s.responder.cancelRequest(m.Params)
	default:
		if to := s.pending.sharedNotificationHandler(m.Method, m.Params); to != nil {
			to.HandleNotification(m.Method, m.Params)
		}
	}
}

func (s *StreamConn) deliverResponse(m mcp.Message) {
	var c *pendingRequest
	if id, ok := parseRequestID(m.ID); ok {
		c = s.pending.remove(id)
	} else if isParseFailure(m) {
		c = s.pending.removeOnlyWaiting()
	}
	if c == nil {
		s.log.Debug("an answer to no request of ours is dropped")
		return
	}
	c.complete(m, nil)
}
