package mcptest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// runTalker runs the named server "talker". Its arguments are its generation, and the file to which it writes its
// events.
func runTalker(args serverArgs) int {
	record, err := openEventRecorder(args.text(1, ""), strconv.Itoa(os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: open record:", err)
		return 2
	}
	defer record.close()
	quit, once := make(chan struct{}), sync.Once{}
	t := newTalker(args.text(0, "legacy") == "modern", record, func() { once.Do(func() { close(quit) }) })
	record.event("start", 0, "")
	t.serve(quit)
	return 0
}

// serve handles the messages on stdin until stdin ends or quit is closed.
func (t *talker) serve(quit <-chan struct{}) {
	var writing sync.Mutex
	say := func(m mcp.Message) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = os.Stdout.Write(append(m.Append(nil), '\n'))
	}
	s := t.session(say)
	lines := make(chan []byte)
	go func() { // this goroutine ends with the process
		defer close(lines)
		r := mcp.NewLineReader(os.Stdin, 0)
		for {
			line, err := r.Next()
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				s.close()
				return
			}
			t.line(s, line, say)
		case <-quit:
			s.work.Wait()
			return
		}
	}
}

// line handles one line of stdin.
func (t *talker) line(s *talkSession, line []byte, say func(mcp.Message)) {
	t.record.message(line, nil)
	m, err := mcp.ParseMessage(line)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mcptest:", err)
	case !t.modern:
		s.take(m, say, nil)
	case m.Method == mcp.NoteCancelled:
		s.cancel(string(rawjson.Get(m.Params, "requestId")))
	default:
		ctx, cancel := context.WithCancel(s.ctx)
		s.mu.Lock()
		s.open[string(m.ID)] = cancel
		s.mu.Unlock()
		s.work.Go(func() {
			defer s.cancel(string(m.ID))
			t.stateless(ctx, m, nil, say)
		})
	}
}
