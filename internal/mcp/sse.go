package mcp

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"
)

// DefaultMaxSSEEvent is the default maximum size of an event in bytes.
const DefaultMaxSSEEvent = 64 << 20

// SSEComment is a comment in an event stream. It shows that the connection is alive; readers ignore it.
const SSEComment = ": \n\n"

// An SSEEvent is one server-sent event.
type SSEEvent struct {
	// Name is the event's type and ID its id; they are empty if the event has none.
	Name, ID string
	// Data contains the data lines, joined by newlines. It is nil if the event has no data field. The reader does not
	// reuse it.
	Data []byte
	// Retry is how long the client must wait before it opens the stream again; negative if the event does not specify
	// it.
	Retry time.Duration
}

// An SSEReader reads server-sent events as the HTML standard specifies. Lines end in CR, LF or CRLF. A byte order mark
// at the beginning is ignored. An event that is incomplete at the end of the stream is ignored. The methods must be
// called from one goroutine.
type SSEReader struct {
	src *bufio.Reader
	max int
	// line contains the current line if src does not have the whole line in its buffer.
	line []byte
	// size is the number of bytes of the current event. tooLong is set while the rest of an event that exceeds the size
	// limit is discarded.
	size    int
	tooLong bool
	// begun is set after the first line. afterCR is set if the last line ended in CR; a following LF then belongs to
	// that line end.
	begun, afterCR bool
}

// NewSSEReader returns a reader for events of at most max bytes from r; 0 means DefaultMaxSSEEvent.
func NewSSEReader(r io.Reader, max int) *SSEReader {
	if max <= 0 {
		max = DefaultMaxSSEEvent
	}
	return &SSEReader{src: bufio.NewReaderSize(r, bufferSize), max: max}
}

// Next returns the next event that has data, an ID or a retry time. An event with only an ID is returned because a
// client needs the ID to resume the stream of a 2025-11-25 server. For an event that exceeds the size limit, Next
// returns ErrTooLong, and the next call continues after that event. At the end of the stream, Next returns io.EOF or
// the source's error.
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
			r.size -= len(line) // a comment does not count: a server may send comments for hours
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

// parseField parses one line of the event and sets the field that the line contains.
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

// readLine returns one line without its line end. The line is valid until the next call. If an event exceeds the size
// limit, readLine discards the rest of the event. It returns a placeholder for each line that is not empty, so that
// Next finds the end of the event.
func (r *SSEReader) readLine() ([]byte, error) {
	if r.line = r.line[:0]; cap(r.line) > 16*bufferSize {
		r.line = nil
	}
	filled := false // whether the line is not empty, also if its content was discarded
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

// discardLine removes the line that ends at part[end] from the source. The bytes of part stay valid until the source is
// read again.
func (r *SSEReader) discardLine(part []byte, end int) {
	r.afterCR = part[end] == '\r'
	_, _ = r.src.Discard(end + 1)
}

// addSize adds n to the size of the event, and sets tooLong if the size exceeds the limit.
func (r *SSEReader) addSize(n int) {
	if r.size += n; r.size > r.max && !r.tooLong {
		r.tooLong, r.line = true, nil
	}
}

// trimByteOrderMark removes the byte order mark from the first line of the stream.
func (r *SSEReader) trimByteOrderMark(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line
}

// lineEndIndex returns the index of the first CR or LF in b, or the length of b if there is none.
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

// AppendSSEEvent appends the event in the format of an event stream, with one data line for each line of Data. It
// writes Name and ID if they are not empty, Retry if it is positive, and Data if it is not nil. Line breaks in Name and
// ID are removed.
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
