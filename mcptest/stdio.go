package mcptest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// fakeServerVariable is the environment variable that makes a process of the test binary act as the process of a
// Server. It contains the address of the Server, a token, and optionally the misbehaviour of the process and its size.
const fakeServerVariable = "DRAWBRIDGE_FAKEMCP"

// crashExitCode is the exit code of a process whose connection the server has closed.
const crashExitCode = 3

// RunIfServer must be called at the beginning of a TestMain, after gateway.RunReaperProcess. If the process was started
// with the configuration of Server.Stdio, RunIfServer acts as that server and does not return. Otherwise it does
// nothing.
func RunIfServer() {
	if order := os.Getenv(fakeServerVariable); order != "" {
		os.Exit(carryStdio(strings.Fields(order)))
	}
}

// refuseInside exits if fakeServerVariable is set: the process should act as a server, but TestMain did not call
// RunIfServer. Without this check, each test would start the tests again in another process.
func refuseInside() {
	if os.Getenv(fakeServerVariable) != "" {
		fmt.Fprintln(os.Stderr, "fakemcp: TestMain does not begin with fakemcp.Main")
		os.Exit(2)
	}
}

// Command returns the command that starts the server as a process on its standard streams, and the environment it
// needs, as "name=value".
func (s *Server) Command() (path string, env []string) {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal("fakemcp:", err)
	}
	order := []string{s.processListener.Addr().String(), s.token}
	if s.deed.process != "" {
		order = append(order, s.deed.process, strconv.Itoa(s.deed.size))
	}
	// With the race detector, a process by default waits for a second before it exits.
	return self, []string{fakeServerVariable + "=" + strings.Join(order, " "), "GORACE=atexit_sleep_ms=0"}
}

// carryStdio copies bytes between the standard streams of the process and the test, and returns the exit code of the
// process.
func carryStdio(order []string) (code int) {
	if len(order) > 3 {
		size, _ := strconv.Atoi(order[3])
		if code, over := misbehaveAsProcess(order, size); over {
			return code
		}
	}
	conn, err := net.Dial("tcp", order[0])
	if err == nil {
		_, err = fmt.Fprintln(conn, order[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakemcp:", err)
		return 2
	}
	var ended sync.Once
	go func() {
		_, _ = io.Copy(conn, process.PolledStdin(os.Stdin, os.Stdout))
		ended.Do(func() { code = 0 })
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	ended.Do(func() { code = crashExitCode })
	if len(order) > 2 {
		lingerAfterEnd(order[2])
	}
	return code
}

// acceptProcesses accepts the connections of processes that were started with the configuration of Stdio, until the
// server ends.
func (s *Server) acceptProcesses() {
	for {
		conn, err := s.processListener.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() { s.serveProcess(conn) })
	}
}

// serveProcess serves the connection of one process.
func (s *Server) serveProcess(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	s.mu.Lock()
	s.conns[conn] = true
	over := s.ctx.Err() != nil
	s.mu.Unlock()
	in := bufio.NewReader(conn)
	hello, err := in.ReadString('\n')
	token, child := strings.CutSuffix(strings.TrimSpace(hello), childMark)
	if over || err != nil || token != s.token {
		return
	}
	if child {
		s.count(&s.children, 1)
		_, _ = io.Copy(io.Discard, in) // the child sends nothing; the connection ends when the child ends
		s.count(&s.children, -1)
		return
	}
	s.count(&s.lives, 1)
	s.count(&s.running, 1)
	defer s.count(&s.running, -1)
	c, line := s.session(), &lineWriter{w: conn}
	defer c.close()
	out := responseWriter{line.say, line.raw}
	ear := &notificationSink{line.say}
	defer s.removeSink(ear)
	lines := mcp.NewLineReader(in, 0)
	for {
		text, err := lines.Next()
		if err != nil {
			return
		}
		m, err := mcp.ParseMessage(text)
		if err != nil {
			continue
		}
		if m.Method == mcp.NoteInitialized {
			s.addSink(ear)
		}
		c.handleMessage(m, out, func() {})
	}
}

// A lineWriter writes one message per line. Concurrent writes do not mix.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) say(m mcp.Message) { l.raw(onceChunk(m.Append(nil))) }

func (l *lineWriter) raw(parts ...repeatedBytes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writeChunks(l.w, append(parts[:len(parts):len(parts)], onceChunk([]byte{'\n'})))
}
