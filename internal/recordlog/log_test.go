package recordlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	"github.com/google/go-cmp/cmp"
)

func open(t testing.TB, dir string, o recordlog.Options) *recordlog.Log {
	t.Helper()
	s, err := recordlog.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func frame(text string) []byte { return append(make([]byte, recordlog.FrameHeader), text...) }

func put(t testing.TB, s *recordlog.Log, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := s.Append(frame(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns all that a file's frames carry.
func read(t testing.TB, f recordlog.File) (texts []string) {
	t.Helper()
	for at := int64(0); at < f.Size; {
		carried, next, err := f.Frames(at)
		if err != nil || next == at {
			t.Fatalf("at %d of %d: %v", at, f.Size, err)
		}
		for _, b := range carried {
			texts = append(texts, string(b))
		}
		at = next
	}
	return texts
}

func TestWhatIsAppendedIsThere(t *testing.T) {
	for _, sync := range []bool{false, true} {
		s := open(t, filepath.Join(t.TempDir(), "a", "b"), recordlog.Options{Sync: sync})
		if len(s.PendingFiles()) != 0 {
			t.Error("there is a file before the first frame")
		}
		large := strings.Repeat("x", 3<<20)
		put(t, s, "one", large, "two", large, "three")
		var got []string
		for _, f := range s.PendingFiles() {
			got = append(got, read(t, f)...)
		}
		if diff := cmp.Diff([]string{"one", large, "two", large, "three"}, got); diff != "" {
			t.Errorf("other frames: %.200s", diff)
		}
		files := s.PendingFiles()
		if len(files) != 2 || s.Remove(files[1]) || !s.Remove(files[0]) || s.Remove(files[0]) {
			t.Error("the file that is written was removed, or the other one was not")
		}
	}
}

// TestAFileIsAsLongAsWhatIsInIt has room made ahead in a file that is written, and none in one that has ended.
func TestAFileIsAsLongAsWhatIsInIt(t *testing.T) {
	s := open(t, t.TempDir(), recordlog.Options{})
	var all []string
	for n := range 60 { // over the end of what is in memory, and by frames that are not written there
		all = append(all, strings.Repeat(string(rune('a'+n%26)), 9_000+1_000*n))
	}
	put(t, s, all...)
	f := s.PendingFiles()[0]
	if diff := cmp.Diff(all, read(t, f)); diff != "" {
		t.Errorf("other frames: %.200s", diff)
	}
	s.EndFile(false)
	info, err := os.Stat(f.Path)
	if err != nil || info.Size() != f.Size {
		t.Errorf("%d bytes are there of %d, %v", info.Size(), f.Size, err)
	}
}

// TestAFileThatWasCut goes on: what was cut off is gone, and nothing else.
func TestAFileThatWasCut(t *testing.T) {
	s := open(t, t.TempDir(), recordlog.Options{})
	put(t, s, "one")
	f := s.PendingFiles()[0]
	if err := os.Truncate(f.Path, f.Size); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 10_000) // on a page that is not there any more
	put(t, s, long, "three")
	if diff := cmp.Diff([]string{"one", long, "three"}, read(t, s.PendingFiles()[0])); diff != "" {
		t.Errorf("other frames: %.200s", diff)
	}
}

// TestToPrepareChangesNothing prepares before there is a file, between frames of all lengths, after someone cut the
// file, and at the end.
func TestToPrepareChangesNothing(t *testing.T) {
	for _, sync := range []bool{false, true} {
		s := open(t, t.TempDir(), recordlog.Options{Sync: sync})
		s.Prefault()
		var all []string
		for n := range 40 {
			all = append(all, strings.Repeat(string(rune('a'+n%26)), 1+n*n*20))
			put(t, s, all[n])
			s.Prefault()
		}
		f := s.PendingFiles()[0]
		if diff := cmp.Diff(all, read(t, f)); diff != "" {
			t.Errorf("other frames: %.200s", diff)
		}
		if err := os.Truncate(f.Path, f.Size); err != nil {
			t.Fatal(err)
		}
		s.Prefault()
		next := strings.Repeat("x", 10_000) // on a page that is not there any more
		put(t, s, next)
		if diff := cmp.Diff(append(all, next), read(t, s.PendingFiles()[0])); diff != "" {
			t.Errorf("other frames after it was cut: %.200s", diff)
		}
		f = s.PendingFiles()[0]
		s.EndFile(true)
		s.Prefault()
		info, err := os.Stat(f.Path)
		if err != nil || info.Size() != f.Size {
			t.Errorf("%d bytes are there of %d, %v", info.Size(), f.Size, err)
		}
	}
}

// TestAFileThatGrewStays has a file filled up, and the next one begun, while the store takes in what it was before.
func TestAFileThatGrewStays(t *testing.T) {
	s := open(t, t.TempDir(), recordlog.Options{})
	put(t, s, "one")
	before := s.PendingFiles()[0]
	put(t, s, strings.Repeat("x", 5<<20), "next")
	if s.Remove(before) {
		t.Error("a file was removed of which the store has only a part")
	}
	for _, f := range s.PendingFiles()[:1] {
		if got := read(t, f); len(got) != 2 {
			t.Errorf("%d frames are left in it", len(got))
		}
		if !s.Remove(f) {
			t.Error("a file of which the store has everything stays")
		}
	}
}

func TestASpoolIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), recordlog.Options{MaxWaiting: 30})
	put(t, s, "0123456789")
	if err := s.Append(frame("0123456789")); !errors.Is(err, recordlog.ErrFull) {
		t.Errorf("a second frame: %v", err)
	}
	s.MarkStored(18)
	put(t, s, "0123456789")
	if err := s.Append(make([]byte, recordlog.FrameHeader+recordlog.MaxFrame+1)); err == nil {
		t.Error("a frame that no reader takes was taken")
	}
	s.EndFile(true)
	if err := s.Append(frame("x")); err == nil {
		t.Error("a frame was taken after the end")
	}
}

func TestAdoptTakesFilesWithoutOwner(t *testing.T) {
	dir := t.TempDir()
	alive, dead := open(t, dir, recordlog.Options{}), open(t, dir, recordlog.Options{})
	put(t, alive, "mine")
	for n := range 12 {
		put(t, dead, fmt.Sprint(n))
		dead.EndFile(false)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	refuse := errors.New("not now")
	take := func(f recordlog.File, torn int64) error {
		if len(got) == 3 && refuse != nil {
			return refuse
		}
		got = append(got, read(t, f)...)
		return nil
	}
	if err := recordlog.RecoverOrphans(dir, take, none); !errors.Is(err, refuse) {
		t.Errorf("a file that was not taken: %v", err)
	}
	refuse = nil
	for range 2 {
		if err := recordlog.RecoverOrphans(dir, take, none); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"}, got); diff != "" {
		t.Error(diff)
	}
	if err := recordlog.RecoverOrphans(filepath.Join(dir, "none"), take, none); err != nil {
		t.Errorf("no directory: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v: want the living one's file and lock", left, err)
	}
}

// none is told of files that are gone, and does nothing.
func none(recordlog.File) {}

// TestWhatCannotBeRemovedIsNotGone has something stand in the place of a file that the directory does not let go: it
// is handed over again, and no one is told that it is gone.
func TestWhatCannotBeRemovedIsNotGone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, recordlog.Options{})
	put(t, s, "one")
	s.EndFile(false)
	f := s.PendingFiles()[0]
	stuck := func() {
		if err := errors.Join(os.Remove(f.Path), os.MkdirAll(filepath.Join(f.Path, "x"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	free := func(text []byte) {
		if err := errors.Join(os.RemoveAll(f.Path), os.WriteFile(f.Path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	stuck()
	if s.Remove(f) || len(s.PendingFiles()) != 1 {
		t.Errorf("it is taken for removed, and %d files are left", len(s.PendingFiles()))
	}
	free(text)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var gone []string
	note := func(f recordlog.File) { gone = append(gone, f.Name) }
	if err := recordlog.RecoverOrphans(dir, func(recordlog.File, int64) error { stuck(); return nil },
		note); err == nil ||
		len(gone) != 0 {
		t.Errorf("%v, and gone are %v", err, gone)
	}
	free(text)
	if err := recordlog.RecoverOrphans(dir, func(recordlog.File, int64) error { return nil }, note); err != nil ||
		len(gone) != 1 {
		t.Errorf("%v, and gone are %v", err, gone)
	}
}

// FuzzFrames holds that of any file the whole frames at its beginning are read, and nothing else; and that it is the
// same wherever reading begins again. It is row FZ-15.
func FuzzFrames(f *testing.F) {
	dir := f.TempDir()
	s := open(f, dir, recordlog.Options{})
	put(f, s, "one", "two", "three")
	whole, err := os.ReadFile(s.PendingFiles()[0].Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	whole = bytes.TrimRight(whole, "\x00")
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), 0, 0, 0, 0, 'x', 0))
	f.Add(append(bytes.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "DEAD-1.spool")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var size int64
		err := recordlog.RecoverOrphans(filepath.Dir(path), func(f recordlog.File, torn int64) error {
			size = f.Size
			if used := len(bytes.TrimRight(data, "\x00")); f.Size+torn != int64(max(used, int(f.Size))) {
				t.Errorf("%d whole and %d torn of %d bytes, the last of which are %d zeros", f.Size, torn,
					len(data), len(data)-used)
			}
			for _, text := range read(t, f) {
				if text == "" {
					t.Error("a frame that carries nothing")
				}
			}
			return nil
		}, none)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + recordlog.TornSuffix); (err == nil) != (size < int64(len(bytes.TrimRight(data, "\x00")))) {
			t.Errorf("%d of %d bytes are whole, and the torn file is there: %v", size, len(data), err)
		}
	})
}

// TestTheBoundIsTheDirectorys has processes start one after the other while nothing is taken in.
func TestTheBoundIsTheDirectorys(t *testing.T) {
	dir := t.TempDir()
	whole := int64(recordlog.FrameHeader + 10)
	for range 2 {
		s := open(t, dir, recordlog.Options{MaxWaiting: 3 * whole})
		put(t, s, "0123456789")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if files, n, err := recordlog.CountOrphans(dir); err != nil || files != 2 || n != 2*whole {
		t.Errorf("%d files of dead processes with %d bytes, %v; want 2 with %d", files, n, err, 2*whole)
	}
	s := open(t, dir, recordlog.Options{MaxWaiting: 3 * whole})
	put(t, s, "0123456789")
	if files, _, err := recordlog.CountOrphans(dir); err != nil || files != 2 {
		t.Errorf("%d files of dead processes beside one that lives, %v", files, err)
	}
	if err := s.Append(frame("0123456789")); !errors.Is(err, recordlog.ErrFull) {
		t.Errorf("more than may wait in the directory: %v", err)
	}
	take := func(recordlog.File, int64) error { return nil }
	if err := recordlog.RecoverOrphans(dir, take, func(recordlog.File) {}); err != nil {
		t.Fatal(err)
	}
	if err := s.CountOthers(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "0123456789", "0123456789")
}
