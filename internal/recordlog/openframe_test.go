package recordlog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// openFrame appends an open frame.
func openFrame(t testing.TB, s *Log, content string) Slot {
	t.Helper()
	frame := append(make([]byte, FrameHeader), content...)
	slot, err := s.AppendOpen(AppendRoom(frame))
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// contents returns the contents of all frames of a log that the store may not have yet.
func contents(t testing.TB, s *Log) (all []string) {
	t.Helper()
	for _, f := range s.PendingFiles() {
		for from := int64(0); from < f.Size; {
			lines, next, err := f.Frames(from)
			if err != nil || next == from {
				t.Fatalf("%d lines at %d of %d: %v", len(lines), from, f.Size, err)
			}
			for _, line := range lines {
				all = append(all, string(line))
			}
			from = next
		}
	}
	return all
}

func TestCompleteInPlace(t *testing.T) {
	for _, o := range []Options{{}, {Sync: true}} {
		s, err := Open(t.TempDir(), o)
		if err != nil {
			t.Fatal(err)
		}
		var slots []Slot
		for i := range 4 {
			slots = append(slots, openFrame(t, s, fmt.Sprintf(`{"call":%d}`, i)))
		}
		for i, tail := range []string{`,"ok":1}`, `}`, strings.Repeat("x", Room+1)} {
			if done, err := s.Complete(slots[i], []byte(tail)); !done || err != nil {
				t.Errorf("tail %d: %v, %v", i, done, err)
			}
		}
		if done, err := s.Complete(slots[3], bytes.Repeat([]byte("x"), Room+2)); done || err != nil {
			t.Errorf("a tail that is too long: %v, %v", done, err)
		}
		want := `[{"call":0,"ok":1} {"call":1} {"call":2` + strings.Repeat("x", Room+1) + ` {"call":3}]`
		if got := fmt.Sprint(contents(t, s)); got != want {
			t.Errorf("got %s", got)
		}
		if done, err := s.Complete(slots[3], []byte("}")); done || err != nil {
			t.Errorf("after the frame was read: %v, %v", done, err)
		}
		later := openFrame(t, s, `{"call":4}`)
		s.EndFile(false)
		if done, err := s.Complete(later, []byte("}")); done || err != nil {
			t.Errorf("after the file ended: %v, %v", done, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Complete(later, []byte("}")); err == nil {
			t.Error("a frame was completed after the end")
		}
	}
}

// TestFramesThatAreStillOpen leaves out frames that will probably be completed soon.
func TestFramesThatAreStillOpen(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	size := func(before time.Time) (int64, bool) {
		files, more := s.PendingFilesBefore(before)
		return files[0].Size, more
	}
	begin := time.Now().Add(-time.Second)
	first := openFrame(t, s, "first.")
	second := openFrame(t, s, "second.")
	if _, err := s.Complete(first, []byte("!")); err != nil {
		t.Fatal(err)
	}
	if n, more := size(begin); n != second.At || !more {
		t.Errorf("%d bytes, %v; want %d", n, more, second.At)
	}
	if done, err := s.Complete(first, []byte("!")); done || err != nil {
		t.Errorf("a frame that was read is completed: %v, %v", done, err)
	}
	if n, more := size(time.Now()); n != s.currentFile.Size || more { // it is old enough
		t.Errorf("%d bytes, %v; want %d", n, more, s.currentFile.Size)
	}
	if done, err := s.Complete(second, []byte("!")); done || err != nil {
		t.Errorf("a frame that was read is completed: %v, %v", done, err)
	}
	third := openFrame(t, s, "third.")
	if done, err := s.Complete(third, []byte("!")); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
	if n, more := size(begin); n != s.currentFile.Size || more || len(s.incomplete) > 0 {
		t.Errorf("%d bytes, %v; want %d; %v are open", n, more, s.currentFile.Size, s.incomplete)
	}
}

// TestACompletionThatAProcessDidNotEnd has a process end between any two bytes of a completion: the frame is then the
// original one, or the completed one.
func TestACompletionThatAProcessDidNotEnd(t *testing.T) {
	const before, tail = `{"call":1}`, `,"outcome":"ok"}`
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slot := openFrame(t, s, before)
	path := s.PendingFiles()[0].Path
	s.taken = 0 // the frame was read, but only by this test
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.Complete(slot, []byte(tail)); !done || err != nil {
		t.Fatal(done, err)
	}
	completed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The bytes that changed, in the order in which they are written.
	var places []int
	for i := range completed {
		if completed[i] != original[i] {
			places = append(places, i)
		}
	}
	for n := range len(places) + 1 {
		part := bytes.Clone(original)
		for _, i := range places[:n] {
			part[i] = completed[i]
		}
		want := before
		if n == len(places) {
			want = before[:len(before)-1] + tail
		}
		f := File{Name: "P-1.spool", Path: filepath.Join(dir, fmt.Sprint("part", n)), Size: s.currentFile.Size}
		if err := os.WriteFile(f.Path, part, 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := f.Frames(0)
		if err != nil || len(got) != 1 || string(got[0]) != want {
			t.Errorf("%d bytes of the completion: %q, %v", n, got, err)
		}
	}
	// Another byte is damage.
	for _, i := range []int{2, FrameHeader + 2, len(before) + FrameHeader + 3, len(original) - 3} {
		if i >= int(s.currentFile.Size) {
			i = int(s.currentFile.Size) - 3
		}
		part := bytes.Clone(completed)
		part[i] ^= 1
		f := File{Name: "P-1.spool", Path: filepath.Join(dir, "damaged"), Size: s.currentFile.Size}
		if err := os.WriteFile(f.Path, part, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, next, err := f.Frames(0); err != nil || next != 0 {
			t.Errorf("byte %d is another: %q, %v", i, got, err)
		}
	}
}

// TestCompleteWhileFramesAreRead has callers complete frames while another goroutine reads and removes files: each frame
// is read once, and with its tail, or the caller is told that it was not completed.
func TestCompleteWhileFramesAreRead(t *testing.T) {
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	read := map[string]int{}
	var reader, callers sync.WaitGroup
	at := map[string]int64{}
	drain := func() {
		for _, f := range s.PendingFiles() {
			for at[f.Name] < f.Size {
				lines, next, err := f.Frames(at[f.Name])
				if err != nil || next == at[f.Name] {
					t.Errorf("at %d of %d: %v", at[f.Name], f.Size, err)
					return
				}
				for _, line := range lines {
					read[string(line)]++
				}
				s.MarkStored(next - at[f.Name])
				at[f.Name] = next
			}
			s.Remove(f)
		}
	}
	reader.Go(func() {
		for ctx.Err() == nil {
			drain()
		}
	})
	var missed atomic.Int64
	want := make([]map[string]bool, 4)
	for c := range want {
		want[c] = map[string]bool{}
		callers.Go(func() {
			for n := range 5000 {
				content := fmt.Sprintf(`{"id":"%d-%d","text":"%s"}`, c, n, strings.Repeat("x", n%700))
				slot := openFrame(t, s, content)
				done, err := s.Complete(slot, []byte(`,"done":true}`))
				if err != nil {
					t.Error(err)
				}
				if done {
					content = content[:len(content)-1] + `,"done":true}`
				} else {
					missed.Add(1)
				}
				want[c][content] = true
			}
		})
	}
	callers.Wait()
	stop()
	reader.Wait()
	s.EndFile(false)
	drain()
	all := 0
	for _, some := range want {
		for content := range some {
			if all++; read[content] != 1 {
				t.Fatalf("%q was read %d times", content, read[content])
			}
		}
	}
	if len(read) != all || all != 20000 {
		t.Errorf("%d frames were read, %d written", len(read), all)
	}
	t.Logf("%d of %d frames were not completed in place", missed.Load(), all)
}

// FuzzOpenFrames reads files that other programs wrote.
func FuzzOpenFrames(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	slot := openFrame(f, s, `{"call":1}`)
	if _, err := s.Complete(slot, []byte(`,"ok":1}`)); err != nil {
		f.Fatal(err)
	}
	openFrame(f, s, `{"call":2}`)
	text, err := os.ReadFile(s.PendingFiles()[0].Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[:s.currentFile.Size])
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for len(text) > 0 {
			content, size := parseFrame(bytes.Clone(text))
			if content == nil {
				return
			}
			if len(content) == 0 || len(content) > size-FrameHeader || size > len(text) {
				t.Fatalf("%d bytes of content in a frame of %d", len(content), size)
			}
			text = text[size:]
		}
	})
}
