package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

// workerArgument is the first argument of a worker process; an EngineSetup as JSON is the second.
const workerArgument = "drawbridge-run-python"

// A workerRun is a script for a worker. Message is what the bootstrap reads.
type workerRun struct {
	Message json.RawMessage
	Limits  Limits
	// Record has the readings of the clock sent to the program. Clock are the readings of the run that is repeated, and
	// Seed is the seed of its random numbers; nil for a random one.
	Record bool
	Clock  []byte
	Seed   []byte
}

// A workerResult is the end of a run, as the worker reports it.
type workerResult struct {
	Stdout, Stderr string
	Truncated      bool
	Flooded        bool
	Fault          string
	Memory         int64
}

// firstScript is run once by every worker, before it is confined: later scripts find the pages that any script uses in
// place.
const firstScript = `{"code": "print(1)"}`

// RunWorker must be called first thing in main by a program that runs scripts. It returns at once, unless this process
// was started by this package as a worker: then it runs scripts and never returns. The engine is wazero.
func RunWorker() { RunWorkerWith(wazeroEngine()) }

// RunWorkerWith is [RunWorker] with another engine. Of several calls in one process the first one counts.
func RunWorkerWith(engine Engine) {
	if len(os.Args) != 3 || os.Args[1] != workerArgument {
		programEngine.CompareAndSwap(nil, &engine)
		return
	}
	w := &worker{in: bufio.NewReaderSize(os.Stdin, workerBuffer), out: os.Stdout}
	if err := w.serve(context.Background(), &engine, os.Args[2]); err != nil {
		_ = w.send(errorFrame, []byte(err.Error())) // the program may be gone
		os.Exit(1)
	}
	os.Exit(0)
}

// workerBuffer is the size of the buffer for what a worker reads.
const workerBuffer = 16 << 10

// A worker runs the scripts that it reads: from the standard input of a process, or from a pipe in the program.
type worker struct {
	runner *runner
	in     *bufio.Reader
	out    io.Writer
	buffer []byte
	// ended is closed when a worker in the program must end; nil for a process, which is killed.
	ended <-chan struct{}
}

func (w *worker) send(kind frameKind, payload []byte) (err error) {
	w.buffer, err = writeFrame(w.out, w.buffer, kind, payload)
	return err
}

// serve confines this process, and runs scripts until the standard input ends.
func (w *worker) serve(ctx context.Context, engine *Engine, argument string) error {
	if err := closeInherited(); err != nil {
		return err
	}
	var setup EngineSetup
	if err := json.Unmarshal([]byte(argument), &setup); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	// A script that does not return occupies one thread. A number that is set by hand also keeps the runtime from reading
	// the limits of the control group, which a confined process cannot.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(25)
	if err := w.open(ctx, engine, setup); err != nil {
		return err
	}
	debug.FreeOSMemory()
	releasePages := process.ProgramPageReleaser()
	if err := confine.RestrictWorker(); err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	if err := w.runner.prepare(ctx); err != nil {
		return err
	}
	releasePages() // most pages of the program are needed only until here
	return w.runAll(ctx)
}

// runAll reports that the worker is ready, and runs scripts until the input ends.
func (w *worker) runAll(ctx context.Context) error {
	if err := w.send(readyFrame, nil); err != nil {
		return err
	}
	for {
		kind, payload, err := readFrame(w.in)
		if err != nil {
			return nil // the program ended this worker
		}
		if kind != runFrame {
			return errors.New("a script was expected")
		}
		if err := w.run(ctx, payload); err != nil {
			return err
		}
	}
}

// open loads the interpreter and runs a first script.
func (w *worker) open(ctx context.Context, engine *Engine, setup EngineSetup) (err error) {
	if w.runner, err = openRunner(ctx, engine, setup); err != nil {
		return err
	}
	if err := w.runner.prepare(ctx); err != nil {
		return err
	}
	first := &world{limits: Limits{}.WithDefaults(), ended: w.ended, clock: &guestClock{start: time.Now()},
		exchange: func([]byte) ([]byte, error) { return []byte("{}"), nil }}
	if fault := w.runner.run(ctx, first, []byte(firstScript)); fault != "" || string(first.output[0]) != "1\n" {
		return fmt.Errorf("the interpreter does not run: %q %s", first.output, fault)
	}
	w.runner.discard(ctx)
	return nil
}

// run runs one script, and prepares the next instance after the result was sent.
func (w *worker) run(ctx context.Context, payload []byte) error {
	var job workerRun
	if err := json.Unmarshal(payload, &job); err != nil {
		return fmt.Errorf("read the script: %w", err)
	}
	clock := &guestClock{start: time.Now(), repeated: job.Clock, record: job.Record}
	world := &world{limits: job.Limits, clock: clock, ended: w.ended, exchange: func(request []byte) ([]byte, error) {
		if readings, ok := clock.take(); ok {
			if err := w.send(clockFrame, readings); err != nil {
				return nil, err
			}
		}
		return w.exchange(request)
	}}
	if len(job.Seed) == seedSize {
		world.random = rand.NewChaCha8([seedSize]byte(job.Seed))
	}
	fault := w.runner.run(ctx, world, job.Message)
	if world.exited && fault != "" {
		fault = "the script ended the interpreter"
	}
	result, err := json.Marshal(workerResult{
		Stdout: string(world.output[0]), Stderr: string(world.output[1]), Truncated: world.truncated,
		Flooded: world.flooded, Fault: fault, Memory: int64(w.runner.memorySize()),
	})
	if err != nil {
		return err
	}
	if err := w.send(doneFrame, result); err != nil {
		return err
	}
	w.runner.discard(ctx)
	return w.runner.prepare(ctx)
}

// exchange sends a request of the script to the program and returns the answer.
func (w *worker) exchange(request []byte) ([]byte, error) {
	if err := w.send(requestFrame, request); err != nil {
		return nil, err
	}
	kind, reply, err := readFrame(w.in)
	if err == nil && kind != replyFrame {
		err = errors.New("a reply was expected")
	}
	return reply, err
}
