package hub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// The notices of a hub to its shims. They are no part of MCP, and no client sees them.
const (
	// noteMove asks the shim to attach anew once its requests are answered: another configuration counts for it now.
	noteMove = notePrefix + "move"
	// noteBye says that the hub ends: what it answers to listening requests from now on is of no meaning.
	noteBye = notePrefix + "bye"

	notePrefix = "notifications/drawbridge/"
)

const (
	// moveTime is how long a move waits for the answers to what was asked before.
	moveTime = 30 * time.Second
	// settleTime bounds the wait for what a session said to another hub before.
	settleTime = 10 * time.Second
	// maxHeld is how many lines of a client are kept while there is no hub; then its input waits.
	maxHeld = 1024
	// lastWords is how long we wait for a reader that cannot be interrupted.
	lastWords = 200 * time.Millisecond
)

// tooLong stands for a line over the size bound: the hub answers that this is no message.
const tooLong = `"a message over the size bound"`

// A line connects a shim with a hub: what it writes and reads goes line by line.
type line struct {
	conn *net.UnixConn
	in   *wire.LineReader
}

// write writes a message and ends its line.
func (l *line) write(message []byte) error {
	_, err := l.conn.Write(append(message[:len(message):len(message)], '\n'))
	return err
}

func (l *line) writeAll(messages [][]byte) {
	for _, m := range messages {
		_ = l.write(m) // what does not arrive is lost with the hub
	}
}

// A client is one MCP client on a pair of pipes, whose conversation goes on when the hub behind it changes. All that either
// side says passes through it: what can be lent is served by a lender.
type client struct {
	// sending is held by whoever writes to the hub, so that what the client says stays in order; writing by whoever writes
	// to the client. mu is held for moments only: a hub that waits for us to read must not keep us from reading.
	sending, writing sync.Mutex
	out              io.Writer

	mu   sync.Mutex
	room sync.Cond
	talk *talk
	hub  *line // nil while there is none
	// moving holds new requests back, leaving says that the hub's last words are not to be believed.
	moving, leaving bool
	held            [][]byte
	eof, lastTry    bool
}

func newClient(out io.Writer) *client {
	c := &client{out: out, talk: newTalk()}
	c.room.L = &c.mu
	return c
}

// errClientGone is for a client that takes no answers any more.
var errClientGone = errors.New("the client is gone")

// hello completes what the shim says to the next hub.
func (c *client) hello(said hello) hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	said.Turn = c.talk.next()
	return said
}

// serve passes messages between the client and the hubs that attach gives, until the input or ctx ends. The error is
// attach's, or the client's.
func (c *client) serve(ctx context.Context, in io.Reader, attach func(context.Context) (*line, error)) error {
	var reading sync.WaitGroup
	reading.Go(func() { c.read(in) })
	defer func() {
		c.close()
		if closer, ok := in.(io.Closer); ok {
			_ = closer.Close() // whoever waits in it finds out
		}
		waitFor(&reading, lastWords)
	}()
	for {
		hub, err := attach(ctx)
		if err != nil {
			_ = c.say(c.lose()...) // the error says why
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = hub.conn.Close() })
		err = c.attached(hub)
		stop()
		switch over := c.detach(); {
		case err != nil || ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		case over:
			return c.say(c.lose()...)
		}
	}
}

// read passes the client's lines on until there are no more.
func (c *client) read(in io.Reader) {
	lines := wire.NewLineReader(in, 0)
	for {
		text, err := lines.Next()
		switch {
		case errors.Is(err, wire.ErrTooLong):
			text = []byte(tooLong)
		case err != nil:
			c.inputEnded()
			return
		}
		c.forward(text)
	}
}

func (c *client) inputEnded() {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eof = true
	if c.hub != nil && len(c.held) == 0 {
		_ = c.hub.conn.CloseWrite()
	}
}

// forward sends what the client said to the hub, or keeps it for the next one. What cannot be written is noted all the
// same: it is lost with the hub.
func (c *client) forward(text []byte) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	for len(c.held) >= maxHeld && !c.eof {
		c.sending.Unlock()
		c.room.Wait()
		c.mu.Unlock()
		c.sending.Lock()
		c.mu.Lock()
	}
	if c.hub == nil || c.moving && asks(text) || len(c.held) > 0 {
		c.held = append(c.held, text)
		c.mu.Unlock()
		return
	}
	hub := c.hub
	text = c.talk.said(text)
	c.mu.Unlock()
	if text != nil {
		_ = hub.write(text)
	}
}

// asks says whether a line has a request in it.
func asks(text []byte) bool {
	if wire.IsBatch(text) {
		return true
	}
	m, err := wire.Parse(text)
	return err != nil || m.IsRequest()
}

// attached goes on with the conversation at a hub, until the hub is gone or has nothing more to say. The error is for a
// client that is gone.
func (c *client) attached(hub *line) error {
	defer hub.conn.Close()
	c.mu.Lock()
	moved := c.moving
	c.moving, c.leaving = false, false // from here on they are this hub's word
	c.mu.Unlock()
	if err := c.greet(hub); err != nil {
		return err
	}
	c.sending.Lock() // until all that is open was sent again
	r := c.resume(hub, moved)
	err := c.say(r.told...)
	var sending sync.WaitGroup
	sending.Go(func() {
		defer c.sending.Unlock()
		hub.writeAll(r.first)
		timer := time.NewTimer(settleTime)
		defer timer.Stop()
		select {
		case <-r.settled:
		case <-timer.C: // a server need not take back what it let be watched once
		}
		hub.writeAll(r.then)
		c.resumed(hub)
	})
	for err == nil {
		text, lost := hub.in.Next()
		if lost != nil {
			break // why does not matter: there is another hub, or nobody to tell
		}
		err = c.pass(text)
	}
	_ = hub.conn.Close()
	sending.Wait()
	return err
}

// greet opens the session that the client had at another hub, and waits for that.
func (c *client) greet(hub *line) error {
	c.mu.Lock()
	greeting := c.talk.greeting()
	c.mu.Unlock()
	if greeting == nil || hub.write(greeting) != nil {
		return nil
	}
	for {
		text, err := hub.in.Next()
		if err != nil {
			return nil // the hub is gone again
		}
		if m, err := wire.Parse(text); err == nil && m.IsResponse() && isReplay(m.ID) {
			return nil
		}
		if err := c.pass(text); err != nil {
			return err
		}
	}
}

// A resumption is what is to be said when another hub takes over.
type resumption struct {
	// first is what the session was told before, then all else, once settled is closed.
	first, then [][]byte
	settled     <-chan struct{}
	// told is for the client.
	told [][]byte
}

// resume takes the hub as the one that counts; moved says that another sent the client there.
func (c *client) resume(hub *line, moved bool) (r resumption) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub = hub
	r.first, r.settled = c.talk.rest()
	if c.talk.count > 0 {
		repeat, lost, cancelled := c.talk.moved()
		r.then = repeat
		r.told = append(cancelled, answers(lost)...)
	}
	if moved && c.talk.initialized != nil {
		r.told = append(r.told, listsChanged()...)
	}
	for _, text := range c.held {
		if text = c.talk.said(text); text != nil {
			r.then = append(r.then, text)
		}
	}
	c.held = nil
	c.room.Broadcast()
	return r
}

// resumed ends the input of a hub whose client has said all, or which has sent the client on meanwhile.
func (c *client) resumed(hub *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.eof {
		_ = hub.conn.CloseWrite()
	}
	if c.moving {
		c.moveOn()
		time.AfterFunc(moveTime, hurry(hub))
	}
}

func listsChanged() (lines [][]byte) {
	for _, method := range []string{wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged} {
		lines = append(lines, append(wire.Message{Method: method}.Append(nil), '\n'))
	}
	return lines
}

// pass gives the client what the hub said.
func (c *client) pass(text []byte) error {
	c.mu.Lock()
	text = c.hear(text)
	c.mu.Unlock()
	if text == nil {
		return nil
	}
	return c.say(append(text[:len(text):len(text)], '\n'))
}

// hear takes note of what the hub said, and gives what the client is to see of it. It needs mu.
func (c *client) hear(text []byte) []byte {
	if bytes.Contains(text, []byte(notePrefix)) {
		switch m, _ := wire.Parse(text); m.Method {
		case noteMove:
			c.moving = true
			c.moveOn()
			time.AfterFunc(moveTime, hurry(c.hub))
			return nil
		case noteBye:
			c.leaving = true
			return nil
		}
	}
	if c.leaving && c.farewell(text) {
		return nil
	}
	text = c.talk.heard(text)
	c.moveOn()
	return text
}

// farewell says whether this is the end of a listening request that goes on elsewhere. It needs mu.
func (c *client) farewell(text []byte) bool {
	m, err := wire.Parse(text)
	return err == nil && m.IsResponse() && c.talk.flights[string(m.ID)].method == wire.MethodListen
}

// moveOn ends the conversation with a hub once nothing is open any more, where that is wanted. It needs mu.
func (c *client) moveOn() {
	if c.hub != nil && c.moving && !c.leaving && c.talk.busy() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// hurry ends a move that takes too long.
func hurry(hub *line) func() {
	return func() {
		if hub != nil {
			_ = hub.conn.Close()
		}
	}
}

// say writes to the client.
func (c *client) say(lines ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}

// detach takes the hub away, and says whether the conversation is over. After the end of the input another hub is looked
// for once, for what is open.
func (c *client) detach() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hub = nil
	over = c.eof && len(c.held) == 0 && (c.lastTry || c.talk.busy() == 0)
	c.lastTry = c.eof
	return over
}

// lose gives the answers to what is open where there is no hub any more.
func (c *client) lose() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.held {
		c.talk.said(text)
	}
	c.held = nil
	lost := make([]flight, 0, len(c.talk.flights))
	for _, f := range c.talk.flights {
		lost = append(lost, f)
	}
	return answers(lost)
}

// close lets the reader go.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eof = true
	c.room.Broadcast()
}

// waitFor waits for a group, but for no longer than that: a read of a terminal cannot always be interrupted, and the
// process that is in it is about to end.
func waitFor(g *sync.WaitGroup, most time.Duration) {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(most):
	}
}
