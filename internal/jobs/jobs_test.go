//go:build unix

package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

func TestMain(m *testing.M) {
	process.RunIfReaper()
	os.Exit(m.Run())
}

func newTable(t *testing.T) *Table {
	t.Helper()
	table := NewTable(LocalShell{Env: process.Environ(os.Environ(), nil, true)})
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

func start(t *testing.T, table *Table, line string, limit time.Duration) *Job {
	t.Helper()
	job, err := table.Start(t.Context(), Spec{Owner: "ada", Line: line, Dir: t.TempDir(), TimeLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// ended waits for the end of a job.
func ended(t *testing.T, job *Job) *Job {
	t.Helper()
	select {
	case <-job.Done():
	case <-time.After(20 * time.Second):
		t.Fatalf("%q does not end: %v, %q", job.Line, job.State(), job.Stdout.Text(1000))
	}
	return job
}

// pidIn waits until a job has written the ID of a process, and returns it.
func pidIn(t *testing.T, job *Job) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if text := job.Stdout.Text(1000); strings.HasSuffix(text, "\n") {
			pid, err := strconv.Atoi(strings.Fields(text)[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("%q writes nothing", job.Line)
	return 0
}

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// TestHowCommandsEnd has every way in which a command can end. What it wrote is complete in each.
func TestHowCommandsEnd(t *testing.T) {
	table := newTable(t)
	for _, tt := range []struct {
		name, line     string
		limit          time.Duration
		cause          Cause
		code           int
		stdout, stderr string
		status         string
	}{
		{"success", "echo out; echo err >&2", 0, Exited, 0, "out\n", "err\n", "exit 0"},
		{"failure", "echo out; exit 3", 0, Exited, 3, "out\n", "", "exit 3"},
		{"no such command", "nothing-is-called-so", 0, Exited, 127, "", "not found", "exit 127"},
		{"a syntax error", "if", 0, Exited, 2, "", "syntax error", "exit 2"},
		{"input is empty", "cat; read x || echo none", 0, Exited, 0, "none\n", "", "exit 0"},
		{"a signal of its own", "echo out; kill -9 $$", 0, Signalled, -1, "out\n", "",
			"ended by a signal that Drawbridge did not send (killed)"},
		{"the time limit", "echo out; sleep 1000", 50 * time.Millisecond, TimeLimit, -1, "out\n", "", "(time limit)"},
		{"the time limit, ignoring SIGTERM", "trap '' TERM; echo out; while :; do sleep 1000; done", 50 * time.Millisecond,
			TimeLimit, -1, "out\n", "", "(time limit)"},
		{"output at the end", "trap 'echo late; exit 0' TERM; echo out; sleep 1000 & wait", 300 * time.Millisecond, TimeLimit, 0,
			"out\nlate\n", "", "(time limit)"},
		{"a child in the background", "sleep 1000 & echo out", 0, Exited, 0, "out\n", "", "exit 0"},
		{"a child in a session of its own", "(setsid sleep 1000 >/dev/null 2>&1 &); echo out", 0, Exited, 0, "out\n", "", "exit 0"},
		{"a child that holds the output", "nohup sleep 1000 2>&1 & echo out", 0, Exited, 0, "out\n", "", "exit 0"},
		{"many children", "for i in $(seq 100); do sleep 1000 & done; echo out", 0, Exited, 0, "out\n", "", "exit 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := ended(t, start(t, table, tt.line, tt.limit))
			s := job.State()
			if s.Cause != tt.cause || s.ExitCode != tt.code && tt.cause != TimeLimit || !strings.Contains(s.String(), tt.status) {
				t.Errorf("%+v, %s", s, s)
			}
			out, errs := job.Stdout.Text(1000), job.Stderr.Text(1000)
			if out != tt.stdout || !strings.Contains(errs, tt.stderr) || tt.stderr == "" && tt.name != "a child that holds the output" && errs != "" {
				t.Errorf("stdout %q, stderr %q", out, errs)
			}
		})
	}
}

// TestFlood writes more than is kept.
func TestFlood(t *testing.T) {
	job := ended(t, start(t, newTable(t), "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last", 0))
	text := job.Stdout.Text(64 << 10)
	if s := job.State(); s.Cause != Exited || s.ExitCode != 0 || job.Stdout.Size() != 50_000_000+12 {
		t.Errorf("%v, %d bytes", s, job.Stdout.Size())
	}
	if !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "\nlast\n") || len(text) > 66<<10 ||
		!strings.Contains(text, "bytes elided") {
		t.Errorf("%d bytes: %.20q", len(text), text)
	}
}

func TestStopEndsTheTree(t *testing.T) {
	table := newTable(t)
	job := start(t, table, "setsid sh -c 'echo $$; exec sleep 1000' & wait", 0)
	pid := pidIn(t, job)
	if err := table.Stop(t.Context(), job, Stopped); err != nil {
		t.Fatal(err)
	}
	if isAlive(pid) || job.State().Cause != Stopped || len(table.List("ada")) != 0 {
		t.Errorf("alive %v, %v, %d jobs", isAlive(pid), job.State(), len(table.List("ada")))
	}
}

func TestJobsBelongToAPrincipal(t *testing.T) {
	table := newTable(t)
	job := start(t, table, "sleep 1000", 0)
	if got, err := table.Find("ada", job.ID); got != job || err != nil {
		t.Error(got, err)
	}
	if _, err := table.Find("bob", job.ID); !errors.Is(err, ErrNotFound) || len(table.List("bob")) != 0 {
		t.Error(err)
	}
	if s := job.State(); s.Cause != "" || !strings.HasPrefix(s.String(), "running for") {
		t.Error(s)
	}
}

// TestTwoHundredJobs starts and stops them, some by closing the table. Nothing is left, and no descriptor.
func TestTwoHundredJobs(t *testing.T) {
	table := NewTable(LocalShell{Env: process.Environ(os.Environ(), nil, true)})
	before := openFiles(t)
	var pids []int
	for range 200 {
		pids = append(pids, pidIn(t, start(t, table, "echo $$; exec sleep 1000", 0)))
	}
	for _, job := range table.List("ada")[:100] {
		if err := table.Stop(t.Context(), job, Stopped); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if isAlive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if _, err := table.Start(t.Context(), Spec{Owner: "ada", Line: "true", Dir: t.TempDir()}); err == nil {
		t.Error("a closed table starts a job")
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system has no /proc/self/fd")
	}
	return len(entries)
}

func TestBounds(t *testing.T) {
	table := newTable(t)
	var last *Job
	for range maxEnded + 5 {
		last = ended(t, start(t, table, "true", 0))
	}
	if jobs := table.List("ada"); len(jobs) > maxEnded+1 || jobs[len(jobs)-1] != last {
		t.Errorf("%d jobs are kept", len(jobs))
	}
	if _, err := table.Start(t.Context(), Spec{Owner: "ada", Line: "true", Dir: "/nowhere/at/all"}); err == nil {
		t.Error("a job starts in a directory that does not exist")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if job, err := table.Start(gone, Spec{Owner: "ada", Line: "true", Dir: t.TempDir()}); err == nil {
		ended(t, job) // it may have started before the end of the context was noticed
	}
	if got := fmt.Sprint(Shorten("a\nb", 10), Shorten("abcdef", 3), Shorten(" ", 3)); got != "a…abc……" {
		t.Error(got)
	}
}
