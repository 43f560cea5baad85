package cli

import (
	"context"
	"io"
	"sync"
)

// A KeyReader reads the keys that a person types. If a read is canceled before a key arrives, the next read returns
// that key. Only one goroutine may read at a time.
type KeyReader struct {
	in          io.Reader
	reading     sync.WaitGroup  // a read cannot be interrupted and may run until the process exits
	pendingRead chan readResult // the result of the pending read; nil if no read is pending
	unread      []byte
}

type readResult struct {
	data []byte
	err  error
}

// NewKeyReader returns a reader of the keys from in.
func NewKeyReader(in io.Reader) *KeyReader { return &KeyReader{in: in} }

// read reads keys into p. If ctx ends before a key arrives, it returns the error of ctx.
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

// discard drops the input that has arrived and was not read yet.
func (k *KeyReader) discard() {
	k.unread = nil
	select {
	case <-k.pendingRead:
		k.pendingRead = nil
	default:
	}
}

// A dialogueTerminal is the terminal of one dialogue: it writes to the Writer, and reads keys until ctx ends.
type dialogueTerminal struct {
	io.Writer
	ctx  context.Context
	keys *KeyReader
}

func (t dialogueTerminal) Read(p []byte) (int, error) { return t.keys.read(t.ctx, p) }
