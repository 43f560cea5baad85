//go:build unix

package transport

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// pipes are pipes as a program makes them, and as it is given them: their ends wait in the runtime, or in the system.
func pipes(t *testing.T) map[string][2]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	all := map[string][2]*os.File{"made": {r, w}, "given": {os.NewFile(uintptr(fds[0]), "r"),
		os.NewFile(uintptr(fds[1]), "w")}}
	for _, ends := range all {
		t.Cleanup(func() { _, _ = ends[0].Close(), ends[1].Close() })
	}
	return all
}

func TestAMessageGoesOutWholeOrNotAtAll(t *testing.T) {
	for name, ends := range pipes(t) {
		write := NonblockingPipeWriter(ends[1])
		message := bytes.Repeat([]byte("x"), maxAtomicWrite)
		if write(append(message, 'x')) {
			t.Errorf("%s: a message went out that a pipe may cut", name)
		}
		sent := 0
		for write(message) {
			sent += len(message)
		}
		if sent == 0 {
			t.Fatalf("%s: nothing went out", name)
		}
		got := make([]byte, sent)
		if _, err := io.ReadFull(ends[0], got); err != nil || len(bytes.Trim(got, "x")) > 0 {
			t.Errorf("%s: %d bytes went out, and came as others: %v", name, sent, err)
		}
		if !write(message[:1]) {
			t.Errorf("%s: there is room again, and nothing goes out", name)
		}
		_ = ends[0].Close()
		if write(message[:1]) {
			t.Errorf("%s: nobody reads, and it went out", name)
		}
		_ = ends[1].Close()
		if write(message[:1]) {
			t.Errorf("%s: it is closed, and it went out", name)
		}
	}
}

func TestOnlyPipes(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if NonblockingPipeWriter(f) != nil {
		t.Error("a file was taken for a pipe")
	}
}
