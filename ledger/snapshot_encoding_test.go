package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzReadSnapshot has a snapshot that is read be written and read the same.
func FuzzReadSnapshot(f *testing.F) {
	log := []Entry{enroll(1, "k1", "s1", "old"), enroll(2, "k2", "s1", "two"), enroll(3, "k1", "s1", "new"),
		retire(9, "k9", "s1")}
	text, err := FoldEntries(log).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"highWater":1,"live":[{"seq":1,"at":0,"key":"k","body":""}]}`))
	f.Add([]byte(`{"highWater":0,"live":[{"seq":1,"at":0,"key":"k","body":"e30KMQ=="}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := DecodeSnapshot(text)
		if err != nil {
			return
		}
		view := viewOf(s)
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		same, err := DecodeSnapshot(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(view, viewOf(same)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestASnapshotIsKeptAsItIs(t *testing.T) {
	log := []Entry{enroll(1, "k1", "s1", "old"), enroll(2, "k2", "s1", "two"), enroll(3, "k1", "s1", "new"),
		enroll(4, "k3", "s2", "three"), retire(5, "k2", "s1")}
	want := FoldEntries(log)
	text, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSnapshot(text)
	if diff := cmp.Diff(viewOf(want), viewOf(got)); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	more := []Entry{enroll(6, "k2", "s1", "again"), retire(7, "k1", "s1")}
	if diff := cmp.Diff(viewOf(FoldEntries(append(log, more...))), viewOf(got.With(more...))); diff != "" {
		t.Error("what follows is folded otherwise:", diff)
	}
	for _, text := range []string{
		``, `[]`, `{"highWater":9,"live":[{"seq":1,"key":"k","body":"e30KMQ=="},{"seq":2,"key":"k","body":"e30KMQ=="}]}`,
		`{"highWater":1,"live":[{"seq":2,"key":"k","body":"e30KMQ=="}]}`,
		`{"highWater":1,"live":[{"seq":1,"key":"k","body":"e30="}]}`,
	} {
		if s, err := DecodeSnapshot([]byte(text)); err == nil {
			t.Errorf("%s was read as %v", text, viewOf(s))
		}
	}
}
