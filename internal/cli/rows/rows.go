// Package rows reads files that have a JSON object on each line, such as those that scans look at.
//
// It promises that a line which cannot be read costs the others nothing, and that of a line over the bound no more is kept
// than the bound.
package rows

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Longest is how many bytes a line may have.
const Longest = 64 << 20

// A Row is a line that is not empty.
type Row struct {
	// N is the number of the line, from 1 on.
	N int
	// Line is the object on it. It is good until the next row is read.
	Line []byte
	// Err says why there is no such object.
	Err error
}

// ID is the row's own "id", as text, or the number of its line.
func (r Row) ID() string {
	raw := wire.Get(r.Line, "id")
	if text, ok := wire.Text(raw); ok && text != "" {
		return text
	}
	if raw != nil {
		return string(raw)
	}
	return strconv.Itoa(r.N)
}

// Each gives the rows of a file in their order. An error is what do ended with, or that the file cannot be read on from a line.
func Each(in io.Reader, do func(Row) error) error { return each(in, Longest, do) }

func each(in io.Reader, most int, do func(Row) error) error {
	lines := reader{src: bufio.NewReaderSize(in, 64<<10), most: most}
	for n := 1; ; n++ {
		line, long, err := lines.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", n, err)
		}
		row := Row{N: n, Line: bytes.TrimSpace(line)}
		switch {
		case long:
			row.Line, row.Err = nil, fmt.Errorf("it is longer than %d bytes", most)
		case len(row.Line) > 0:
			row.Err = object(row.Line)
		}
		if len(row.Line) > 0 || long {
			if err := do(row); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// object says why a line is no object that the gateway would take from a server.
func object(line []byte) error {
	if err := wire.Valid(line); err != nil {
		return err
	}
	if line[0] != '{' {
		return errors.New("it is no JSON object")
	}
	return nil
}

// A reader reads lines into one piece of memory.
type reader struct {
	src  *bufio.Reader
	most int
	line []byte
}

// next gives the next line, or says that it is too long and gives nothing of it. The error io.EOF comes with the last one.
func (r *reader) next() (line []byte, long bool, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.src.ReadSlice('\n')
		if size := len(r.line) + len(bytes.TrimRight(part, "\r\n")); long || size > r.most {
			long = true
			r.line = nil // a flood is not to cost what a row may
		} else {
			r.keep(part)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line, long, err
		}
	}
}

// keep appends to the line. The memory for it doubles, and grows not beyond what a line may have with its end.
func (r *reader) keep(part []byte) {
	if need := len(r.line) + len(part); need > cap(r.line) {
		grown := make([]byte, len(r.line), max(need, min(2*cap(r.line), r.most+len("\r\n"))))
		copy(grown, r.line)
		r.line = grown
	}
	r.line = append(r.line, part...)
}

// Fits says why a definition could not be in a list that a server answers with: it nests too deep, with the list around it, for the
// gateway to read the answer.
func Fits(definition json.RawMessage) error {
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
	if most+around > wire.MaxDepth {
		return fmt.Errorf("it nests too deep for the list of a server, by %d levels", most+around-wire.MaxDepth)
	}
	return nil
}
