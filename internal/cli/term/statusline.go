package term

import (
	"io"
	"sync"
)

// A StatusLineWriter is a terminal with at most one line at its end that changes. What is written goes above that line.
type StatusLineWriter struct {
	w io.Writer

	mu   sync.Mutex
	line string
}

// NewStatusLineWriter is the Screen that w is. Nothing else is to write to w.
func NewStatusLineWriter(w io.Writer) *StatusLineWriter { return &StatusLineWriter{w: w} }

const eraseLine = "\r\x1b[K"

// Write writes p and draws the changing line again under it.
func (s *StatusLineWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.w.Write(p)
	}
	if _, err := io.WriteString(s.w, eraseLine); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		_, err = io.WriteString(s.w, s.line)
	}
	return n, err
}

// SetStatus changes the line; an empty one is taken away.
func (s *StatusLineWriter) SetStatus(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.w, eraseLine+line) // a terminal that is gone shows nothing
}
