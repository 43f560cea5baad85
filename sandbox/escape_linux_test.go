package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"golang.org/x/sys/unix"
)

const escapeArgument = "escape"

// escapeIfAsked does, in a process that is confined as a worker, what a script would do that escaped from WebAssembly.
func escapeIfAsked() {
	if len(os.Args) != 2 || os.Args[1] != escapeArgument {
		return
	}
	parent := os.Getppid()
	kinds, err := confine.WorkerConfinement(), confine.RestrictWorker()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	tried := map[string]string{}
	try := func(what string, err error) {
		tried[what] = "allowed"
		if err != nil {
			tried[what] = ""
		}
	}
	_, err = unix.Open("/etc/passwd", unix.O_RDONLY, 0)
	try("open a file", err)
	_, err = unix.Open("/proc/self/environ", unix.O_RDONLY, 0)
	try("open /proc", err)
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	try("open a socket", err)
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	try("open a Unix socket", err)
	try("execute a program", unix.Exec("/bin/true", []string{"true"}, nil))
	try("signal the parent", unix.Kill(parent, 0))
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
	if errno == 0 {
		try("fork", nil)
	}
	_, err = unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	try("map code", err)
	b, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Mprotect(b, unix.PROT_READ|unix.PROT_EXEC)
	}
	try("make code", err)
	_, err = unix.MemfdCreate("x", 0)
	try("make a file in memory", err)
	try("trace the parent", unix.PtraceAttach(parent))
	try("remove a file", unix.Unlink("/tmp/none"))
	try("change the directory", unix.Chdir("/"))
	for what, result := range tried {
		if result == "" {
			delete(tried, what)
		}
	}
	text, _ := json.Marshal(map[string]any{"kinds": kinds, "allowed": tried})
	fmt.Println(string(text))
	os.Exit(0)
}

// TestNativeCodeInAWorkerReachesNothing runs native code in a process that is confined as a worker.
func TestNativeCodeInAWorkerReachesNothing(t *testing.T) {
	if s := confine.DetectSupport(); s.Landlock == 0 || !s.Seccomp {
		t.Skip("this kernel cannot confine processes")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, escapeArgument).CombinedOutput()
	if want := `{"allowed":{},"kinds":["landlock","rlimit","seccomp"]}` + "\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
}

// TestEveryThreadOfAWorkerIsConfined reads the state of a worker that has run a script: engines start threads too.
func TestEveryThreadOfAWorkerIsConfined(t *testing.T) {
	if !confine.DetectSupport().Seccomp {
		t.Skip("this kernel cannot filter system calls")
	}
	if *inProcess {
		t.Skip("the workers are not processes")
	}
	s := openTest(t, Options{Workers: 2})
	run(t, s, "print(1)", Limits{})
	s.background.Wait()
	for _, p := range s.idle { // no run is under way
		dir := fmt.Sprintf("/proc/%d", p.command.Process.Pid)
		threads, err := filepath.Glob(dir + "/task/*/status")
		if err != nil || len(threads) == 0 {
			t.Fatalf("%d threads, %v", len(threads), err)
		}
		for _, file := range threads {
			status, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			const filtered = 2 // SECCOMP_MODE_FILTER
			if !strings.Contains(string(status), fmt.Sprintf("\nSeccomp:\t%d\n", filtered)) {
				t.Errorf("%s: the thread is not confined\n%s", file, status)
			}
		}
		maps, err := os.ReadFile(dir + "/maps") // only root may read it
		if err == nil && (len(maps) == 0 || strings.Contains(string(maps), " rwx")) {
			t.Errorf("memory of the worker can be written and executed:\n%s", maps)
		}
	}
}
