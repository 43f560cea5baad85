package term

import (
	"context"
	"io"
	"sync"
)

// KeyReader is what a person types. A wait for it can end before anything comes, and what comes then is for whoever
// waits next. It is for one reader at a time.
type KeyReader struct {
	in          io.Reader
	reading     sync.WaitGroup  // a read of a terminal cannot be interrupted: the last one ends with the process
	pendingRead chan readResult // what the read that goes on brings; nil where none does
	unread      []byte
}

type readResult struct {
	data []byte
	err  error
}

// NewKeyReader returns what a person types on in.
func NewKeyReader(in io.Reader) *KeyReader { return &KeyReader{in: in} }

// read reads until ctx ends.
func (k *KeyReader) read(ctx context.Context, p []byte) (int, error) {
	if len(k.unread) == 0 {
		if k.pendingRead == nil {
			come := make(chan readResult, 1)
			k.pendingRead = come
			k.reading.Go(func() {
				b := make([]byte, 256)
				n, err := k.in.Read(b)
				come <- readResult{b[:n], err}
			})
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case got := <-k.pendingRead:
			k.pendingRead = nil
			if len(got.data) == 0 {
				return 0, got.err
			}
			k.unread = got.data
		}
	}
	n := copy(p, k.unread)
	k.unread = k.unread[n:]
	return n, nil
}

// discard drops what came and nobody read.
func (k *KeyReader) discard() {
	k.unread = nil
	select {
	case <-k.pendingRead:
		k.pendingRead = nil
	default:
	}
}

// A dialogueTerminal is the terminal as one dialogue has it: its keys are for it until ctx ends.
type dialogueTerminal struct {
	io.Writer
	ctx  context.Context
	keys *KeyReader
}

func (t dialogueTerminal) Read(p []byte) (int, error) { return t.keys.read(t.ctx, p) }
