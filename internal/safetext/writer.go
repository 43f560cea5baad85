package safetext

import (
	"io"
	"unicode/utf8"
)

// A Writer writes a stream of text, made safe as by Text. It joins a character that is split over two writes, and
// counts a run of blanks across writes. So the blanks and the incomplete character at the end of a write are written
// only by the next Write or by Flush. Use a Writer in one goroutine at a time.
type Writer struct {
	w    io.Writer
	e    encoder
	rest []byte // the beginning of a character, at most three bytes
}

// NewWriter returns a Writer that writes to w. Its Flush must be called after the last write.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, e: encoder{mode: mode{multiline: true}}}
}

// Write writes p with each dangerous or invisible character replaced by its code point. On success it returns len(p).
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

// Flush writes the delayed blanks and bytes. An incomplete character is written as escaped bytes.
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

// incomplete returns the number of bytes at the end of p that are the beginning of a character.
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
