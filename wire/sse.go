package wire

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// DefaultMaxEvent is how many bytes an event may have where nobody says otherwise.
const DefaultMaxEvent = 64 << 20

// Comment is a server-sent comment: a sign of life that readers pass over.
const Comment = ": \n\n"

// An Event is one server-sent event.
type Event struct {
	// Name is the event's type and ID its id; empty where the event has none.
	Name, ID string
	// Data are the data lines, joined by newlines. It is nil where there was no data field, and belongs to the caller.
	Data []byte
	// Retry is the time to wait before the stream is opened again; negative where the event does not say.
	Retry time.Duration
}

// An EventReader reads server-sent events as the HTML standard has them: lines end in CR, LF or CRLF, a byte order mark
// in front is passed over, and an event that the stream's end cuts off is no event. It is for one goroutine.
type EventReader struct {
	src *bufio.Reader
	max int
	// line holds a line that the source's buffer does not hold whole.
	line []byte
	// size counts the bytes of the event being read; over is set while the rest of one over the bound is thrown away.
	size int
	over bool
	// begun is set behind the first line, cr where the last line ended in CR: a LF that follows belongs to it.
	begun, cr bool
}

// NewEventReader reads events of at most max bytes from r; 0 is DefaultMaxEvent.
func NewEventReader(r io.Reader, max int) *EventReader {
	if max <= 0 {
		max = DefaultMaxEvent
	}
	return &EventReader{src: bufio.NewReaderSize(r, bufferSize), max: max}
}

// Next returns the next event that says something: one with data, an id or a time for retries. (An id without data is
// how a server of 2025-11-25 makes its stream resumable.) It gives ErrTooLong for an event over the bound, and goes on
// behind it; io.EOF at an orderly end; else the source's error.
func (r *EventReader) Next() (Event, error) {
	e := Event{Retry: -1}
	for {
		line, err := r.readLine()
		switch {
		case err != nil:
			return Event{}, err
		case r.over && len(line) > 0:
			continue
		case len(line) > 0 && line[0] == ':':
			r.size -= len(line) // a comment is no part of the event: signs of life may come for hours
			continue
		case len(line) > 0:
			e.field(line)
			continue
		case r.over:
			r.over, r.size = false, 0
			return Event{}, ErrTooLong
		case len(e.Data) > 0 || e.ID != "" || e.Retry >= 0:
			r.size = 0
			return e, nil
		}
		e, r.size = Event{Retry: -1}, 0
	}
}

// field takes in one line of the event.
func (e *Event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if e.Data == nil {
			e.Data = make([]byte, 0, len(value))
		} else {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, value...)
	case "event":
		e.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.ID = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			e.Retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// readLine returns one line without its end. It is good until the next call. Of an event over the bound the lines come
// without their content, so that its end is found.
func (r *EventReader) readLine() ([]byte, error) {
	if r.line = r.line[:0]; cap(r.line) > 16*bufferSize {
		r.line = nil
	}
	filled := false // whether the line has content, thrown away or not
	for {
		if _, err := r.src.Peek(1); err != nil {
			return nil, err
		}
		part, _ := r.src.Peek(r.src.Buffered())
		if r.cr {
			r.cr = false
			if part[0] == '\n' {
				_, _ = r.src.Discard(1)
				continue
			}
		}
		end := lineEnd(part)
		ended := end < len(part)
		r.count(end)
		filled = filled || end > 0
		if whole := ended && len(r.line) == 0; whole && !r.over {
			r.consume(part, end)
			return r.first(part[:end]), nil
		}
		if !r.over {
			r.line = append(r.line, part[:end]...)
		}
		if !ended {
			_, _ = r.src.Discard(end)
			continue
		}
		r.consume(part, end)
		if r.over && filled {
			return []byte{':'}, nil
		}
		return r.first(r.line), nil
	}
}

// consume takes the line that ends at part[end] out of the source. The bytes stay readable until the source is read again.
func (r *EventReader) consume(part []byte, end int) {
	r.cr = part[end] == '\r'
	_, _ = r.src.Discard(end + 1)
}

// count adds n bytes to the event and notices when they are too many.
func (r *EventReader) count(n int) {
	if r.size += n; r.size > r.max && !r.over {
		r.over, r.line = true, nil
	}
}

// first cuts the byte order mark off the stream's first line.
func (r *EventReader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}

// lineEnd is the index of the first CR or LF of b, or its length.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		end = len(b)
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

// AppendEvent appends the event as it goes over the wire, its data split into lines. Name, ID and Retry are written
// where they are set (Retry: where it is positive), data where it is not nil. Line breaks in Name and ID are left out.
func AppendEvent(dst []byte, e Event) []byte {
	if e.Name != "" {
		dst = appendField(dst, "event", e.Name)
	}
	if e.ID != "" {
		dst = appendField(dst, "id", e.ID)
	}
	if e.Retry > 0 {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, e.Retry.Milliseconds(), 10)
		dst = append(dst, '\n')
	}
	if e.Data != nil {
		rest, more := e.Data, true
		for more {
			line := rest
			if end := lineEnd(rest); end < len(rest) {
				line, rest = rest[:end], bytes.TrimPrefix(rest[end:], []byte("\r"))
				rest = bytes.TrimPrefix(rest, []byte("\n"))
			} else {
				more = false
			}
			dst = append(append(append(dst, "data: "...), line...), '\n')
		}
	}
	return append(dst, '\n')
}

func appendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	for i := range len(value) {
		if c := value[i]; c != '\n' && c != '\r' && c != 0 {
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}
