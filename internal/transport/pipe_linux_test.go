package transport

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// streams returns a pipe and a pair of sockets, whose first ends the poller waits for.
func streams(t *testing.T) map[string][2]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][2]*os.File{"pipe": {r, w}, "socket": {os.NewFile(uintptr(fds[0]), "r"),
		os.NewFile(uintptr(fds[1]), "w")}}
	for _, ends := range all {
		t.Cleanup(func() { _, _ = ends[0].Close(), ends[1].Close() })
	}
	return all
}

func TestPipeReader(t *testing.T) {
	for name, ends := range streams(t) {
		r := NewPipeReader(ends[0])
		if _, ok := r.(*pipeReader); !ok {
			t.Fatalf("%s: the reader is a %T", name, r)
		}
		text := strings.Repeat("0123456789", 100_000)
		go func() {
			_, _ = io.WriteString(ends[1], text)
			_ = ends[1].Close()
		}()
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(text), err)
		}
	}
}

func TestPipeReaderEndsWithItsFile(t *testing.T) {
	for name, ends := range streams(t) {
		r := NewPipeReader(ends[0])
		_ = ends[0].SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: after the deadline: %v", name, err)
		}
		_ = ends[0].SetReadDeadline(time.Time{})
		ended := make(chan error)
		go func() {
			_, err := r.Read(make([]byte, 1))
			ended <- err
		}()
		_ = ends[0].Close()
		if err := <-ended; err == nil || err == io.EOF {
			t.Errorf("%s: after Close: %v", name, err)
		}
	}
}

// TestPipeReaderOnlyWithPoller holds that a file whose reads block a thread is read in the usual way.
func TestPipeReaderOnlyWithPoller(t *testing.T) {
	for name, ends := range pipes(t) {
		if _, ok := NewPipeReader(ends[0]).(*pipeReader); ok != (name == "made") {
			t.Errorf("%s: read without a thread: %v", name, ok)
		}
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := NewPipeReader(f); r != io.Reader(f) {
		t.Errorf("the reader of %s is a %T", os.DevNull, r)
	}
}
