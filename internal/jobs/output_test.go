package jobs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestOutputKeepsBothEnds compares an output with the whole stream.
func TestOutputKeepsBothEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var o Output
		var all bytes.Buffer
		for all.Len() < round*20_000 {
			part := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, 1+random.IntN(60_000))
			all.Write(part)
			if n, err := o.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		whole := all.String()
		if o.Size() != int64(len(whole)) {
			t.Fatalf("size %d of %d", o.Size(), len(whole))
		}
		const ceiling = 1000
		text := o.Text(ceiling)
		want := whole
		if len(whole) > ceiling {
			want = whole[:500] + fmt.Sprintf("\n[%d bytes elided to stay within the output ceiling]\n", len(whole)-ceiling) +
				whole[len(whole)-500:]
		}
		if text != want {
			t.Fatalf("round %d of %d bytes: the text differs", round, len(whole))
		}
		if text := o.Text(1 << 20); len(whole) <= keptTail && text != whole {
			t.Fatalf("round %d: the whole text differs", round)
		}
		cursor := int64(random.IntN(len(whole) + 1))
		text, elided, next := o.From(cursor, 5000)
		if next != o.Size() || cursor+elided+int64(len(text)) != next || text != whole[len(whole)-len(text):] || len(text) > 5000 {
			t.Fatalf("round %d from %d: %d bytes, %d elided, next %d", round, cursor, len(text), elided, next)
		}
	}
}

func TestOutputCutsAtCharacters(t *testing.T) {
	var o Output
	fmt.Fprint(&o, strings.Repeat("ä", 1000))
	if text := o.Text(501); strings.Contains(text, "\uFFFD") || !strings.Contains(text, "[1500 bytes elided") {
		t.Error(text)
	}
	if text, elided, next := o.From(1, 11); text != "äääää" || elided != 1989 || next != 2000 {
		t.Errorf("%q, %d, %d", text, elided, next)
	}
	var bad Output
	fmt.Fprint(&bad, "a\xffb\x80\x80\x80\x80\x80")
	if text := bad.Text(100); !strings.HasPrefix(text, "a\uFFFDb\uFFFD") {
		t.Errorf("%q", text)
	}
}

func TestLastLines(t *testing.T) {
	var o Output
	if got := o.LastLines(2); got != nil {
		t.Error(got)
	}
	fmt.Fprint(&o, "one\ntwo\nthree\n")
	if got := fmt.Sprint(o.LastLines(2)); got != "[two three]" {
		t.Error(got)
	}
}
