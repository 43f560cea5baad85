package terminal

import (
	"context"
	"io"
	"sync"
)

// Keys is what a person types. A wait for it can end before anything comes, and what comes then is for whoever waits next. It is
// for one reader at a time.
type Keys struct {
	in      io.Reader
	reading sync.WaitGroup // a read of a terminal cannot be interrupted: the last one ends with the process
	typed   chan typed     // what the read that goes on brings; nil where none does
	left    []byte
}

type typed struct {
	keys []byte
	err  error
}

// NewKeys gives what a person types on in.
func NewKeys(in io.Reader) *Keys { return &Keys{in: in} }

// read reads until ctx ends.
func (k *Keys) read(ctx context.Context, p []byte) (int, error) {
	if len(k.left) == 0 {
		if k.typed == nil {
			come := make(chan typed, 1)
			k.typed = come
			k.reading.Go(func() {
				b := make([]byte, 256)
				n, err := k.in.Read(b)
				come <- typed{b[:n], err}
			})
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case got := <-k.typed:
			k.typed = nil
			if len(got.keys) == 0 {
				return 0, got.err
			}
			k.left = got.keys
		}
	}
	n := copy(p, k.left)
	k.left = k.left[n:]
	return n, nil
}

// forget drops what came and nobody read.
func (k *Keys) forget() {
	k.left = nil
	select {
	case <-k.typed:
		k.typed = nil
	default:
	}
}

// A tty is the terminal as one dialogue has it: its keys are for it until ctx ends.
type tty struct {
	io.Writer
	ctx  context.Context
	keys *Keys
}

func (t tty) Read(p []byte) (int, error) { return t.keys.read(t.ctx, p) }
