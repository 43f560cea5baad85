package link

import (
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Messages gives take every message in data, in order: nearly always one, but several on a line and batches are seen too.
// It says whether data held nothing else.
func Messages(data []byte, take func(wire.Message)) (clean bool) {
	if m, err := wire.Parse(data); err == nil {
		return message(m, take)
	}
	values, clean := wire.SplitValues(data)
	for _, v := range values {
		if !wire.IsBatch(v) {
			m, err := wire.Parse(v)
			clean = err == nil && message(m, take) && clean
			continue
		}
		for e := range wire.Elements(v) {
			m, err := wire.Parse(e)
			clean = err == nil && message(m, take) && clean
		}
	}
	return clean
}

func message(m wire.Message, take func(wire.Message)) bool {
	if !m.IsResponse() && !m.IsRequest() && !m.IsNotification() {
		return false
	}
	take(m)
	return true
}

// read is the goroutine that takes in what the server writes. It ends last.
func (s *Stream) read() {
	defer close(s.gone)
	take := s.take
	for {
		line, err := s.o.Next()
		if s.ctx.Err() != nil {
			break
		}
		switch {
		case errors.Is(err, wire.ErrNoMessage):
			s.junk(nil)
			continue
		case errors.Is(err, wire.ErrTooLong):
			s.tooLong(err)
			continue
		}
		if err != nil {
			s.end(fmt.Errorf("receive: %w", err))
			break
		}
		if !Messages(line, take) {
			s.junk(line)
			s.garbled(line)
		}
	}
	s.asks.Wait()
	s.writer.Wait()
}

func (s *Stream) junk(line []byte) {
	if s.o.OnJunk != nil {
		s.o.OnJunk(line)
	}
}

// tooLong reports a message over the bound. Where one call waits it was its answer, nearly surely, and to wait on would
// be to wait for the time-out.
func (s *Stream) tooLong(err error) {
	s.junk(nil)
	if c := s.calls.takeOnly(); c != nil {
		c.finish(wire.Message{}, because(ErrLost, err))
	}
}

// garbled ends the call whose answer a line would have been, were it JSON throughout: it is not said again, and to wait on
// would be to wait for the time-out.
func (s *Stream) garbled(line []byte) {
	err := wire.Valid(line)
	if err == nil || len(line) == 0 || line[0] != '{' || wire.Get(line, "method") != nil {
		return
	}
	id, ok := idOf(wire.Get(line, "id"))
	if !ok {
		return
	}
	if c := s.calls.Take(id); c != nil {
		c.finish(wire.Message{}, because(ErrLost, fmt.Errorf("the answer is no JSON: %w", err)))
	}
}

// take takes in one message.
func (s *Stream) take(m wire.Message) {
	switch {
	case m.IsResponse():
		s.answered(m)
	case m.IsRequest():
		s.asks.Answer(s.ctx, s.calls.Asked(), m)
	case m.Method == wire.NoteCancelled:
		s.asks.Cancelled(m.Params)
	default:
		if to := s.calls.Noted(m.Method, m.Params); to != nil {
			to.Notify(m.Method, m.Params)
		}
	}
}

func (s *Stream) answered(m wire.Message) {
	var c *Call
	if id, ok := idOf(m.ID); ok {
		c = s.calls.Take(id)
	} else if NotUnderstood(m) {
		c = s.calls.takeOnly()
	}
	if c == nil {
		s.log.Debug("an answer to no request of ours is dropped")
		return
	}
	c.finish(m, nil)
}
