package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// An Engine is a WebAssembly engine for the workers of a program, see [RunWorkerWith].
type Engine struct {
	// Name and Version identify the engine. Each version of an engine has its own directory of compiled code.
	Name, Version string
	// Caution is a reason not to use the engine, which "drawbridge doctor" prints; empty if there is none.
	Caution string
	// Open compiles the interpreter, or loads its compiled code. It is called once, in a worker that is not confined
	// yet.
	Open func(ctx context.Context, setup EngineSetup, imports ImportFunc) (Instances, error)
}

// String returns the name and the version.
func (e *Engine) String() string { return strings.TrimSpace(e.Name + " " + e.Version) }

// An EngineSetup names the files that an [Engine] reads and writes.
type EngineSetup struct {
	// Code is the interpreter, a WebAssembly module without data. Image is the content of its memory after start-up.
	Code, Image string
	// Compiled is the directory of the compiled code. It is empty in the first worker, which writes its files. For a
	// later worker the program has compared them with their SHA-256 sums.
	Compiled string
	// Memory is the maximum size of an interpreter's memory in bytes.
	Memory int64
}

// An ImportFunc returns the function that the interpreter imports from a module by a name.
type ImportFunc func(module, name string) (HostFunction, error)

// A HostFunction is a function that the interpreter calls. memory is the whole memory of the instance. An error ends
// the instance. A function without a result returns 0.
type HostFunction func(memory []byte, args []uint64) (result uint64, err error)

// Instances are the instances of the interpreter, of which one exists at a time. One goroutine calls the methods. All
// but the first instance are made and run in a confined process: they may not open files or make code executable.
type Instances interface {
	// Prepare makes an instance whose memory has the content of the image.
	Prepare(ctx context.Context) error
	// LimitMemory sets the maximum size of the memory of the prepared instance in bytes.
	LimitMemory(size int64)
	// Call calls an exported function of the instance. It returns 0 for a function without a result.
	Call(ctx context.Context, function string, args ...uint64) (uint64, error)
	// Memory returns the memory of the instance. It is valid until the next Call.
	Memory() []byte
	// Discard ends the instance, if there is one. Nothing of its memory is left for the next.
	Discard(ctx context.Context)
}

// programEngine is the engine of this program's workers; nil if the program does not call RunWorker, so that running it
// again makes no worker. It is a fact about the process, written once.
var programEngine atomic.Pointer[Engine]

// CurrentEngine returns the engine that the workers of this program use. It is wazero for a program that has called
// neither [RunWorker] nor [RunWorkerWith].
func CurrentEngine() Engine {
	e := wazeroEngine()
	if current := programEngine.Load(); current != nil {
		e = *current
	}
	if e.Name == wazeroName { // not read at each start of a program
		e.Version = moduleVersion(wazeroModule)
	}
	return e
}

// compiledName returns the name of the directory for compiled code. wazero has a directory for each version in it.
func (e *Engine) compiledName() string {
	if e.Name == wazeroName {
		return "compiled"
	}
	return "compiled-" + e.Name + "-" + e.Version
}

// moduleVersion returns the version of a Go module that is part of this program, or "" if it is not known.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == path && d.Replace == nil {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return ""
}

// The numbers that the import drawbridge.request returns instead of a length. boot.py has their texts.
const (
	refusedTooLarge = -1
	refusedEnded    = -2
)

// errScriptEnded ends the interpreter from a function that it called.
var errScriptEnded = errors.New("the script ended")

// A runner runs the interpreter: one world after another, each in a fresh instance with a fresh memory.
type runner struct {
	instances Instances
	// current is the world of the instance.
	current *world
}

// openRunner opens an engine.
func openRunner(ctx context.Context, engine *Engine, setup EngineSetup) (*runner, error) {
	r := &runner{}
	var err error
	if r.instances, err = engine.Open(ctx, setup, r.function); err != nil {
		return nil, fmt.Errorf("open the engine %s: %w", engine, err)
	}
	return r, nil
}

// function is the [ImportFunc] of the interpreter: WASI, and the requests to the host.
func (r *runner) function(module, name string) (HostFunction, error) {
	switch {
	case module == "drawbridge" && name == "request":
		return func(memory []byte, args []uint64) (uint64, error) {
			return uint64(uint32(r.current.request(memory, uint32(args[0]), uint32(args[1])))), nil
		}, nil
	case module == "drawbridge" && name == "reply":
		return func(memory []byte, args []uint64) (uint64, error) {
			r.current.copyReply(memory, uint32(args[0]), uint32(args[1]))
			return 0, nil
		}, nil
	case module == "wasi_snapshot_preview1":
		return func(memory []byte, args []uint64) (uint64, error) {
			w := r.current
			errno := w.callWASI(name, memory, args)
			if w.exited || w.flooded {
				return 0, errScriptEnded
			}
			return uint64(errno), nil
		}, nil
	}
	return nil, fmt.Errorf("the interpreter imports %s.%s", module, name)
}

// prepare makes an instance for the next run.
func (r *runner) prepare(ctx context.Context) error {
	r.current = &world{}
	if err := r.instances.Prepare(ctx); err != nil {
		return fmt.Errorf("start the interpreter: %w", err)
	}
	return nil
}

// run runs one script in the prepared instance. fault is why the interpreter ended without a result; it is empty for a
// run that ended by itself.
func (r *runner) run(ctx context.Context, w *world, message []byte) (fault string) {
	r.current = w
	r.instances.LimitMemory(w.limits.Memory)
	at, err := r.instances.Call(ctx, "python_alloc", uint64(len(message)))
	if err == nil {
		b, ok := guestMemory(r.instances.Memory()).span(uint32(at), uint32(len(message)))
		if at == 0 || !ok {
			return "the script does not fit into the memory"
		}
		copy(b, message)
		_, err = r.instances.Call(ctx, "python_run", at, uint64(len(message)))
	}
	if err == nil {
		return ""
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// close releases what an engine holds that has a Close: a process that ends needs none.
func (r *runner) close(ctx context.Context) {
	if e, ok := r.instances.(interface{ Close(context.Context) }); ok {
		e.Close(context.WithoutCancel(ctx))
	}
}

// discard ends the instance and its memory.
func (r *runner) discard(ctx context.Context) { r.instances.Discard(ctx) }

// memorySize returns the size of the memory of the instance in bytes.
func (r *runner) memorySize() int { return len(r.instances.Memory()) }

// request sends a request of the script to the host. It returns the length of the reply, which copyReply fetches, or
// the number of a refusal.
func (w *world) request(m guestMemory, at, size uint32) int32 {
	w.reply = nil
	if int64(size) > int64(w.limits.Transfer) {
		return refusedTooLarge
	}
	request, ok := m.span(at, size)
	if !ok || w.exchange == nil || w.lost {
		return refusedEnded
	}
	reply, err := w.exchange(request)
	if err != nil {
		w.lost = true
		return refusedEnded
	}
	w.reply = reply
	return int32(len(reply))
}

// copyReply copies the last reply into the memory of the interpreter.
func (w *world) copyReply(m guestMemory, at, size uint32) {
	if b, ok := m.span(at, size); ok {
		copy(b, w.reply)
	}
	w.reply = nil
}
