package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// eachMode runs a test with worker processes, and with workers in this process. With the flag -worker-program it has the
// processes only.
func eachMode(t *testing.T, o Options, f func(t *testing.T, s *Sandbox)) {
	t.Run("processes", func(t *testing.T) { f(t, openTest(t, o)) })
	if *workerProgram != "" || *inProcess {
		return
	}
	o.InProcess = true
	t.Run("in process", func(t *testing.T) { f(t, openTest(t, o)) })
}

// openLocal opens a sandbox whose workers are in this process.
func openLocal(t testing.TB, o Options) *Sandbox {
	if *workerProgram != "" {
		t.Skip("the workers are processes")
	}
	o.InProcess = true
	return openTest(t, o)
}

func TestWithoutAHookAndWithoutTheOptionNothingRuns(t *testing.T) {
	if !hasInterpreter {
		t.Skip(ErrNoInterpreter)
	}
	hook := programEngine.Swap(nil)
	defer programEngine.Store(hook)
	_, err := Run(t.Context(), Script{Code: "print(1)"}, echo)
	if !errors.Is(err, ErrNoWorkers) {
		t.Fatalf("%v", err)
	}
	for _, way := range []string{"sandbox.RunWorker", "Options.InProcess"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("the error does not name %s: %v", way, err)
		}
	}
	o, err := RunWith(t.Context(), Options{InProcess: true}, Script{Code: "print(1)"}, echo)
	if err != nil || o.Stdout != "1\n" {
		t.Errorf("in process without the hook: %+v, %v", o, err)
	}
}

// TestInProcessStartsNoProcess has the sandbox run while no process can be started.
func TestInProcessStartsNoProcess(t *testing.T) {
	s := openLocal(t, Options{})
	s.starter.program = filepath.Join(t.TempDir(), "none")
	if o := run(t, s, "print(1)", Limits{}); o.Stdout != "1\n" {
		t.Errorf("%+v", o)
	}
	if s.starter.jobs != nil {
		t.Error("the starter of processes was used")
	}
}

func TestInProcessHasItsOwnCompiledCode(t *testing.T) {
	dir := t.TempDir()
	first := 0
	for range 2 {
		s := openLocal(t, Options{Dir: dir})
		o, err := s.Run(t.Context(), Script{Code: "print(1)", OnFirstStart: func() { first++ }}, echo)
		if err != nil || o.Stdout != "1\n" {
			t.Fatalf("%+v, %v", o, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if first != 1 {
		t.Errorf("the interpreter was compiled %d times", first)
	}
	compiled, err := filepath.Glob(filepath.Join(dir, "*", "compiled*"))
	if err != nil || len(compiled) != 2 || !strings.Contains(compiled[0], interruptibleName) {
		t.Errorf("%v, %v", compiled, err)
	}
}

func TestACanceledContextEndsARunInProcess(t *testing.T) {
	s := openLocal(t, Options{})
	for name, rest := range map[string]string{
		"a loop":        "while True: pass",
		"a number":      "10 ** 10 ** 8",
		"a pattern":     `import re; re.match("(a+)+$", "a" * 40 + "b")`,
		"a sleep":       "import time; time.sleep(1000)",
		"a second call": "tools.wait()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := errors.New("the caller went away")
			_, err := s.Run(ctx, Script{Code: "tools.begin()\n" + rest, Limits: Limits{Time: time.Hour}},
				HostFunc(func(ctx context.Context, c ToolCall) Reply {
					if c.Name == "wait" {
						<-ctx.Done()
					} else {
						time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
					}
					return Reply{Result: json.RawMessage(`{}`)}
				}))
			if !errors.Is(err, cause) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestClosingEndsRunsInProcess closes a sandbox while a script loops. Close returns when nothing of it runs any more.
func TestClosingEndsRunsInProcess(t *testing.T) {
	s := openLocal(t, Options{})
	begun, result := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), Script{Code: "tools.begin()\nwhile True: pass", Limits: Limits{Time: time.Hour}},
			HostFunc(func(context.Context, ToolCall) Reply {
				close(begun)
				return Reply{Result: json.RawMessage(`{}`)}
			}))
		result <- err
	}()
	<-begun
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	if s.alive != 0 {
		t.Errorf("%d workers are alive", s.alive)
	}
}

// TestTwoRunsSideBySideInProcess has two scripts that each wait for a call of the other.
func TestTwoRunsSideBySideInProcess(t *testing.T) {
	s := openLocal(t, Options{Workers: 2})
	var both sync.WaitGroup
	both.Add(2)
	host := HostFunc(func(ctx context.Context, c ToolCall) Reply {
		both.Done()
		both.Wait()
		return Reply{Result: json.RawMessage(`{"structuredContent":` + string(c.Arguments) + `}`)}
	})
	var runs sync.WaitGroup
	for _, name := range []string{"ada", "bob"} {
		runs.Go(func() {
			code := "x = '" + name + "' * 1000\nr = tools.meet(x=x)\n[r['x'] == x, sum(range(100_000))]"
			o, err := s.Run(t.Context(), Script{Code: code, Owner: name}, host)
			if err != nil || string(o.Value) != "[true,4999950000]" {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		})
	}
	runs.Wait()
}

// TestForcedEndsInProcessLeaveNothing counts the mappings of this process before and after scripts that are ended.
func TestForcedEndsInProcessLeaveNothing(t *testing.T) {
	s := openLocal(t, Options{Workers: 1})
	end := func() {
		t.Helper()
		if o := run(t, s, "while True: pass", Limits{Time: 5 * time.Millisecond}); o.Limit != "time" {
			t.Fatalf("%+v", o)
		}
		s.background.Wait()
	}
	end()
	images, descriptors := mappedImages(t), openDescriptors(t)
	for range 10 {
		end()
	}
	if after := mappedImages(t); after > images {
		t.Errorf("the image was mapped %d times, now %d times", images, after)
	}
	if after := openDescriptors(t); after > descriptors {
		t.Errorf("%d descriptors were open, now %d", descriptors, after)
	}
}

// mappedImages returns how many mappings of this process are of the image of the interpreter.
func mappedImages(t *testing.T) int {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(maps), "memory.img")
}
