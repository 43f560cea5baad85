package safetext

import (
	"io"
	"unicode/utf8"
)

// A Writer shows a stream as Text shows a text. A character that is split over two writes is put together, and a run
// of blanks is counted over all of them, so the blanks and the incomplete character at the end of a write wait for
// the next one. It is for one goroutine at a time.
type Writer struct {
	w    io.Writer
	e    encoder
	rest []byte // the beginning of a character, at most three bytes
}

// NewWriter returns a Writer that writes to w. Its Flush must be called after the last write.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, e: encoder{mode: mode{multiline: true}}}
}

// Write writes p with each character that cannot be seen as its code point. It returns the number of bytes of p.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.rest, p...)
	whole := len(text) - incomplete(text)
	out := w.e.appendRunes(nil, string(text[:whole]))
	w.rest = append([]byte(nil), text[whole:]...)
	if err := w.write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what waits for a next write. An incomplete character is shown as bytes.
func (w *Writer) Flush() error {
	out := w.e.appendRunes(nil, string(w.rest))
	out = w.e.appendRun(out)
	w.rest = nil
	return w.write(out)
}

func (w *Writer) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := w.w.Write(p)
	return err
}

// incomplete returns how many bytes at the end of p are the beginning of a character.
func incomplete(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
