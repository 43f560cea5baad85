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

// maxJSONLine is how many bytes a line may have.
const maxJSONLine = 64 << 20

// A jsonLine is a line that is not empty.
type jsonLine struct {
	// Number is the number of the line, from 1 on.
	Number int
	// Object is the object on it. It is good until the next row is read.
	Object []byte
	// Err describes why there is no such object.
	Err error
}

// id is the row's own "id", as text, or the number of its line.
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

// eachJSONLine returns the rows of a file in their order. An error is what do ended with, or that the file cannot be
// read on from a line.
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

// checkJSONObject describes why a line is no object that the gateway would take from a server.
func checkJSONObject(line []byte) error {
	if err := rawjson.Valid(line); err != nil {
		return err
	}
	if line[0] != '{' {
		return errors.New("it is no JSON object")
	}
	return nil
}

// A lineReader reads lines into one piece of memory.
type lineReader struct {
	src      *bufio.Reader
	maxBytes int
	line     []byte
}

// next returns the next line, or says that it is too long and gives nothing of it. The error io.EOF comes with the last
// one.
func (r *lineReader) next() (line []byte, long bool, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.src.ReadSlice('\n')
		if size := len(r.line) + len(bytes.TrimRight(part, "\r\n")); long || size > r.maxBytes {
			long = true
			r.line = nil // a flood is not to cost what a row may
		} else {
			r.appendPart(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line, long, err
		}
	}
}

// appendPart appends to the line. The memory for it doubles, and grows not beyond what a line may have with its end.
func (r *lineReader) appendPart(part []byte) {
	if need := len(r.line) + len(part); need > cap(r.line) {
		grown := make([]byte, len(r.line), max(need, min(2*cap(r.line), r.maxBytes+len("\r\n"))))
		copy(grown, r.line)
		r.line = grown
	}
	r.line = append(r.line, part...)
}

// checkDefinitionDepth describes why a definition could not be in a list that a server answers with: it nests too deep,
// with the list around it, for the gateway to read the answer.
func checkDefinitionDepth(definition json.RawMessage) error {
	const around = 3 // the message, its result and the list
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
