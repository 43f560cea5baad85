package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// maxJSONLine limits the length of a line, in bytes.
const maxJSONLine = 64 << 20

// A jsonLine is a line of a JSON Lines file. Empty lines are skipped.
type jsonLine struct {
	// Number is the number of the line, from 1 on.
	Number int
	// Object is the JSON object of the line. It is valid until the next line is read.
	Object []byte
	// Err is the reason why the line is not a valid JSON object; nil if it is one.
	Err error
}

// id returns the member "id" of the row as text, or the number of the line if the row has no ID.
func (r jsonLine) id() string {
	raw := rawjson.Get(r.Object, "id")
	if text, ok := rawjson.DecodeString(raw); ok && text != "" {
		return text
	}
	if raw != nil {
		return string(raw)
	}
	return strconv.Itoa(r.Number)
}

// eachJSONLine calls do for each non-empty line of a file. It returns the first error of do or of reading the file.
func eachJSONLine(in io.Reader, do func(jsonLine) error) error {
	return eachJSONLineWithin(in, maxJSONLine, do)
}

func eachJSONLineWithin(in io.Reader, most int, do func(jsonLine) error) error {
	lines := lineReader{src: bufio.NewReaderSize(in, 64<<10), maxBytes: most}
	for n := 1; ; n++ {
		line, long, err := lines.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		row := jsonLine{Number: n, Object: bytes.TrimSpace(line)}
		switch {
		case long:
			row.Object, row.Err = nil, fmt.Errorf("it is longer than %d bytes", most)
		case len(row.Object) > 0:
			row.Err = checkJSONObject(row.Object)
		}
		if len(row.Object) > 0 || long {
			if err := do(row); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// checkJSONObject returns an error unless line is a JSON object that the gateway would accept from a server.
func checkJSONObject(line []byte) error {
	if err := rawjson.Valid(line); err != nil {
		return err
	}
	if line[0] != '{' {
		return errors.New("it must be a JSON object")
	}
	return nil
}

// A lineReader reads lines. All lines use the same buffer.
type lineReader struct {
	src      *bufio.Reader
	maxBytes int
	line     []byte
}

// next returns the next line, which is valid until the next call. If a line is longer than maxBytes, next drops the
// line and sets long. The error is io.EOF with the last line.
func (r *lineReader) next() (line []byte, long bool, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.src.ReadSlice('\n')
		if size := len(r.line) + len(bytes.TrimRight(part, "\r\n")); long || size > r.maxBytes {
			long = true
			r.line = nil // a line that is too long must not occupy memory
		} else {
			r.appendPart(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line, long, err
		}
	}
}

// appendPart appends part to the line. If the buffer is full, its size doubles, but not beyond the size of the longest
// allowed line with its line end.
func (r *lineReader) appendPart(part []byte) {
	if need := len(r.line) + len(part); need > cap(r.line) {
		grown := make([]byte, len(r.line), max(need, min(2*cap(r.line), r.maxBytes+len("\r\n"))))
		copy(grown, r.line)
		r.line = grown
	}
	r.line = append(r.line, part...)
}

// checkDefinitionDepth returns an error for a definition that is nested too deeply. The list of a server adds levels
// around a definition, and the gateway refuses a list that exceeds rawjson.MaxDepth.
func checkDefinitionDepth(definition json.RawMessage) error {
	const around = 3 // levels around it: the message, its result and the list
	deep, most := 0, 0
	for i := 0; i < len(definition); i++ {
		switch definition[i] {
		case '"':
			for i++; i < len(definition) && definition[i] != '"'; i++ {
				if definition[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			deep++
			most = max(most, deep)
		case '}', ']':
			deep--
		}
	}
	if most+around > rawjson.MaxDepth {
		return fmt.Errorf("it nests too deep for the list of a server, by %d levels", most+around-rawjson.MaxDepth)
	}
	return nil
}
