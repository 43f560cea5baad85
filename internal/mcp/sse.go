package mcp

import (
	"bufio"
	"bytes"
	"context"
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
	// data collects the data of the current event. hasData is set after its first data line.
	data    *AnswerBuffer
	hasData bool
	// line contains the current line if src does not have the whole line in its buffer. inData is set if the line is a
	// data line whose value goes to data as it is read, and skipping if the rest of the line is not needed.
	line             []byte
	inData, skipping bool
	// size is the number of bytes of the current event. tooLong is set while the rest of an event that exceeds the size
	// limit is discarded.
	size    int
	tooLong bool
	noRoom  bool // set with tooLong if Next has returned the error already
	// begun is set after the first line. afterCR is set if the last line ended in CR; a following LF then belongs to
	// that line end.
	begun, afterCR bool
}

// NewSSEReader returns a reader for events of at most max bytes from r; 0 means DefaultMaxSSEEvent.
func NewSSEReader(r io.Reader, max int) *SSEReader {
	if max <= 0 {
		max = DefaultMaxSSEEvent
	}
	return &SSEReader{src: bufio.NewReaderSize(r, bufferSize), max: max,
		data: &AnswerBuffer{}}
}

// UseBudget makes the reader take the memory of long events from a budget. An event waits for room until ctx ends, for
// at most patience if that is positive. If there is none, Next returns a *NoRoomError, and the next call continues after
// that event.
func (r *SSEReader) UseBudget(ctx context.Context, budget *AnswerBudget, patience time.Duration) {
	r.data = NewAnswerBuffer(ctx, budget, patience)
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
		case IsNoRoom(err):
			r.dropEvent()
			return SSEEvent{}, err
		case err != nil:
			r.data.Drop()
			return SSEEvent{}, err
		case r.tooLong && len(line) > 0:
			continue
		case len(line) > 0 && line[0] == ':':
			r.size -= len(line) // a comment does not count: a server may send comments for hours
			continue
		case len(line) > 0:
			if err := r.parseField(&e, line); err != nil {
				r.dropEvent()
				return SSEEvent{}, err
			}
			continue
		case r.inData || r.skipping:
			r.inData, r.skipping = false, false
			continue
		case r.tooLong:
			refused := r.noRoom
			r.tooLong, r.noRoom, r.size = false, false, 0
			if refused { // Next has returned the error for this event
				e = SSEEvent{Retry: -1}
				continue
			}
			return SSEEvent{}, ErrTooLong
		case r.data.Len() > 0 || e.ID != "" || e.Retry >= 0:
			r.size = 0
			if r.hasData {
				r.hasData = false
				e.Data, err = r.data.Bytes()
			}
			return e, err
		}
		r.data.Drop()
		e, r.size, r.hasData = SSEEvent{Retry: -1}, 0, false
	}
}

// dropEvent drops the rest of an event for which Next returns an error at once.
func (r *SSEReader) dropEvent() {
	r.data.Drop()
	r.tooLong, r.noRoom, r.line = true, true, nil
	r.hasData, r.inData, r.skipping = false, false, false
}

// addData begins a data line and adds the first part of its value.
func (r *SSEReader) addData(value []byte) error {
	if r.hasData {
		if err := r.data.Append([]byte{'\n'}); err != nil {
			return err
		}
	}
	r.hasData = true
	return r.data.Append(value)
}

// parseField parses one line of the event and sets the field that the line contains.
func (r *SSEReader) parseField(e *SSEEvent, line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.addData(value)
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
	return nil
}

// readLine returns one line without its line end. The line is valid until the next call. If an event exceeds the size
// limit, readLine discards the rest of the event. It returns a placeholder for each line that is not empty, so that
// Next finds the end of the event. The value of a long data line is added to the data as it is read, and a long comment
// is skipped; readLine then leaves inData or skipping set and returns nothing.
func (r *SSEReader) readLine() ([]byte, error) {
	if r.line = r.line[:0]; cap(r.line) > bufferSize {
		r.line = nil
	}
	filled := false // whether the line is not empty, also if its content was discarded
	before := r.size
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
		if whole := ended && !r.inData && !r.skipping && len(r.line) == 0; whole && !r.tooLong {
			r.discardLine(part, end)
			return r.trimByteOrderMark(part[:end]), nil
		}
		if err := r.addPart(part[:end]); err != nil {
			return nil, err
		}
		if !ended {
			_, _ = r.src.Discard(end)
			continue
		}
		r.discardLine(part, end)
		switch {
		case r.tooLong && filled:
			return []byte{':'}, nil
		case r.skipping && len(r.line) > 0 && r.line[0] == ':':
			r.size = before
			return nil, nil
		case r.inData, r.skipping:
			return nil, nil
		}
		return r.trimByteOrderMark(r.line), nil
	}
}

// addPart adds a part of a line that the source does not have whole. As soon as the part shows that it is a data line,
// its value goes to the data. The rest of a comment, or of a field that is too long to be of use, is skipped.
func (r *SSEReader) addPart(part []byte) error {
	const field = "data:"
	switch {
	case r.tooLong, r.skipping:
		return nil
	case r.inData:
		return r.data.Append(part)
	}
	r.line = append(r.line, part...)
	if len(r.line) <= len(field)+len(byteOrderMark) {
		return nil
	}
	r.line = r.trimByteOrderMark(r.line)
	if string(r.line[:len(field)]) == field {
		value := bytes.TrimPrefix(r.line[len(field):], []byte(" "))
		r.inData = true
		err := r.addData(value)
		r.line = r.line[:0]
		return err
	}
	r.skipping = r.line[0] == ':' || len(r.line) > bufferSize
	return nil
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
		r.tooLong, r.line, r.hasData, r.inData, r.skipping = true, nil, false, false, false
		r.data.Drop()
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
