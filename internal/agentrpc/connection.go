package agentrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// maxLine is the maximum size of a line in bytes.
	maxLine = 16 << 20
	// waitingLines is the number of lines that wait to be written before a sender waits.
	waitingLines = 64
	// grace is how long the last lines may take to be written, and a blocked read or write to end.
	grace = 2 * time.Second
)

var (
	errBufferFull = bufio.ErrBufferFull
	errClientGone = errors.New("the client has ended")
)

// An incoming line is a message, or the error that answers it.
type incoming struct {
	message
	problem *rpcError
}

// A connection reads and writes messages. Two goroutines own the pipes; close waits for them.
type connection struct {
	p   Pipes
	ctx context.Context
	end context.CancelCauseFunc
	// in has the incoming messages, and is closed at the end of the input.
	in           chan incoming
	out          chan []byte
	read, writes chan struct{} // closed when the goroutines end

	// mu guards closed: out is closed.
	mu     sync.RWMutex
	closed bool
}

// connect begins to read and write. The connection's context ends if ctx ends or a write fails.
func connect(ctx context.Context, p Pipes) *connection {
	c := &connection{p: p, in: make(chan incoming), out: make(chan []byte, waitingLines), read: make(chan struct{}),
		writes: make(chan struct{})}
	c.ctx, c.end = context.WithCancelCause(ctx)
	go c.readLines()
	go c.writeLines()
	return c
}

func (c *connection) readLines() {
	defer close(c.read)
	defer close(c.in)
	lines := lineReader{bufio.NewReaderSize(c.p.In, 64<<10), maxLine}
	for {
		line, err := lines.read()
		var next incoming
		switch {
		case errors.Is(err, errLineTooLong):
			next.problem = &rpcError{Code: codeRequest, Message: fmt.Sprintf("a line has more than %d MiB", maxLine>>20)}
		case err != nil:
			return
		default:
			next.message, next.problem = parseMessage(line)
		}
		select {
		case c.in <- next:
		case <-c.ctx.Done():
			return
		}
	}
}

func (c *connection) writeLines() {
	defer close(c.writes)
	failed := false
	for line := range c.out {
		if failed {
			continue
		}
		if _, err := c.p.Out.Write(line); err != nil {
			failed = true
			c.end(fmt.Errorf("%w: %w", errClientGone, err))
		}
	}
}

// send writes a line. It waits while the client reads slowly, until the connection ends.
func (c *connection) send(v any) {
	line, err := encodeLine(v)
	if err != nil {
		line, _ = encodeLine(message{Version: "2.0", Error: &rpcError{Code: codeInternal, Message: "encode a message"}})
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return
	}
	select {
	case c.out <- line:
		return
	default:
	}
	select {
	case c.out <- line:
	case <-c.ctx.Done():
	}
}

// respond answers a request with a result or an error. A notification is not answered.
func (c *connection) respond(id json.RawMessage, result any, problem *rpcError) {
	if id == nil {
		return
	}
	if problem != nil {
		c.send(errorResponse{"2.0", id, problem})
		return
	}
	c.send(resultResponse{"2.0", id, result})
}

type resultResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

type errorResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *rpcError       `json:"error"`
}

// notification is a request without an ID, or with one if the client answers it.
type notification struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// close writes the lines that wait, and ends the connection. A pipe that stays blocked is closed.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	close(c.out)
	c.mu.Unlock()
	c.await(c.writes, c.p.Out)
	c.end(errClientGone)
	if in, ok := c.p.In.(io.Closer); ok {
		_ = in.Close() // it ends the read; there is nothing to lose
	}
	c.await(c.read, nil)
}

// await waits for a goroutine. If it takes too long, its pipe is closed. A system's file may stay blocked all the same;
// it ends with the process.
func (c *connection) await(done <-chan struct{}, pipe any) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	if closer, ok := pipe.(io.Closer); ok {
		_ = closer.Close() // only to end the write
		timer.Reset(grace)
		select {
		case <-done:
		case <-timer.C:
		}
	}
}
