package term

import (
	"context"
	"io"
	"sync"
)

// KeyReader reads the keys that a person types. A read can end before a key arrives; the next read returns that key.
// It serves one reader at a time.
type KeyReader struct {
	in          io.Reader
	reading     sync.WaitGroup  // a read of a terminal cannot be interrupted: the last one ends with the process
	pendingRead chan readResult // the result of the pending read; nil without one
	unread      []byte
}

type readResult struct {
	data []byte
	err  error
}

// NewKeyReader returns a reader of the keys from in.
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

// discard drops input that arrived and was not read.
func (k *KeyReader) discard() {
	k.unread = nil
	select {
	case <-k.pendingRead:
		k.pendingRead = nil
	default:
	}
}

// A dialogueTerminal is the terminal of one dialogue, which receives the keys until ctx ends.
type dialogueTerminal struct {
	io.Writer
	ctx  context.Context
	keys *KeyReader
}

func (t dialogueTerminal) Read(p []byte) (int, error) { return t.keys.read(t.ctx, p) }
