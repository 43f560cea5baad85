package mcp

import (
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// DefaultMaxLine is how many bytes a line may have by default.
const DefaultMaxLine = 32 << 20

// ErrTooLong is the error for a line or an event over its bound. The reader discards it, and continues after it.
var ErrTooLong = errors.New("message is over the size bound")

// ErrNotMessage is the ErrTooLong of a line that cannot be a message, such as a log line.
var ErrNotMessage = fmt.Errorf("a long line that is not a message: %w", ErrTooLong)

// bufferSize is how much a framing reader takes from its source at once.
const bufferSize = 64 << 10

// A LineReader reads messages framed by newlines, as the stdio transport has them. It is for one goroutine.
type LineReader struct {
	src *bufio.Reader
	max int
	// discarding is set while the rest of a line over the bound has still to be thrown away.
	discarding bool
	err        error
}

// NewLineReader reads lines of at most max bytes from r; 0 is DefaultMaxLine.
func NewLineReader(r io.Reader, max int) *LineReader {
	if max <= 0 {
		max = DefaultMaxLine
	}
	return &LineReader{src: bufio.NewReaderSize(r, bufferSize), max: max}
}

// Next returns the next line that may hold a message, without line end, byte order mark and surrounding blanks; it
// skips blank lines. The line belongs to the caller. For a line over the bound it returns ErrTooLong at once, and the
// next call continues after it. ErrNotMessage is for a line of 64 KiB that begins neither an object nor an array: a
// server that floods its output must not cost the memory of a message. An incomplete last line counts as a line. After
// it, every call returns the source's error, io.EOF at an orderly end.
func (r *LineReader) Next() ([]byte, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if line = trimMessageLine(line); len(line) > 0 {
			return line, nil
		}
	}
}

// readLine returns one line as it is, fresh. Of a line that the buffer does not hold the parts are joined once, at its
// end; blanks in front of it are not kept.
func (r *LineReader) readLine() ([]byte, error) {
	var parts [][]byte
	size, begun, hopeful := 0, false, false
	for r.err == nil {
		part, err := r.src.ReadSlice('\n')
		ended := err == nil
		if !ended && !errors.Is(err, bufio.ErrBufferFull) {
			r.err = err
		}
		if r.discarding {
			r.discarding = !ended
			continue
		}
		long := size + len(bytes.TrimRight(part, "\r\n")) // a CR within the line counts: only its end does not
		if size += len(part); !begun {
			front := bytes.TrimLeft(part, rawjson.Whitespace+string(byteOrderMark))
			begun = len(front) > 0
			hopeful = begun && (front[0] == '{' || front[0] == '[')
		}
		switch {
		case begun && !hopeful && long >= bufferSize:
			r.discarding = !ended
			return nil, ErrNotMessage
		case long > r.max:
			r.discarding = !ended
			return nil, ErrTooLong
		case ended && parts == nil:
			return slices.Clone(part), nil
		case begun:
			parts = append(parts, slices.Clone(part))
		}
		if ended {
			return bytes.Join(parts, nil), nil
		}
	}
	if len(parts) > 0 {
		return bytes.Join(parts, nil), nil
	}
	return nil, r.err
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// trimMessageLine cuts what surrounds a message. Some servers write a byte order mark in front of their first line,
// some of each.
func trimMessageLine(line []byte) []byte {
	line = bytes.Trim(line, rawjson.Whitespace)
	if rest, ok := bytes.CutPrefix(line, byteOrderMark); ok {
		return bytes.TrimLeft(rest, rawjson.Whitespace)
	}
	return line
}

// SplitJSONValues splits a line into the JSON values on it: some servers write two messages on one line. If a part is
// not valid JSON, see Valid, ok is false and values has the values before that part. The values are slices of line, and
// their capacity ends with them.
func SplitJSONValues(line []byte) (values [][]byte, ok bool) {
	for i := rawjson.SkipSpace(line, 0); i < len(line); {
		end, err := rawjson.SkipValue(line, i)
		if err != nil || !utf8.Valid(line[i:end]) {
			return values, false
		}
		values = append(values, line[i:end:end])
		i = rawjson.SkipSpace(line, end)
	}
	return values, true
}
