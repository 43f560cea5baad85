package ledger

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 7, 28, 14, 0, 0, 0, time.UTC)

// enroll and retire are entries as a journal returns them, one a minute.
func enroll(seq uint64, key CardKey, server drawbridge.ServerID, tool string) Entry {
	return Entry{OpEnrol, key, server, &EnrolledCard{Server: server, Tool: tool, Definition: json.RawMessage(`{}`)},
		seq, minute(seq)}
}

func retire(seq uint64, key CardKey, server drawbridge.ServerID) Entry {
	return Entry{OpRetire, key, server, nil, seq, minute(seq)}
}

func minute(seq uint64) time.Time { return start.Add(time.Duration(seq) * time.Minute) }

// A view is all that a snapshot says.
type view struct {
	Live      []Entry
	ByServer  map[drawbridge.ServerID]int
	HighWater uint64
}

func viewOf(s Snapshot) view {
	for _, e := range s.Live() {
		if got, ok := s.LiveEntry(e.Key); !ok || !cmp.Equal(got, e) {
			panic(fmt.Sprintf("Get(%s) = %v, %v and not what is live", e.Key, got, ok))
		}
	}
	if len(s.places) != s.Len() {
		panic("keys that are not live have a place")
	}
	return view{s.Live(), s.CountByServer(), s.HighWater()}
}

// tools returns what is live as "key=tool", in order.
func tools(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s=%s", e.Key, e.Card.Tool))
	}
	return out
}

// TestFold has the published vectors of the fold.
func TestFold(t *testing.T) {
	log := []Entry{enroll(1, "k1", "s1", "old"), enroll(2, "k2", "s1", "two"), enroll(3, "k1", "s1", "new"),
		retire(4, "k2", "s1")}
	l := FromLog(log)
	want := view{Live: []Entry{log[2]}, ByServer: map[drawbridge.ServerID]int{"s1": 1}, HighWater: 4}
	if diff := cmp.Diff(want, viewOf(l.Snapshot())); diff != "" || l.NextSeq() != 5 {
		t.Errorf("next seq %d, want 5; the snapshot:\n%s", l.NextSeq(), diff)
	}

	l, added := l.Retire("unknown", "s1", minute(5))
	if diff := cmp.Diff([]Entry{retire(5, "unknown", "s1")}, added); diff != "" {
		t.Error("retiring an unknown key is logged:", diff)
	}
	want.HighWater = 5
	if diff := cmp.Diff(want, viewOf(l.Snapshot())); diff != "" || len(l.Entries()) != 5 {
		t.Errorf("a log of %d, want 5; the snapshot:\n%s", len(l.Entries()), diff)
	}

	if same, added := l.RetireServer("s2", minute(6)); len(added) != 0 || same.NextSeq() != 6 {
		t.Errorf("withdrawing a server with nothing live added %v", added)
	}
}

func TestOrderOfTheLive(t *testing.T) {
	l := FromLog([]Entry{enroll(1, "a", "s", "1"), enroll(2, "b", "s", "1"), enroll(3, "c", "s", "1")})
	l, _ = l.Enrol([]EnrolRequest{{EnrolledCard{Server: "s", Tool: "2"}, "a"}}, minute(4))
	if diff := cmp.Diff([]string{"a=2", "b=1", "c=1"}, tools(l.Live())); diff != "" {
		t.Error("a card that is enrolled again keeps its place:", diff)
	}
	l, _ = l.Retire("a", "s", minute(5))
	l, _ = l.Enrol([]EnrolRequest{{EnrolledCard{Server: "s", Tool: "3"}, "a"}}, minute(6))
	if diff := cmp.Diff([]string{"b=1", "c=1", "a=3"}, tools(l.Live())); diff != "" {
		t.Error("a card that was retired comes back at the end:", diff)
	}
	if diff := cmp.Diff([]string{"b=1", "c=1", "a=3"}, tools(FromLog(l.Entries()).Live())); diff != "" {
		t.Error("a replay returns another order:", diff)
	}
}

func TestTransitionsLeaveTheLedgerAsItWas(t *testing.T) {
	card := func(tool string) EnrolledCard {
		return EnrolledCard{Server: "s", Tool: tool, Definition: json.RawMessage(`{"inputSchema":{}}`)}
	}
	before, _ := Empty().Enrol([]EnrolRequest{{Card: card("one")}, {Card: card("two")}}, start)
	was, log := viewOf(before.Snapshot()), before.Entries()

	// Two futures of one ledger.
	left, added := before.Enrol([]EnrolRequest{{Card: card("three")}}, minute(1))
	right, _ := before.RetireServer("s", minute(2))
	again, _ := left.Retire(card("one").Key(), "s", minute(3))

	key := ContentKey("s__three", json.RawMessage(`{}`))
	three := card("three")
	if diff := cmp.Diff([]Entry{{OpEnrol, key, "s", &three, 3, minute(1)}}, added); diff != "" {
		t.Error("what an enrolment adds:", diff)
	}
	if diff := cmp.Diff(was, viewOf(before.Snapshot())); diff != "" {
		t.Error("a transition changed the ledger it began from:", diff)
	}
	if diff := cmp.Diff(log, before.Entries()); diff != "" {
		t.Error("a transition changed the log it began from:", diff)
	}
	if l, r, a := left.Snapshot().Len(), right.Snapshot().Len(), again.Snapshot().Len(); l != 3 || r != 0 || a != 2 {
		t.Errorf("the futures have %d, %d and %d live; want 3, 0 and 2", l, r, a)
	}
	if got := left.LiveByServer("s"); len(got) != 3 || left.LiveByServer("other") != nil {
		t.Errorf("%d live of s, want 3; and %v of a server that is not there", len(got), left.LiveByServer("other"))
	}
	live := before.Live()
	live[0], live[1] = live[1], live[0]
	if diff := cmp.Diff(was, viewOf(before.Snapshot())); diff != "" {
		t.Error("the caller's slice is the ledger's:", diff)
	}
}

func TestAt(t *testing.T) {
	l := FromLog([]Entry{enroll(1, "a", "s", "1"), enroll(2, "b", "s", "1"), retire(3, "a", "s"),
		enroll(4, "a", "s", "2")})
	for _, tt := range []struct {
		at   time.Time
		want []string
	}{
		{start, nil},
		{minute(1), []string{"a=1"}},
		{minute(3).Add(-1), []string{"a=1", "b=1"}},
		{minute(3), []string{"b=1"}},
		{minute(9), []string{"b=1", "a=2"}},
	} {
		if diff := cmp.Diff(tt.want, tools(l.SnapshotAt(tt.at).Live())); diff != "" {
			t.Errorf("at %s: %s", tt.at, diff)
		}
	}
}

// TestLateEntries shows what several writers of one journal bring about: gaps, and entries that come after later ones.
func TestLateEntries(t *testing.T) {
	all := []Entry{enroll(1, "a", "s", "1"), enroll(2, "b", "s", "1"), retire(3, "a", "s"), enroll(5, "b", "s", "2"),
		enroll(9, "c", "s", "1")}
	l := Empty().Append(all[4]).Append(all[0], all[2]).Append(all[3]).Append(all[1])
	if diff := cmp.Diff(viewOf(FoldEntries(all)), viewOf(l.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if l.NextSeq() != 10 {
		t.Errorf("next seq %d, want 10", l.NextSeq())
	}
	if same := l.Append(all[1]); !cmp.Equal(viewOf(same.Snapshot()), viewOf(l.Snapshot())) {
		t.Error("an entry that is appended twice counts twice")
	}
}

// randomLog makes a log in which keys are enrolled, enrolled again and retired, some of them never enrolled.
func randomLog(r *rand.Rand, n int) []Entry {
	log := make([]Entry, 0, n)
	for i := range n {
		seq := uint64(i + 1)
		server := drawbridge.ServerID(fmt.Sprintf("s%d", r.IntN(3)))
		key := CardKey(fmt.Sprintf("k%d", r.IntN(12)))
		if r.IntN(3) == 0 {
			log = append(log, retire(seq, key, server))
		} else {
			log = append(log, enroll(seq, key, server, fmt.Sprint(seq)))
		}
	}
	return log
}

// TestAnyOrderFoldsTheSame is the law of the fold: order does not count, a replay returns what was live, and to go step
// by step returns the same as all at once.
func TestAnyOrderFoldsTheSame(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		log := randomLog(r, r.IntN(60))
		want := viewOf(FoldEntries(log))

		var l Ledger
		for rest := log; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			l, rest = l.Append(rest[:n]...), rest[n:]
		}
		if diff := cmp.Diff(want, viewOf(l.Snapshot())); diff != "" {
			t.Fatalf("seed %d: live and fold differ: %s", seed, diff)
		}
		if diff := cmp.Diff(want, viewOf(FromLog(l.Entries()).Snapshot())); diff != "" {
			t.Fatalf("seed %d: a replay differs: %s", seed, diff)
		}
		given := slices.Clone(log)
		r.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		kept := slices.Clone(given)
		if diff := cmp.Diff(want, viewOf(FoldEntries(given))); diff != "" {
			t.Fatalf("seed %d: another order returns another snapshot: %s", seed, diff)
		}
		if !cmp.Equal(kept, given) {
			t.Fatalf("seed %d: the fold changed the caller's slice", seed)
		}
	}
}

// entriesFrom makes any entries at all of bytes: repeated sequence numbers, unknown operations, cards where none
// belong.
func entriesFrom(data []byte) []Entry {
	var entries []Entry
	for ; len(data) >= 4; data = data[4:] {
		e := Entry{
			Op: []EntryOp{OpEnrol, OpRetire, "", "other"}[data[0]&3], Key: CardKey(rune('a' + data[1]&7)),
			Server: drawbridge.ServerID(rune('r' + data[1]>>6)),
			Seq:    uint64(data[2]), At: time.Unix(int64(data[2]>>3), 0),
		}
		if data[2] == 255 {
			e.Seq = ^uint64(0)
		}
		if data[0]&4 == 0 {
			e.Card = &EnrolledCard{Server: e.Server, Tool: string(rune('a' + data[3]&3)),
				Definition: json.RawMessage{data[3]}}
		}
		entries = append(entries, e)
	}
	return entries
}

// FuzzReduce is row FZ-16: entries fold to the same ledger in any order, and in two parts as in one.
func FuzzReduce(f *testing.F) {
	f.Add([]byte{0, 1, 1, 0, 0, 2, 2, 0, 0, 1, 3, 1, 1, 2, 4, 0}, uint64(1), uint8(2))
	f.Add([]byte{0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 4, 1, 1, 1}, uint64(2), uint8(1))
	f.Add([]byte{0, 1, 255, 0, 3, 1, 0, 0, 2, 1, 1, 1}, uint64(3), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, cut uint8) {
		entries := entriesFrom(data)
		want := viewOf(FoldEntries(entries))
		other := slices.Clone(entries)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if diff := cmp.Diff(want, viewOf(FoldEntries(other))); diff != "" {
			t.Fatal("another order returns another snapshot:", diff)
		}
		n := min(int(cut), len(other))
		l := FromLog(other[:n]).Append(other[n:]...)
		if diff := cmp.Diff(want, viewOf(l.Snapshot())); diff != "" {
			t.Fatal("in two steps it is another snapshot:", diff)
		}
		if diff := cmp.Diff(other, l.Entries()); len(other) > 0 && diff != "" {
			t.Fatal("the log is not what was appended:", diff)
		}
		l.SnapshotAt(time.Unix(int64(cut), 0))
	})
}

// requests are n cards of 50 servers, as a boot enrols them.
func requests(n int) []EnrolRequest {
	out := make([]EnrolRequest, n)
	for i := range out {
		server := drawbridge.ServerID(fmt.Sprintf("server-%d", i%50))
		tool := fmt.Sprintf("tool_%d", i)
		out[i] = EnrolRequest{Card: EnrolledCard{Server: server, Tool: tool, ConfigHash: "row",
			Definition: json.RawMessage(fmt.Sprintf(
				`{"name":%q,"description":"Does what tool number %d does, with a path","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}`, tool, i))}}
	}
	return out
}

func BenchmarkEnrol10000(b *testing.B) {
	batch := requests(10_000)
	b.ReportAllocs()
	for b.Loop() {
		Empty().Enrol(batch, start)
	}
}

// BenchmarkOneChange changes one card of 10,000, with a log a hundred times as long as in the first row in the second.
func BenchmarkOneChange(b *testing.B) {
	for _, rounds := range []int{1, 100} {
		l, _ := Empty().Enrol(requests(10_000), start)
		for range rounds - 1 {
			l = l.Append(withSeq(l.Live(), l.NextSeq())...)
		}
		one := []EnrolRequest{{Card: requests(1)[0].Card}}
		b.Run(fmt.Sprintf("log=%d", len(l.Entries())), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Enrol(one, start)
			}
		})
	}
}

func withSeq(entries []Entry, next uint64) []Entry {
	for i := range entries {
		entries[i].Seq = next + uint64(i)
	}
	return entries
}

func BenchmarkReplay10000(b *testing.B) {
	l, _ := Empty().Enrol(requests(10_000), start)
	log := l.Entries()
	b.ReportAllocs()
	for b.Loop() {
		FromLog(log)
	}
}
