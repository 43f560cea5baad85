package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// DefaultMaxLine is the default maximum size of a line in bytes.
const DefaultMaxLine = 32 << 20

// ErrTooLong is the error for a line or an event that exceeds its size limit. The reader discards that line or event
// and can continue with the next one.
var ErrTooLong = errors.New("message is over the size bound")

// ErrNotMessage wraps ErrTooLong for a line that cannot be a message, such as a log line.
var ErrNotMessage = fmt.Errorf("a long line that is not a message: %w", ErrTooLong)

// bufferSize is the buffer size in bytes of a LineReader or SSEReader.
const bufferSize = 64 << 10

// A LineReader reads messages that are separated by newlines, as in the stdio transport. Its methods must be called
// from one goroutine.
type LineReader struct {
	src *bufio.Reader
	max int
	// discarding is set while the rest of a line that exceeds the size limit must still be discarded.
	discarding bool
	err        error
	// long collects a line that is longer than the buffer of src.
	long *AnswerBuffer
}

// NewLineReader returns a reader for lines of at most max bytes from r; 0 means DefaultMaxLine.
func NewLineReader(r io.Reader, max int) *LineReader {
	if max <= 0 {
		max = DefaultMaxLine
	}
	return &LineReader{src: bufio.NewReaderSize(r, bufferSize), max: max,
		long: &AnswerBuffer{}}
}

// UseBudget makes the reader take the memory of long lines from a budget. A line waits for room until ctx ends, for at
// most patience. If there is none, Next returns a *NoRoomError, and the next call continues with the next line.
func (r *LineReader) UseBudget(ctx context.Context, budget *AnswerBudget, patience time.Duration) {
	r.long = NewAnswerBuffer(ctx, budget, patience)
}

// Next returns the next line that may contain a message, without line end, byte order mark and surrounding white space.
// It skips blank lines. The reader does not reuse the memory of the line.
//
// For a line that exceeds the size limit, Next returns ErrTooLong at once, and the next call continues with the next
// line. If a line begins with neither an object nor an array, Next returns ErrNotMessage as soon as 64 KiB of it were
// read. So a server that writes large amounts of other output does not use the memory of a message. An incomplete last
// line counts as a line. After that, every call returns the source's error, or io.EOF at a regular end.
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

// HasMore reports whether a part of the next line was read already.
func (r *LineReader) HasMore() bool { return r.src.Buffered() > 0 }

// readLine returns one line unchanged in a new slice. White space before a line that is longer than the buffer is
// dropped.
func (r *LineReader) readLine() ([]byte, error) {
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
		long := size + len(bytes.TrimRight(part, "\r\n")) // only a CR at the end of the line does not count
		if size += len(part); !begun {
			front := bytes.TrimLeft(part, rawjson.Whitespace+string(byteOrderMark))
			begun = len(front) > 0
			hopeful = begun && (front[0] == '{' || front[0] == '[')
		}
		switch {
		case begun && !hopeful && long >= bufferSize:
			return r.skip(ended, ErrNotMessage)
		case long > r.max:
			return r.skip(ended, ErrTooLong)
		case ended && r.long.Len() == 0:
			return slices.Clone(part), nil
		case begun:
			if err := r.long.Append(part); err != nil {
				return r.skip(ended, err)
			}
		}
		if ended {
			return r.long.Bytes()
		}
	}
	if r.long.Len() > 0 {
		return r.long.Bytes()
	}
	return nil, r.err
}

// skip drops the current line, and returns why. ended reports whether the whole line was read.
func (r *LineReader) skip(ended bool, why error) ([]byte, error) {
	r.discarding = !ended
	r.long.Drop()
	return nil, why
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// trimMessageLine returns a line without surrounding white space and without a byte order mark. Some servers write a
// byte order mark before their first line, some before each line.
func trimMessageLine(line []byte) []byte {
	line = bytes.Trim(line, rawjson.Whitespace)
	if rest, ok := bytes.CutPrefix(line, byteOrderMark); ok {
		return bytes.TrimLeft(rest, rawjson.Whitespace)
	}
	return line
}

// SplitJSONValues splits a line into the JSON values in it, since some servers write two messages in one line. If a
// part is not valid JSON, ok is false and values contains the values before that part. The values are slices of line
// whose capacity is limited to their length.
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
