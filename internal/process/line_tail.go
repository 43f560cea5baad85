package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
)

const (
	maxTailLines = 200
	maxLineBytes = 8 << 10
)

// A lineTail keeps the last lines of a stream.
type lineTail struct {
	mu   sync.Mutex
	ring [maxTailLines]string
	next int // counts all lines ever kept
	// nextLine is closed when the next line arrives, and then replaced.
	nextLine chan struct{}
}

func newLineTail() *lineTail { return &lineTail{nextLine: make(chan struct{})} }

// readFrom stores the lines of r until it ends, and closes it. veil, if set, is applied to each line.
func (t *lineTail) readFrom(r *os.File, veil func(string) string) {
	defer r.Close()
	src := bufio.NewReaderSize(r, maxLineBytes)
	for {
		line, err := src.ReadSlice('\n')
		whole := err == nil
		if len(line) > 0 {
			text := strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD")
			if veil != nil {
				text = veil(text)
			}
			t.add(text)
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line that was cut
			_, err = src.ReadSlice('\n')
		}
		if err != nil && !whole {
			// The program must not block on a full pipe, so the rest is read and dropped.
			_, _ = io.Copy(io.Discard, r)
			return
		}
	}
}

func (t *lineTail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring[t.next%maxTailLines] = line
	t.next++
	close(t.nextLine)
	t.nextLine = make(chan struct{})
}

func (t *lineTail) allLines() []string {
	lines, _, _ := t.linesFrom(0)
	return lines
}

// linesFrom returns the lines from the one numbered first on, as far as they are kept; the number of the next one; and
// a channel that is closed when that arrives.
func (t *lineTail) linesFrom(first int) (lines []string, next int, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := max(first, t.next-maxTailLines, 0); i < t.next; i++ {
		lines = append(lines, t.ring[i%maxTailLines])
	}
	return lines, t.next, t.nextLine
}
