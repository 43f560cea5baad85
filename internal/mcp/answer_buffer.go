package mcp

import (
	"context"
	"time"
)

// smallBuffer is the first size of a buffer whose length is not known.
const smallBuffer = 1 << 10

// wholeAnswer is the length up to which a buffer of known length is allocated at once. A longer one is allocated when an
// eighth of it has arrived, since a server may announce more than it sends.
const wholeAnswer = 1 << 20

// An AnswerBuffer collects the bytes of one message. It grows in parts that are not copied until the message is
// complete, and takes the memory beyond 64 KiB from an AnswerBudget. After Bytes or Drop it is empty and can be used
// again. The zero value takes its memory from no budget. Its methods must be called from one goroutine.
type AnswerBuffer struct {
	ctx      context.Context
	budget   *AnswerBudget // nil if nothing is counted
	patience time.Duration

	parts    [][]byte // all except the last one are full; the first one is not counted
	size     int
	expected int
	whole    bool // the only part has room for all that is expected, and is counted

	// The mutex of the budget guards the fields below.
	held    int64
	waiting bool
	evicted bool
}

// NewAnswerBuffer returns an empty buffer with memory of budget, which may be nil. If there is no room, the buffer waits
// until ctx ends, for at most patience if that is positive.
func NewAnswerBuffer(ctx context.Context, budget *AnswerBudget, patience time.Duration) *AnswerBuffer {
	return &AnswerBuffer{ctx: ctx, budget: budget, patience: patience}
}

// Len returns the number of bytes in the buffer.
func (a *AnswerBuffer) Len() int { return a.size }

// Expect announces that the message probably has n bytes.
func (a *AnswerBuffer) Expect(n int) { a.expected = n }

// Space returns memory for the next bytes of the message, at least one. Commit adds them. The error is a *NoRoomError;
// the buffer is then empty.
func (a *AnswerBuffer) Space() ([]byte, error) {
	if len(a.parts) > 0 {
		if last := a.parts[len(a.parts)-1]; len(last) < cap(last) {
			if !a.whole && a.shouldBeWhole() {
				if err := a.makeWhole(a.expected + 1); err != nil {
					return nil, err
				}
				last = a.parts[0]
			}
			return last[len(last):cap(last)], nil
		}
	}
	return a.grow(smallBuffer)
}

// shouldBeWhole reports whether the expected length is known well enough to allocate it.
func (a *AnswerBuffer) shouldBeWhole() bool {
	return a.expected > uncountedAnswer && a.size <= a.expected &&
		(a.expected <= wholeAnswer || a.size >= a.expected/8)
}

// grow adds memory to the full buffer. A small buffer grows to at least first bytes.
func (a *AnswerBuffer) grow(first int) ([]byte, error) {
	switch {
	case a.shouldBeWhole() && !a.whole:
		if err := a.makeWhole(a.expected + 1); err != nil {
			return nil, err
		}
		return a.parts[0][a.size:cap(a.parts[0])], nil
	case a.size < uncountedAnswer:
		if a.expected > 0 && a.expected <= uncountedAnswer {
			first = max(first, a.expected+1)
		}
		part := make([]byte, a.size, min(max(first, 2*a.size), uncountedAnswer))
		if a.size > 0 {
			copy(part, a.parts[0])
		}
		a.parts = append(a.parts[:0], part)
		return part[a.size:cap(part)], nil
	}
	chunk, err := a.allocate(answerChunk)
	if err != nil {
		return nil, err
	}
	a.parts, a.whole = append(a.parts, chunk[:0]), false
	return chunk, nil
}

// makeWhole moves the bytes of the buffer to one part of n bytes.
func (a *AnswerBuffer) makeWhole(n int) error {
	whole, err := a.allocate(n)
	if err != nil {
		return err
	}
	at := 0
	for _, part := range a.parts {
		at += copy(whole[at:], part)
	}
	a.recycle()
	a.parts, a.whole = append(a.parts[:0], whole[:at]), true
	return nil
}

// recycle returns the chunks to the budget, which then counts only what the caller allocated last.
func (a *AnswerBuffer) recycle() {
	if a.budget != nil {
		a.budget.end(a, a.chunks())
	}
	clear(a.parts)
}

// chunks returns the counted parts that can be used again.
func (a *AnswerBuffer) chunks() (chunks [][]byte) {
	for n, part := range a.parts {
		if n > 0 && cap(part) == answerChunk {
			chunks = append(chunks, part[:answerChunk])
		}
	}
	return chunks
}

func (a *AnswerBuffer) allocate(n int) ([]byte, error) {
	if a.budget == nil {
		return make([]byte, n), nil
	}
	data, err := a.budget.allocate(a.ctx, a, n, a.patience)
	if err != nil {
		a.Drop()
	}
	return data, err
}

// Commit adds n bytes that were written to the memory of Space.
func (a *AnswerBuffer) Commit(n int) {
	last := &a.parts[len(a.parts)-1]
	*last = (*last)[:len(*last)+n]
	a.size += n
}

// Append adds p. The error is a *NoRoomError; the buffer is then empty.
func (a *AnswerBuffer) Append(p []byte) error {
	for len(p) > 0 {
		space, err := a.spaceFor(len(p))
		if err != nil {
			return err
		}
		n := copy(space, p)
		a.Commit(n)
		p = p[n:]
	}
	return nil
}

// spaceFor is Space, but an empty buffer gets exactly n bytes if these are few.
func (a *AnswerBuffer) spaceFor(n int) ([]byte, error) {
	if len(a.parts) == 0 {
		return a.grow(n)
	}
	return a.Space()
}

// Bytes returns the message in memory that the buffer does not use again.
func (a *AnswerBuffer) Bytes() ([]byte, error) {
	if len(a.parts) > 1 {
		if err := a.makeWhole(a.size); err != nil {
			return nil, err
		}
	}
	data := []byte{}
	if len(a.parts) == 1 {
		data = a.parts[0][:a.size:a.size]
	}
	a.Drop()
	return data, nil
}

// Drop empties the buffer.
func (a *AnswerBuffer) Drop() {
	a.recycle()
	a.parts, a.size, a.expected, a.whole = nil, 0, 0, false
}
