package cli

import (
	"io"
	"sync"
)

// A StatusLineWriter writes output to a terminal, and shows a status line below the output.
type StatusLineWriter struct {
	w io.Writer

	mu   sync.Mutex
	line string
}

// NewStatusLineWriter returns a writer to w. Nothing else may write to w.
func NewStatusLineWriter(w io.Writer) *StatusLineWriter { return &StatusLineWriter{w: w} }

const eraseLine = "\r\x1b[K"

// Write writes p and draws the status line again below it.
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

// SetStatus changes the status line; an empty text removes it.
func (s *StatusLineWriter) SetStatus(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.w, eraseLine+line) // a closed terminal shows nothing
}
