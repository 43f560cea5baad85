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

// A lineTail stores the last lines of a stream.
type lineTail struct {
	mu   sync.Mutex
	ring [maxTailLines]string
	next int // the number of all lines so far
	// nextLine is closed and replaced when a line is added.
	nextLine chan struct{}
}

func newLineTail() *lineTail { return &lineTail{nextLine: make(chan struct{})} }

// readFrom stores the lines of r until r ends, and closes r. If veil is not nil, it is applied to each line before the
// line is stored, for example to redact secrets.
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
		for errors.Is(err, bufio.ErrBufferFull) { // skip the rest of a line that is too long
			_, err = src.ReadSlice('\n')
		}
		if err != nil && !whole {
			// Read and drop the rest, so that the program does not block on a full pipe.
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

// linesFrom returns the stored lines from number first on, the number of the next line, and a channel. The channel is
// closed when the next line is added. Lines are numbered from 0.
func (t *lineTail) linesFrom(first int) (lines []string, next int, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := max(first, t.next-maxTailLines, 0); i < t.next; i++ {
		lines = append(lines, t.ring[i%maxTailLines])
	}
	return lines, t.next, t.nextLine
}
