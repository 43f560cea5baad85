package sandbox

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/tetratelabs/wazero"
)

// interruptibleName is the name of wazero as the engine of local workers. Its code differs from that of worker processes:
// each loop checks whether the run must end.
const interruptibleName = "wazero-interruptible"

// localWorkers starts the workers of a [Sandbox] in this process. All share the code of the interpreter, which is compiled
// or loaded once; each has a memory of its own.
type localWorkers struct {
	mu    sync.Mutex
	code  []byte
	cache wazero.CompilationCache
}

// engine returns the engine of the workers.
func (l *localWorkers) engine() *Engine {
	return &Engine{Name: interruptibleName, Version: moduleVersion(wazeroModule), Open: l.open}
}

// open is the Open of the engine.
func (l *localWorkers) open(ctx context.Context, setup EngineSetup, imports ImportFunc) (Instances, error) {
	// The lock also keeps two workers from compiling at the same time.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cache == nil {
		code, err := os.ReadFile(setup.Code) // not mapped: it is in use until the garbage collection of the last instance
		if err != nil {
			return nil, err
		}
		cache, err := wazero.NewCompilationCacheWithDir(setup.Compiled)
		if err != nil {
			return nil, err
		}
		l.code, l.cache = code, cache
	}
	config := wazero.NewRuntimeConfigCompiler().WithCompilationCache(l.cache).WithCloseOnContextDone(true)
	e, err := openWazero(ctx, config, l.code, setup, imports)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// close releases the code. All workers have ended.
func (l *localWorkers) close(ctx context.Context) {
	if l == nil || l.cache == nil {
		return
	}
	_ = l.cache.Close(ctx) // it has nothing to close that can fail
	l.code, l.cache = nil, nil
}

// start starts a worker and waits until it can run scripts.
func (l *localWorkers) start(ctx context.Context, setup EngineSetup, log *slog.Logger) (*workerProcess, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	requests, in := io.Pipe()
	out, replies := io.Pipe()
	p := &workerProcess{in: in, out: bufio.NewReaderSize(out, 64<<10), log: log}
	p.kill = func() {
		// First the pipes: the worker must not report that it was ended as the end of the script.
		_ = replies.Close() // the ends of a pipe return no errors
		_ = requests.Close()
		end()
	}
	var running sync.WaitGroup
	p.wait = running.Wait
	w := &worker{in: bufio.NewReaderSize(requests, workerBuffer), out: replies, ended: life.Done()}
	running.Go(func() {
		defer p.kill()
		if err := w.serveLocal(life, l.engine(), setup); err != nil {
			_ = w.send(errorFrame, []byte(err.Error())) // the worker may have been ended
		}
	})
	if err := p.awaitReady(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// serveLocal is serve for a worker in the program: it changes nothing of the process, and releases what it used.
func (w *worker) serveLocal(ctx context.Context, engine *Engine, setup EngineSetup) error {
	defer func() {
		if w.runner != nil {
			w.runner.close(ctx)
		}
	}()
	if err := w.open(ctx, engine, setup); err != nil {
		return err
	}
	if err := w.runner.prepare(ctx); err != nil {
		return err
	}
	return w.runAll(ctx)
}
