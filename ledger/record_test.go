package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// chained are the records of a small log, as a journal has them.
func chained(t testing.TB, stream string, n int) []Record {
	t.Helper()
	var prev [32]byte
	records := make([]Record, 0, n)
	for i := range n {
		r, err := EncodeEntry(enroll(uint64(i+1), CardKey(fmt.Sprintf("bk_%d", i)), "server", fmt.Sprintf("tool%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		r.Stream, r.Prev = stream, prev
		r.Hash = ChainHash(prev, r)
		prev = r.Hash
		records = append(records, r)
	}
	return records
}

func each(records []Record) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestEncodeDecode(t *testing.T) {
	for _, tt := range []struct {
		entry Entry
		body  string
	}{
		{Entry{OpEnrol, "bk_1", "fs", &EnrolledCard{"fs", "read", "r0w",
			json.RawMessage(`{"name" : "read",  "x":1.00,"<&>":" "}`)}, 7, start},
			`{"server":"fs","tool":"read","row":"r0w"}` + "\n" + `{"name" : "read",  "x":1.00,"<&>":" "}`},
		{Entry{OpEnrol, "bk_1", "fs", &EnrolledCard{"fs", "two\nlines", "", json.RawMessage(" {\n} ")}, 7, start},
			`{"server":"fs","tool":"two\nlines"}` + "\n {\n} "},
		{Entry{OpRetire, "bk_1", "fs", nil, 8, start}, `{"server":"fs"}`},
	} {
		r, err := EncodeEntry(tt.entry)
		if err != nil {
			t.Fatal(err)
		}
		want := Record{Seq: tt.entry.Seq, At: start, Kind: string(tt.entry.Op), Key: "bk_1", Body: []byte(tt.body)}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Error("record:", diff)
		}
		got, err := DecodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.entry, got); diff != "" {
			t.Error("what comes back is something else:", diff)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	card := &EnrolledCard{Server: "fs", Tool: "read", Definition: json.RawMessage(`{"secret":`)}
	whole := &EnrolledCard{Server: "fs", Tool: "read", Definition: json.RawMessage(`{}`)}
	for _, tt := range []struct {
		entry Entry
		want  string
	}{
		{Entry{Op: OpEnrol, Key: "k", Server: "fs", Card: card}, "encode k of fs: its definition is not JSON"},
		{Entry{Op: OpEnrol, Key: "k", Server: "fs"},
			"encode k of fs: neither an enrolment of its own card nor a retirement"},
		{Entry{Op: OpEnrol, Key: "k", Server: "other", Card: whole},
			"encode k of other: neither an enrolment of its own card nor a retirement"},
		{Entry{Op: OpRetire, Key: "k", Server: "fs", Card: whole},
			"encode k of fs: neither an enrolment of its own card nor a retirement"},
		{Entry{Op: "rename", Key: "k", Server: "fs"},
			"encode k of fs: neither an enrolment of its own card nor a retirement"},
	} {
		if _, err := EncodeEntry(tt.entry); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ kind, body, want string }{
		{"enroll", ``, "record 3 of deck: torn"},
		{"enroll", `{"server":"fs","tool":"secret"}`, "record 3 of deck: torn"},
		{"enroll", `{"server":"fs","tool":"secret"}` + "\n", "record 3 of deck: torn"},
		{"enroll", `{"server":"fs","tool":"secret"}` + "\n{", "record 3 of deck: torn"},
		{"enroll", `{"server":"fs","tool":"sec` + "\n{}", "record 3 of deck: torn"},
		{"enroll", `{"server":77}` + "\n{}", "record 3 of deck: torn"},
		{"retire", `{"server":"fs"}` + "\n{}", "record 3 of deck: torn"},
		{"audit", `{"server":"fs"}`, `decode record 3 of deck: unknown kind "audit"`},
	} {
		_, err := DecodeRecord(Record{Stream: "deck", Seq: 3, Kind: tt.kind, Body: []byte(tt.body)})
		if err == nil || err.Error() != tt.want {
			t.Errorf("decode %s %q: error %v, want %s", tt.kind, tt.body, err, tt.want)
		}
	}
}

func TestVerify(t *testing.T) {
	clean := func() []Record { return chained(t, "deck", 5) }
	if err := VerifyChains(each(slices.Concat(clean(), chained(t, "other", 3)))); err != nil {
		t.Fatal("two clean streams:", err)
	}
	if err := VerifyChains(each(nil)); err != nil {
		t.Fatal("no records:", err)
	}
	edit := func(change func(r *Record)) func([]Record) []Record {
		return func(rs []Record) []Record { change(&rs[2]); return rs }
	}
	for _, tt := range []struct {
		name   string
		damage func([]Record) []Record
		want   ChainError
	}{
		{"a bit of the body", edit(func(r *Record) { r.Body[9] ^= 1 }), ChainError{"deck", 3, DamageEdited}},
		{"a shorter body", edit(func(r *Record) { r.Body = r.Body[:5] }), ChainError{"deck", 3, DamageEdited}},
		{"another key", edit(func(r *Record) { r.Key = "bk_x" }), ChainError{"deck", 3, DamageEdited}},
		{"another kind", edit(func(r *Record) { r.Kind = "retire" }), ChainError{"deck", 3, DamageEdited}},
		{"another time", edit(func(r *Record) { r.At = r.At.Add(time.Millisecond) }),
			ChainError{"deck", 3, DamageEdited}},
		{"a byte from one field to the next", edit(func(r *Record) { r.Kind, r.Key = "enrol", "l"+r.Key }),
			ChainError{"deck", 3, DamageEdited}},
		{"another hash", edit(func(r *Record) { r.Hash[0] ^= 1 }), ChainError{"deck", 3, DamageEdited}},
		{"another link", edit(func(r *Record) { r.Prev[0] ^= 1 }), ChainError{"deck", 3, DamageEdited}},
		{"edited and hashed again", edit(func(r *Record) { r.Key = "bk_x"; r.Hash = ChainHash(r.Prev, *r) }),
			ChainError{"deck", 4, DamageEdited}},
		{"no hash", edit(func(r *Record) { r.Hash = [32]byte{} }), ChainError{"deck", 3, DamageTorn}},
		{"one gone", func(rs []Record) []Record { return slices.Delete(rs, 2, 3) },
			ChainError{"deck", 3, DamageMissing}},
		{"the first gone", func(rs []Record) []Record { return rs[1:] }, ChainError{"deck", 1, DamageMissing}},
		{"one gone and the others moved up", func(rs []Record) []Record {
			rs = slices.Delete(rs, 2, 3)
			rs[2].Seq, rs[3].Seq = 3, 4
			return rs
		}, ChainError{"deck", 3, DamageEdited}},
		{"one twice", func(rs []Record) []Record { return slices.Insert(rs, 3, rs[2]) },
			ChainError{"deck", 3, DamageReordered}},
		{"two that changed places", func(rs []Record) []Record { rs[2], rs[3] = rs[3], rs[2]; return rs },
			ChainError{"deck", 3, DamageReordered}},
		{"the first at the end", func(rs []Record) []Record { return append(rs[1:], rs[0]) },
			ChainError{"deck", 1, DamageReordered}},
		{"the last before the first", func(rs []Record) []Record { return append(rs, rs[0]) },
			ChainError{"deck", 1, DamageReordered}},
		{"one of another stream", edit(func(r *Record) { r.Stream = "other" }), ChainError{"other", 1, DamageMissing}},
	} {
		err := VerifyChains(each(tt.damage(clean())))
		var got *ChainError
		if !errors.As(err, &got) || *got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, &tt.want)
		}
	}
}

func TestVerifyPassesOnErrors(t *testing.T) {
	unread := errors.New("read: the disk is gone")
	after := func(records []Record) iter.Seq2[Record, error] {
		return func(yield func(Record, error) bool) {
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
			yield(Record{}, unread)
		}
	}
	records := chained(t, "deck", 3)
	if err := VerifyChains(after(records)); !errors.Is(err, unread) {
		t.Errorf("error %v, want %v", err, unread)
	}
	var got *ChainError
	if err := VerifyChains(after(records[1:])); !errors.As(err, &got) ||
		*got != (ChainError{"deck", 1, DamageMissing}) {
		t.Errorf("error %v, want the break before it", err)
	}
}

// TestChainIsWhatItSays pins the hash: journals of earlier versions verify with later ones.
func TestChainIsWhatItSays(t *testing.T) {
	records := chained(t, "deck", 2)
	if got, want := fmt.Sprintf("%x", records[1].Hash),
		"8aa1f5045f9de9b2c047ac5f0a70773819fed4825564f307c35855d3248d82d4"; got != want {
		t.Errorf("hash of the second record = %s, want %s", got, want)
	}
}

// FuzzDecode is row FZ-15: a record that is read is written the same.
func FuzzDecode(f *testing.F) {
	f.Add("enroll", []byte(`{"server":"fs","tool":"read","row":"r"}`+"\n"+`{"name":"read"}`))
	f.Add("retire", []byte(`{"server":"fs"}`))
	f.Add("enroll", []byte("null\n[]"))
	f.Add("enroll", []byte("{\"server\":\"\xff\"}\n1"))
	f.Add("other", []byte{})
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		r := Record{Stream: "deck", Seq: 1, At: start, Kind: kind, Key: "bk_1", Body: body}
		e, err := DecodeRecord(r)
		if err != nil {
			return
		}
		again, err := EncodeEntry(e)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		same, err := DecodeRecord(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, same); diff != "" {
			t.Fatal("encoded and decoded again it is something else:", diff)
		}
		FoldEntries([]Entry{e})
	})
}

func BenchmarkEncodeAndChain(b *testing.B) {
	e := Entry{OpEnrol, "bk_1", "server-1", &requests(1)[0].Card, 1, start}
	e.Server = e.Card.Server
	b.ReportAllocs()
	for b.Loop() {
		r, err := EncodeEntry(e)
		if err != nil {
			b.Fatal(err)
		}
		ChainHash([32]byte{}, r)
	}
}

func BenchmarkDecode(b *testing.B) {
	card := requests(1)[0].Card
	r, err := EncodeEntry(Entry{OpEnrol, "bk_1", card.Server, &card, 1, start})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(r.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeRecord(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify10000(b *testing.B) {
	records := chained(b, "deck", 10_000)
	for b.Loop() {
		if err := VerifyChains(each(records)); err != nil {
			b.Fatal(err)
		}
	}
}
