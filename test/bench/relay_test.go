//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// relay is the control for clients on pipes, the least that can stand between them and a server: "bytes" copies what it
// reads. "inline" does what a gateway has to do: it reads lines, replaces the id of each request by one of its own, and
// matches the answers. It does so in the goroutine that read the line. "hands" does the same with two hand-offs: another
// goroutine sends the request, waits for its answer and writes that.
func relay(kind string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stderr = append(os.Environ(), roleVariable+"=upstream"), os.Stderr
	to, inErr := cmd.StdinPipe()
	from, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return err
	}
	var running sync.WaitGroup
	if kind == "bytes" {
		running.Go(func() {
			copyBytes(to, os.Stdin)
			to.Close()
		})
		copyBytes(os.Stdout, from)
	} else {
		m := &matcher{to: to, out: os.Stdout, waiting: map[string]func([]byte){}}
		running.Go(func() {
			m.requests(os.Stdin, kind == "hands")
			to.Close()
		})
		m.answers(from)
	}
	running.Wait()
	return cmd.Wait()
}

// copyBytes copies what each read returns.
func copyBytes(to io.Writer, from io.Reader) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			return
		}
	}
}

// A matcher replaces ids and brings each answer to the request that it belongs to.
type matcher struct {
	to, out io.Writer

	mu      sync.Mutex
	last    int
	waiting map[string]func(answer []byte)
}

// requests reads the client's lines until its input ends.
func (m *matcher) requests(from io.Reader, hands bool) {
	do := m.inline
	if hands {
		const workers = 4
		lines := make(chan []byte)
		var running sync.WaitGroup
		defer running.Wait()
		defer close(lines)
		for range workers {
			running.Go(func() {
				for line := range lines {
					m.handedOver(line)
				}
			})
		}
		do = func(line []byte) { lines <- line }
	}
	for lines := bufio.NewReaderSize(from, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		do(line)
	}
}

// inline sends a request, whose answer is written by whoever reads it.
func (m *matcher) inline(line []byte) {
	id := idOf(line)
	m.send(line, id, func(answer []byte) { m.out.Write(withID(answer, id)) })
}

// handedOver sends a request and waits for its answer.
func (m *matcher) handedOver(line []byte) {
	id := idOf(line)
	answer := make(chan []byte, 1)
	m.send(line, id, func(line []byte) { answer <- line })
	if id != nil {
		m.out.Write(withID(<-answer, id))
	}
}

// send gives a request an id of its own. What has none is passed on as it is.
func (m *matcher) send(line, id []byte, answered func([]byte)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != nil {
		m.last++
		own := strconv.Itoa(m.last)
		m.waiting[own] = answered
		line = withID(line, []byte(own))
	}
	m.to.Write(line)
}

// answers reads the server's lines until its output ends.
func (m *matcher) answers(from io.Reader) {
	for lines := bufio.NewReaderSize(from, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		id := string(idOf(line))
		m.mu.Lock()
		answered := m.waiting[id]
		delete(m.waiting, id)
		m.mu.Unlock()
		if answered != nil {
			answered(line)
		}
	}
}

// idPlace returns where the first id of a line begins and ends.
func idPlace(line []byte) (begin, end int) {
	member := []byte(`"id":`)
	begin = bytes.Index(line, member)
	if begin < 0 {
		return 0, 0
	}
	begin += len(member)
	return begin, begin + max(bytes.IndexAny(line[begin:], ",}"), 0)
}

// idOf returns a copy of the first id of a line, or nil.
func idOf(line []byte) []byte {
	begin, end := idPlace(line)
	if begin == end {
		return nil
	}
	return bytes.Clone(line[begin:end])
}

// withID returns a copy of the line with another id.
func withID(line, id []byte) []byte {
	begin, end := idPlace(line)
	whole := make([]byte, 0, len(line)+len(id))
	return append(append(append(whole, line[:begin]...), id...), line[end:]...)
}
