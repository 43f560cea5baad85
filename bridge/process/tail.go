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
	tailLines = 200
	lineBytes = 8 << 10
)

// A tail keeps the last lines of a stream.
type tail struct {
	mu   sync.Mutex
	ring [tailLines]string
	next int // counts all lines ever kept
	// more is closed with the next line, and made anew.
	more chan struct{}
}

func newTail() *tail { return &tail{more: make(chan struct{})} }

// read keeps what r says until it ends, and closes it; with a veil over each line.
func (t *tail) read(r *os.File, veil func(string) string) {
	defer r.Close()
	src := bufio.NewReaderSize(r, lineBytes)
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
			// Nobody may read on after this; the program is not to block on a full pipe meanwhile.
			_, _ = io.Copy(io.Discard, r)
			return
		}
	}
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ring[t.next%tailLines] = line
	t.next++
	close(t.more)
	t.more = make(chan struct{})
}

func (t *tail) lines() []string {
	lines, _, _ := t.from(0)
	return lines
}

// from gives the lines from the one numbered first on, as far as they are kept, the number of the next one, and what is
// closed when that comes.
func (t *tail) from(first int) (lines []string, next int, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := max(first, t.next-tailLines, 0); i < t.next; i++ {
		lines = append(lines, t.ring[i%tailLines])
	}
	return lines, t.next, t.more
}
