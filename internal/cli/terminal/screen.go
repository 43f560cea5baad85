package terminal

import (
	"io"
	"sync"
)

// A Screen is a terminal with at most one line at its end that changes. What is written goes above that line.
type Screen struct {
	w io.Writer

	mu   sync.Mutex
	line string
}

// NewScreen is the Screen that w is. Nothing else is to write to w.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

const eraseLine = "\r\x1b[K"

// Write writes p and draws the changing line again under it.
func (s *Screen) Write(p []byte) (int, error) {
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

// Draw changes the line; an empty one is taken away.
func (s *Screen) Draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.w, eraseLine+line) // a terminal that is gone shows nothing
}
