package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
)

// startInProcess starts a worker in a goroutine of this process, and waits until it can run scripts. The worker and the
// program speak as they do with a process, over pipes in memory.
func startInProcess(ctx context.Context, engine *Engine, setup EngineSetup, log *slog.Logger) (*workerProcess, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	workerIn, in := io.Pipe()
	out, workerOut := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w := &worker{in: bufio.NewReaderSize(workerIn, workerBuffer), out: workerOut}
		err := w.serveInProcess(life, engine, setup)
		if err != nil {
			_ = w.send(errorFrame, []byte(err.Error())) // the program may have ended the worker
		}
		_ = workerOut.Close() // always nil
		_ = workerIn.Close()
	}()
	return awaitReady(ctx, &workerProcess{in: in, out: bufio.NewReaderSize(out, 64<<10), log: log,
		kill: func() {
			cancel()
			_ = in.CloseWithError(errWorkerKilled) // always nil
			_ = out.CloseWithError(errWorkerKilled)
			_ = workerOut.CloseWithError(errWorkerKilled)
		},
		wait: func() { <-done }})
}

// errWorkerKilled is what both sides of a worker read after it was ended.
var errWorkerKilled = errors.New("the worker was ended")

// serveInProcess runs scripts until the input ends, or ctx does. Then it releases what it opened.
func (w *worker) serveInProcess(ctx context.Context, engine *Engine, setup EngineSetup) (err error) {
	defer func() {
		if w.runner != nil {
			if c, ok := w.runner.instances.(interface{ Close(context.Context) error }); ok {
				err = errors.Join(err, c.Close(context.WithoutCancel(ctx)))
			}
		}
	}()
	if err := w.open(ctx, engine, setup); err != nil {
		return err
	}
	if err := w.runner.prepare(ctx); err != nil {
		return err
	}
	return w.loop(ctx)
}
