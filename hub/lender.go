package hub

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A lender is a client whose input and output are lent to the hub: it reads and says nothing itself while there is one. One
// goroutine has all of it.
type lender struct {
	in, out *os.File
	talk    *talk
	hub     *line
	// heard has what the hub says, until it is gone.
	heard chan []byte
	slate *slate
	// place is up to where in the input of this slate the client was heard; eof says that it has no end after that.
	place uint64
	eof   bool
	// rest is what another hub had read of the input and not taken note of.
	rest []byte
	// answered are the requests whose answers a hub is about to note. They count with the note of what it says: one that dies in between
	// has said nothing, and left nothing to say again.
	answered [][]byte
	// part and large are of a line that a hub is about to note, in the same way.
	part  []byte
	large []flight
	// patience is how long what a session said before may take to settle: settleTime.
	patience        time.Duration
	moving, leaving bool
	tried           bool
}

// serve lends the client to the hubs that attach gives, until its input or ctx ends. The error is attach's, or the client's.
func (c *lender) serve(ctx context.Context, attach func(context.Context) (*line, error)) error {
	defer c.release()
	for {
		hub, err := attach(ctx)
		c.release()
		if err != nil {
			_ = c.say(answers(c.lose())...) // the error says why
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = hub.conn.Close() })
		err = c.attached(hub)
		stop()
		switch {
		case err != nil || ctx.Err() != nil:
			return errors.Join(context.Cause(ctx), err)
		case c.over():
			c.release()
			return c.say(answers(c.lose())...)
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
	done := c.talk.busy() == 0 && c.talk.unsure == nil
	over := c.eof && (c.tried || done)
	c.tried = c.eof
	return over
}

// attached lends the client to a hub, until the hub is gone or has nothing more to say. The error is for a client that is
// gone, and for a system that has no memory to share.
func (c *lender) attached(hub *line) error {
	defer hub.conn.Close()
	slate, file, err := newSlate()
	if err != nil {
		return err
	}
	defer file.Close()
	slate.load(c.rest) // in the next hub's place: it may die before it has read a word
	c.hub, c.slate, c.place, c.heard = hub, slate, 0, make(chan []byte)
	c.answered, c.part, c.large = nil, nil, nil
	for _, f := range []*os.File{c.in, c.out, file} {
		if sendFile(hub.conn, f) != nil {
			return nil // it is gone again
		}
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(c.heard)
		for text, err := hub.in.Next(); err == nil; text, err = hub.in.Next() {
			c.heard <- text
		}
	})
	moved := c.moving
	c.moving, c.leaving = false, false // from here on they are this hub's word
	err = c.converse(moved)
	_ = hub.conn.Close()
	for range c.heard {
		// what the hub said last; all that counts of it is on the slate
	}
	reading.Wait()
	c.look()
	return err
}

// release takes leave of the last hub, once there is another, or none at all. Until then it may read and say more, also after
// its connection was closed: a hub that ends is gone for sure when the next one is there.
func (c *lender) release() {
	if c.slate == nil {
		return
	}
	c.look()
	c.rest = c.slate.rest(c.place)
	c.slate.close()
	c.slate = nil
}

// converse is what is said with a hub; moved says that another sent the client there. Why it ends does not matter but for a client
// that is gone: there is another hub, or nobody to tell.
func (c *lender) converse(moved bool) error {
	if greeting := c.talk.greeting(); greeting != nil {
		_ = c.hub.write(greeting)
		if !c.until(func(m wire.Message) bool { return isReplay(m.ID) }) {
			return nil
		}
	}
	if err := c.resume(moved); err != nil {
		return err
	}
	for text := range c.heard {
		c.hear(text)
	}
	return nil
}

// until takes what the hub says until something that is waited for, and no longer than patience: it says whether that came.
func (c *lender) until(awaited func(wire.Message) bool) bool {
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	for {
		select {
		case text, ok := <-c.heard:
			if !ok {
				return false
			}
			if m, err := wire.Parse(text); err == nil && awaited(m) {
				return true
			}
			c.hear(text)
		case <-timer.C:
			return false
		}
	}
}

// resume tells the hub what the session was told before, tells the client what is lost, asks again what may be, and gives the
// client the word.
func (c *lender) resume(moved bool) error {
	first, _ := c.talk.rest()
	c.hub.writeAll(first)
	if c.talk.again > 0 { // a server need not take back what it let be watched once
		c.until(func(m wire.Message) bool {
			if isReplay(m.ID) {
				c.talk.replayed()
			}
			return c.talk.again == 0
		})
	}
	var told [][]byte
	if c.talk.cut {
		told = append(told, []byte("!\n")) // what was cut off is no message, also where only its end is missing, and the next one is no part of it
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
	_ = c.hub.write(wire.Message{Method: noteGo}.Append(nil))
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
		time.AfterFunc(moveTime, urge(c.hub))
	case noteBye:
		c.leaving = true
	}
	if c.moving && !c.leaving && c.talk.busy() == 0 {
		c.leaving = true
		_ = c.hub.conn.CloseWrite()
	}
}

// urge ends a move that takes too long. The hub lets go of the client's output first: two would speak at once otherwise.
func urge(hub *line) func() { return func() { _ = hub.conn.CloseWrite() } }

// look reads the slate.
func (c *lender) look() {
	c.slate.drain(func(kind byte, text []byte) {
		switch kind {
		case noteSaid:
			c.said(text)
		case noteRequest:
			var r largeRequest
			if json.Unmarshal(text, &r) == nil {
				c.large = append(c.large, flight{id: r.ID, method: r.Method, name: r.Name, modern: r.Modern})
			}
		case notePart:
			c.part = append(c.part, text...)
		case noteEOF:
			c.eof = true
		case noteAnswered:
			c.answered = append(c.answered, text)
		case noteAsked:
			c.talk.asked[string(c.talk.known(text))] = text
		case noteSaying:
			for _, id := range c.answered {
				delete(c.talk.flights, string(id))
			}
			c.talk.unsure, c.talk.cut, c.answered = text, false, nil
		case noteBegan:
			c.talk.cut = true
		case noteEnded:
			c.talk.unsure, c.talk.cut = nil, false
		}
	})
}

// said takes a note of what the client said, behind its place in the input.
func (c *lender) said(text []byte) {
	if len(text) < 8 {
		return
	}
	c.place = binary.LittleEndian.Uint64(text)
	c.talk.said(append(c.part, text[8:]...))
	for _, f := range c.large {
		c.talk.add(f)
	}
	c.part, c.large = nil, nil
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
