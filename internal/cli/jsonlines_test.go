package cli

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestEach reads files in which some lines are none: each is told with its number, and the others are read.
func TestEach(t *testing.T) {
	long := `{"a":"` + strings.Repeat("b", 200_000) + `"}` // more than what is read at once
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"rows", "{}\n\n \r\n{\"id\":\"x\"}\r\n{\"id\":7}", "1 1 ok, 4 x ok, 5 7 ok"},
		{"no JSON", "{}\n{\n{}\n", "1 1 ok, 2 2 bad, 3 3 ok"},
		{"no object", "[]\nnull\n{}", "1 1 bad, 2 2 bad, 3 3 ok"},
		{"no UTF-8", "{\"a\":\"\xff\"}\n{}", "1 1 bad, 2 2 ok"},
		{"too deep, with a name of its own", `{"id":"x","a":` + strings.Repeat("[", rawjson.MaxDepth) +
			strings.Repeat("]", rawjson.MaxDepth) + "}\n{}", "1 x bad, 2 2 ok"},
		{"longer than what is read at once", long + "\n{}", "1 1 ok, 2 2 ok"},
		{"as long as may be", strings.Repeat(" ", 300_000-2) + "{}\r\n{}", "1 1 ok, 2 2 ok"},
		{"too long", strings.Repeat(" ", 300_000-1) + "{}\n{}", "1 1 bad, 2 2 ok"},
		{"too long and blank, twice", strings.Repeat(" ", 900_000) + "\n" + strings.Repeat("x", 900_000) + "\n{}\n",
			"1 1 bad, 2 2 bad, 3 3 ok"},
		{"too long at the end", "{}\n" + strings.Repeat("x", 900_000), "1 1 ok, 2 2 bad"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.HalfReader(strings.NewReader(tt.in)),
				iotest.DataErrReader(strings.NewReader(tt.in))} {
				var got []string
				err := eachJSONLineWithin(in, 300_000, func(r jsonLine) error {
					word := " ok"
					if r.Err != nil {
						word = " bad"
					}
					got = append(got, strings.Join([]string{string(rune('0' + r.Number)), r.id() + word}, " "))
					return nil
				})
				if err != nil || strings.Join(got, ", ") != tt.want {
					t.Errorf("got %q, %v, want %q", got, err, tt.want)
				}
			}
		})
	}
}

// TestEachKeepsNoMoreThanALine has a line grow up to its bound, piece by piece.
func TestEachKeepsNoMoreThanALine(t *testing.T) {
	r := lineReader{maxBytes: 1 << 16}
	for range 100 {
		r.appendPart(make([]byte, 600))
	}
	if cap(r.line) > r.maxBytes+2 {
		t.Errorf("a line of at most %d bytes has %d", r.maxBytes, cap(r.line))
	}
}

func TestEachEnds(t *testing.T) {
	broken := errors.New("broken")
	err := eachJSONLine(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(broken)),
		func(r jsonLine) error { return r.Err })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a file that cannot be read on: %v", err)
	}
	err = eachJSONLine(strings.NewReader("{}\n{}"), func(jsonLine) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("who reads ends it: %v", err)
	}
}

// TestFits holds the bound against what the gateway takes.
func TestFits(t *testing.T) {
	for _, levels := range []int{1, rawjson.MaxDepth - 3, rawjson.MaxDepth - 2, rawjson.MaxDepth} {
		definition := []byte(strings.Repeat(`{"[\"{":`, levels) + "1" + strings.Repeat("}", levels))
		answer := slices.Concat([]byte(`{"result":{"tools":[`), definition, []byte(`]}}`))
		if got, want := checkDefinitionDepth(definition), rawjson.Valid(answer); (got == nil) != (want == nil) {
			t.Errorf("%d levels: %v, and the gateway says %v", levels, got, want)
		}
	}
}
