package hub

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A lender is a client whose input and output are lent to the hub: it reads and says nothing itself while there is one.
type lender struct {
	in, out *os.File
	talk    *talk
	hub     *line
	slate   *slate
	// place is up to where in the input of this slate the client was heard; eof says that it has no end after that.
	place uint64
	eof   bool
	// rest is what another hub had read of the input and not taken note of.
	rest            []byte
	moving, leaving bool
	tried           bool
}

// serve lends the client to the hubs that attach gives, until its input or ctx ends. The error is attach's, or the client's.
func (c *lender) serve(ctx context.Context, attach func(context.Context) (*line, error)) error {
	for {
		hub, err := attach(ctx)
		if err != nil {
			_ = c.say(answers(c.lose())...) // the error says why
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = hub.conn.Close() })
		err = c.attached(hub)
		stop()
		if err != nil || ctx.Err() != nil || c.over() {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// hello completes what is said to the next hub.
func (c *lender) hello(said hello) hello {
	said.Lends, said.Turn = true, c.talk.next()
	return said
}

// over says whether the conversation is. After the end of the input another hub is looked for once, for what is open.
func (c *lender) over() bool {
	over := c.eof && (c.tried || c.talk.busy() == 0)
	c.tried = c.eof
	return over
}

// attached lends the client to a hub, until the hub is gone or has nothing more to say. The error is for a client that is
// gone, and for a system that lends nothing.
func (c *lender) attached(hub *line) error {
	defer hub.conn.Close()
	slate, file, err := newSlate()
	if err != nil {
		return err
	}
	defer slate.close()
	defer file.Close()
	for _, f := range []*os.File{c.in, c.out, file} {
		if sendFile(hub.conn, f) != nil {
			return nil // it is gone again
		}
	}
	c.hub, c.slate, c.place = hub, slate, 0
	if !c.greet() {
		return nil
	}
	if err := c.resume(); err != nil {
		return err
	}
	for {
		text, err := hub.in.Next()
		if err != nil {
			break // why does not matter: there is another hub, or nobody to tell
		}
		c.hear(text)
	}
	_ = hub.conn.Close()
	c.look()
	c.rest = slate.rest(c.place)
	return nil
}

// greet opens the session that the client had at another hub, and says whether the hub is still there.
func (c *lender) greet() bool {
	greeting := c.talk.greeting()
	if greeting == nil {
		return true
	}
	if c.hub.write(greeting) != nil {
		return false
	}
	return c.until(func(m wire.Message) bool { return isReplay(m.ID) })
}

// until takes what the hub says until something that is waited for.
func (c *lender) until(awaited func(wire.Message) bool) bool {
	_ = c.hub.conn.SetReadDeadline(time.Now().Add(settleTime))
	defer func() { _ = c.hub.conn.SetReadDeadline(time.Time{}) }()
	for {
		text, err := c.hub.in.Next()
		if err != nil {
			return false
		}
		if m, err := wire.Parse(text); err == nil && awaited(m) {
			return true
		}
		c.hear(text)
	}
}

// resume tells the hub what the session was told before, tells the client what is lost, asks again what may be, and gives the
// client the word.
func (c *lender) resume() error {
	moved := c.moving
	c.moving, c.leaving = false, false
	first, _ := c.talk.rest()
	c.hub.writeAll(first)
	if c.talk.again > 0 && !c.until(func(m wire.Message) bool {
		if isReplay(m.ID) {
			c.talk.replayed()
		}
		return c.talk.again == 0
	}) {
		return nil // the loop finds out
	}
	var told [][]byte
	if c.talk.cut {
		told = append(told, []byte{'\n'}) // what was cut off is no message, and the next one is not to be part of it
	}
	if c.talk.unsure != nil {
		told = append(told, c.talk.unsure)
	}
	c.talk.cut, c.talk.unsure = false, nil
	if c.talk.count > 0 {
		repeat, lost, cancelled := c.talk.moved()
		c.hub.writeAll(repeat)
		told = append(append(told, cancelled...), answers(lost)...)
	}
	if moved && c.talk.initialized != nil {
		told = append(told, listsChanged()...)
	}
	if err := c.say(told...); err != nil {
		return err
	}
	rest, err := json.Marshal(c.rest)
	if err != nil {
		return err
	}
	_ = c.hub.write(wire.Message{Method: noteGo, Params: rest}.Append(nil))
	return nil
}

// hear takes what the hub says to the shim.
func (c *lender) hear(text []byte) {
	switch m, _ := wire.Parse(text); m.Method {
	case noteLook:
		c.look()
	case noteMove:
		c.moving = true
		c.look()
		time.AfterFunc(moveTime, hurry(c.hub))
	case noteBye:
		c.leaving = true
	}
	if c.moving && !c.leaving && c.talk.busy() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// look reads the slate.
func (c *lender) look() {
	c.slate.drain(func(kind byte, text []byte) {
		if kind == noteSaid || kind == noteRequest {
			if len(text) < 8 {
				return
			}
			c.place, text = binary.LittleEndian.Uint64(text), text[8:]
		}
		switch kind {
		case noteSaid:
			c.talk.said(text)
		case noteRequest:
			var r largeRequest
			if json.Unmarshal(text, &r) == nil {
				c.talk.add(flight{id: r.ID, method: r.Method, name: r.Name, modern: r.Modern})
			}
		case noteEOF:
			c.eof = true
		case noteAnswered:
			delete(c.talk.flights, string(text))
		case noteAsked:
			c.talk.asked[string(c.talk.known(text))] = text
		case noteSaying:
			c.talk.unsure = text
		case noteBegan:
			c.talk.cut = true
		case noteEnded:
			c.talk.unsure, c.talk.cut = nil, false
		}
	})
}

// lose gives up what is open where there is no hub any more.
func (c *lender) lose() (lost []flight) {
	for _, f := range c.talk.flights {
		lost = append(lost, f)
	}
	return lost
}

// say writes to the client.
func (c *lender) say(lines ...[]byte) error {
	for _, text := range lines {
		if _, err := c.out.Write(text); err != nil {
			return errClientGone
		}
	}
	return nil
}
