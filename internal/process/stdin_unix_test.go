//go:build unix

package process

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// plainPipe is a pipe as a program gets it: nobody made its ends ready for the poller.
func plainPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "out")
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

// TestPolled has a pipe read through the poller, which shows in that it takes deadlines, and leaves the rest as it is.
func TestPolled(t *testing.T) {
	r, w := plainPipe(t)
	if err := r.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Fatalf("the pipe takes deadlines before: %v", err)
	}
	other, out := plainPipe(t)
	in := PolledStdin(r, out)
	defer in.Close()
	if err := in.SetReadDeadline(time.Now()); err != nil {
		t.Fatalf("a deadline: %v", err)
	}
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read behind the deadline: %v", err)
	}
	if err := in.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if n, err := in.Read(got); err != nil || string(got[:n]) != "line\n" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("more\n"); err != nil {
		t.Fatal("the input ends with the file that it was made from: ", err)
	}
	if n, err := in.Read(got); err != nil || string(got[:n]) != "more\n" {
		t.Errorf("read %q, %v", got[:n], err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if PolledStdin(file, out) != file {
		t.Error("a file does not stay as it is")
	}
	if PolledStdin(other, out) != other {
		t.Error("an input that is the output too does not stay as it is")
	}
}
