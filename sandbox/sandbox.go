package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxRunsPerWorker is after how many runs a worker is replaced.
	maxRunsPerWorker = 1000
	// defaultIdleTimeout is how long a worker without work is kept.
	defaultIdleTimeout = 2 * time.Minute
	// maxAttempts is how many workers are tried for a script that was not begun.
	maxAttempts = 3
	// maxMemory is the maximum size of an interpreter's memory: the limits of a run are within it.
	maxMemory = 1 << 30
)

// ErrNoInterpreter is the error of a program that was built without the interpreter, with -tags nopython.
var ErrNoInterpreter = errors.New("this program was built without the Python interpreter (-tags nopython)")

// ErrNoWorkers is the error of a program that does not call [RunWorker] first thing in main, and does not set
// [Options.InProcess].
var ErrNoWorkers = errors.New("sandbox: main must call sandbox.RunWorker first, or Options.InProcess must be set, " +
	"which has no process boundary")

// Options are the options of a [Sandbox]. The zero value works.
type Options struct {
	// Dir is the directory for the unpacked interpreter and its compiled code, about 50 MB. It gets the mode 0700,
	// because its files are run as code. Empty means a directory "drawbridge/python" in the user's cache directory.
	Dir string
	// Workers is how many scripts run at the same time; the default is the number of processors, and at least 2.
	Workers int
	// IdleTimeout is how long a worker without work is kept; the default is two minutes.
	IdleTimeout time.Duration
	// InProcess has the scripts run in this process, in place of worker processes: then main need not call [RunWorker].
	// The engine is wazero, compiled so that a time limit, and a context that ends, also end a loop in C code. Hosts,
	// journals and limits are as with workers.
	//
	// It promises less than a worker process:
	//
	//   - There is no process boundary. A script that escapes from WebAssembly has all rights and all memory of the
	//     program, and a fault of the engine can end the program.
	//   - The system limits nothing. Limits.Memory holds for the memory of the interpreter, not for what the engine needs
	//     for it. CPU time is limited by Limits.Time only: a script runs on one thread.
	//   - A script that is ended stops at its next loop. One instruction that fills or copies a large memory ends first.
	//     A garbage collection waits for it too, and all goroutines with it: for seconds, if Limits.Memory is large.
	//   - Scripts that compute are slower, about three times.
	InProcess bool
	// Logger receives the ends of workers that were not expected; nil drops them.
	Logger *slog.Logger
}

// A Sandbox runs scripts in worker processes, or in this process, see [Options.InProcess]. It starts the first one for
// the first script. It is safe for concurrent use.
type Sandbox struct {
	options Options
	engine  *Engine
	starter starter
	// local has the workers of this process; nil if workers are processes.
	local *localWorkers
	slots *slotQueue
	// background are the goroutines that start spare workers and end used ones.
	background sync.WaitGroup
	// life ends with Close.
	life context.Context
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	// idle are the workers that can run a script, the last used one last. alive counts all workers.
	idle  []*workerProcess
	alive int
	// spareStarting reports that a worker for the next new owner is being started.
	spareStarting bool

	// preparing has a token for the one goroutine that prepares the files.
	preparing chan struct{}
	files     *interpreterFiles
	closing   sync.Once
}

// Open returns a Sandbox. It starts nothing. The caller must call Close.
func Open(ctx context.Context, options Options) (*Sandbox, error) {
	if !hasInterpreter {
		return nil, ErrNoInterpreter
	}
	engine, local := programEngine.Load(), (*localWorkers)(nil)
	if options.InProcess {
		local = &localWorkers{}
		engine = local.engine()
	}
	if engine == nil {
		return nil, ErrNoWorkers
	}
	options.Workers = cmp.Or(max(options.Workers, 0), max(runtime.NumCPU(), 2))
	options.IdleTimeout = cmp.Or(max(options.IdleTimeout, 0), defaultIdleTimeout)
	options.Logger = cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	if options.Dir == "" {
		dir, err := defaultDir()
		if err != nil {
			return nil, err
		}
		options.Dir = dir
	}
	s := &Sandbox{options: options, engine: engine, local: local, slots: newSlotQueue(options.Workers),
		preparing: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

// Run runs a script in a Sandbox of its own: for a program that runs one. main must call [RunWorker] first; [RunWith]
// and [Options.InProcess] do without.
func Run(ctx context.Context, script Script, host Host) (Outcome, error) {
	return RunWith(ctx, Options{}, script, host)
}

// RunWith is [Run] with options.
func RunWith(ctx context.Context, options Options, script Script, host Host) (Outcome, error) {
	s, err := Open(ctx, options)
	if err != nil {
		return Outcome{}, err
	}
	defer s.Close()
	return s.Run(ctx, script, host)
}

// Run runs a script. An exception of the script, and a limit that it met, are in the Outcome. The error is for runs
// that could not take place, and for a ctx that ended. Inner calls end with the run.
func (s *Sandbox) Run(ctx context.Context, script Script, host Host) (Outcome, error) {
	limits := script.Limits.WithDefaults()
	if limits.Memory > maxMemory {
		return Outcome{}, fmt.Errorf("sandbox: a memory of %d bytes is above the maximum of %d", limits.Memory, maxMemory)
	}
	for attempt := 1; ; attempt++ {
		p, err := s.acquire(ctx, script)
		if err != nil {
			return Outcome{}, err
		}
		start := time.Now()
		outcome, err := p.run(ctx, s.life, script, limits, host)
		outcome.Duration = time.Since(start)
		s.release(p)
		if errors.Is(err, errNotBegun) && attempt < maxAttempts {
			continue // the worker ended while it was idle
		}
		return outcome, err
	}
}

// Close ends all workers, also those that run a script, and waits for them.
func (s *Sandbox) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.closed = true
		idle := s.idle
		s.idle = nil
		s.mu.Unlock()
		s.end()
		for _, p := range idle {
			s.discard(p)
		}
		s.slots.wait() // runs end with s.life
		s.background.Wait()
		s.starter.close()
		s.local.close(s.life)
	})
	return nil
}

// acquire returns a worker for the owner of the script: one that served the owner before, or a new one. It waits while
// all slots are taken.
func (s *Sandbox) acquire(ctx context.Context, script Script) (*workerProcess, error) {
	waitCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()
	if err := s.slots.acquire(waitCtx, script.Owner); err != nil {
		return nil, err
	}
	p, err := s.take(ctx, script)
	if err != nil {
		s.slots.release(script.Owner)
		return nil, err
	}
	p.owner = script.Owner
	s.startSpare()
	return p, nil
}

var errClosed = errors.New("sandbox: closed")

// take returns an idle worker, or starts one.
func (s *Sandbox) take(ctx context.Context, script Script) (*workerProcess, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	at := lastIndex(s.idle, func(p *workerProcess) bool { return p.owner == script.Owner && p.runs > 0 })
	if at < 0 {
		at = lastIndex(s.idle, func(p *workerProcess) bool { return p.runs == 0 })
	}
	var evicted *workerProcess
	if at < 0 && len(s.idle) > 0 && s.alive > s.options.Workers {
		evicted, s.idle = s.idle[0], s.idle[1:] // it served another owner, longer ago than the others
	}
	if at >= 0 {
		p := s.idle[at]
		s.idle = slices.Delete(s.idle, at, at+1)
		s.mu.Unlock()
		p.idleTimer.Stop()
		return p, nil
	}
	s.mu.Unlock()
	if evicted != nil {
		s.discard(evicted)
	}
	return s.start(ctx, script.OnFirstStart)
}

// lastIndex returns the index of the last element that satisfies f, or -1.
func lastIndex[T any](s []T, f func(T) bool) int {
	for i := len(s) - 1; i >= 0; i-- {
		if f(s[i]) {
			return i
		}
	}
	return -1
}

// start starts a worker. onFirst is called if the interpreter must be prepared; it may be nil.
func (s *Sandbox) start(ctx context.Context, onFirst func()) (*workerProcess, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()
	files, err := s.interpreter(ctx, onFirst)
	if err != nil {
		return nil, err
	}
	p, err := s.startWorker(ctx, files.setup())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.alive++
	s.mu.Unlock()
	return p, nil
}

// startWorker starts a worker process, or a worker in this process.
func (s *Sandbox) startWorker(ctx context.Context, setup EngineSetup) (*workerProcess, error) {
	if s.local != nil {
		return s.local.start(ctx, setup, s.options.Logger)
	}
	return s.starter.start(ctx, setup, s.options.Logger)
}

// startSpare starts a worker for the next owner, in the background, unless there is one.
func (s *Sandbox) startSpare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := slices.ContainsFunc(s.idle, func(p *workerProcess) bool { return p.runs == 0 })
	if s.closed || fresh || s.spareStarting || s.alive > s.options.Workers {
		return
	}
	s.spareStarting = true
	s.background.Go(func() {
		p, err := s.start(s.life, nil)
		s.mu.Lock()
		s.spareStarting = false
		s.mu.Unlock()
		if err == nil {
			s.keep(p)
		} else if s.life.Err() == nil {
			s.options.Logger.Warn("start a spare worker of the sandbox", "err", err)
		}
	})
}

// release returns a worker to the idle ones, or ends it if it is broken or ran its maximum number of scripts.
func (s *Sandbox) release(p *workerProcess) {
	defer s.slots.release(p.owner) // once it is idle, p may have another owner
	if !p.broken && p.runs < maxRunsPerWorker {
		s.keep(p)
	} else {
		s.background.Go(func() {
			s.discard(p)
			s.startSpare()
		})
	}
}

// keep adds a worker to the idle ones.
func (s *Sandbox) keep(p *workerProcess) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.idle = append(s.idle, p)
		p.idleTimer = time.AfterFunc(s.options.IdleTimeout, func() { s.retire(p) })
	}
	s.mu.Unlock()
	if closed {
		s.discard(p)
	}
}

// retire ends a worker that was idle for long.
func (s *Sandbox) retire(p *workerProcess) {
	s.mu.Lock()
	at := slices.Index(s.idle, p)
	if at < 0 || s.closed {
		s.mu.Unlock()
		return
	}
	s.idle = slices.Delete(s.idle, at, at+1)
	s.background.Add(1)
	s.mu.Unlock()
	defer s.background.Done()
	s.discard(p)
}

// discard ends a worker and waits for it.
func (s *Sandbox) discard(p *workerProcess) {
	if p.idleTimer != nil {
		p.idleTimer.Stop()
	}
	p.close()
	s.mu.Lock()
	s.alive--
	s.mu.Unlock()
}

// interpreter returns the files of the interpreter. The first call unpacks them if need be, and has them compiled.
func (s *Sandbox) interpreter(ctx context.Context, onFirst func()) (*interpreterFiles, error) {
	select {
	case s.preparing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.preparing }()
	if s.files != nil {
		return s.files, nil
	}
	files, err := prepareInterpreter(ctx, s.options.Dir, s.engine, onFirst, func(setup EngineSetup) error {
		p, err := s.startWorker(ctx, setup)
		if err == nil {
			p.close()
		}
		return err
	})
	if err == nil {
		s.files = files
	}
	return files, err
}

// message returns what the bootstrap reads for a script.
func (script Script) message() (json.RawMessage, error) {
	return json.Marshal(struct {
		Code      string          `json:"code"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
	}{script.Code, script.Arguments})
}
