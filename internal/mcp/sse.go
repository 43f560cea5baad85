package mcp

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// DefaultMaxSSEEvent is how many bytes an event may have by default.
const DefaultMaxSSEEvent = 64 << 20

// SSEComment is a server-sent comment: a sign of life that readers pass over.
const SSEComment = ": \n\n"

// An SSEEvent is one server-sent event.
type SSEEvent struct {
	// Name is the event's type and ID its id; empty where the event has none.
	Name, ID string
	// Data are the data lines, joined by newlines. It is nil where there was no data field, and belongs to the caller.
	Data []byte
	// Retry is the time to wait before the stream is opened again; negative where the event does not say.
	Retry time.Duration
}

// An SSEReader reads server-sent events as the HTML standard has them: lines end in CR, LF or CRLF, a byte order mark
// in front is passed over, and an event that the stream's end cuts off is not an event. It is for one goroutine.
type SSEReader struct {
	src *bufio.Reader
	max int
	// line holds a line that the source's buffer does not hold whole.
	line []byte
	// size counts the bytes of the event being read; over is set while the rest of one over the bound is thrown away.
	size    int
	tooLong bool
	// begun is set behind the first line, cr where the last line ended in CR: a LF that follows belongs to it.
	begun, afterCR bool
}

// NewSSEReader reads events of at most max bytes from r; 0 is DefaultMaxSSEEvent.
func NewSSEReader(r io.Reader, max int) *SSEReader {
	if max <= 0 {
		max = DefaultMaxSSEEvent
	}
	return &SSEReader{src: bufio.NewReaderSize(r, bufferSize), max: max}
}

// Next returns the next event with data, an id or a retry time. (An id without data makes the stream of a 2025-11-25
// server resumable.) For an event over the bound it returns ErrTooLong, and the next call continues after it. At the
// end it returns io.EOF, or the source's error.
func (r *SSEReader) Next() (SSEEvent, error) {
	e := SSEEvent{Retry: -1}
	for {
		line, err := r.readLine()
		switch {
		case err != nil:
			return SSEEvent{}, err
		case r.tooLong && len(line) > 0:
			continue
		case len(line) > 0 && line[0] == ':':
			r.size -= len(line) // a comment does not count as part of the event: a server may send them for hours
			continue
		case len(line) > 0:
			e.parseField(line)
			continue
		case r.tooLong:
			r.tooLong, r.size = false, 0
			return SSEEvent{}, ErrTooLong
		case len(e.Data) > 0 || e.ID != "" || e.Retry >= 0:
			r.size = 0
			return e, nil
		}
		e, r.size = SSEEvent{Retry: -1}, 0
	}
}

// parseField takes in one line of the event.
func (e *SSEEvent) parseField(line []byte) {
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
func (r *SSEReader) readLine() ([]byte, error) {
	if r.line = r.line[:0]; cap(r.line) > 16*bufferSize {
		r.line = nil
	}
	filled := false // whether the line has content, thrown away or not
	for {
		if _, err := r.src.Peek(1); err != nil {
			return nil, err
		}
		part, _ := r.src.Peek(r.src.Buffered())
		if r.afterCR {
			r.afterCR = false
			if part[0] == '\n' {
				_, _ = r.src.Discard(1)
				continue
			}
		}
		end := lineEndIndex(part)
		ended := end < len(part)
		r.addSize(end)
		filled = filled || end > 0
		if whole := ended && len(r.line) == 0; whole && !r.tooLong {
			r.discardLine(part, end)
			return r.trimByteOrderMark(part[:end]), nil
		}
		if !r.tooLong {
			r.line = append(r.line, part[:end]...)
		}
		if !ended {
			_, _ = r.src.Discard(end)
			continue
		}
		r.discardLine(part, end)
		if r.tooLong && filled {
			return []byte{':'}, nil
		}
		return r.trimByteOrderMark(r.line), nil
	}
}

// discardLine takes the line that ends at part[end] out of the source. The bytes stay readable until the source is
// read again.
func (r *SSEReader) discardLine(part []byte, end int) {
	r.afterCR = part[end] == '\r'
	_, _ = r.src.Discard(end + 1)
}

// addSize adds n bytes to the event and notices when they are too many.
func (r *SSEReader) addSize(n int) {
	if r.size += n; r.size > r.max && !r.tooLong {
		r.tooLong, r.line = true, nil
	}
}

// trimByteOrderMark cuts the byte order mark off the stream's first line.
func (r *SSEReader) trimByteOrderMark(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}

// lineEndIndex is the index of the first CR or LF of b, or its length.
func lineEndIndex(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		end = len(b)
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

// AppendSSEEvent appends the event as it goes over the wire, its data split into lines. Name, ID and Retry are written
// where they are set (Retry: where it is positive), data where it is not nil. Line breaks in Name and ID are left out.
func AppendSSEEvent(dst []byte, e SSEEvent) []byte {
	if e.Name != "" {
		dst = appendSSEField(dst, "event", e.Name)
	}
	if e.ID != "" {
		dst = appendSSEField(dst, "id", e.ID)
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
			if end := lineEndIndex(rest); end < len(rest) {
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

func appendSSEField(dst []byte, name, value string) []byte {
	dst = append(append(dst, name...), ": "...)
	for i := range len(value) {
		if c := value[i]; c != '\n' && c != '\r' && c != 0 {
			dst = append(dst, c)
		}
	}
	return append(dst, '\n')
}
