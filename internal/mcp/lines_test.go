package mcp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// readLines reads to the end. A line over the bound reads "(too long)", an end that is not orderly as its error.
func readLines(r io.Reader, max int) []string {
	lines := mcp.NewLineReader(r, max)
	var got []string
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, mcp.ErrTooLong):
			got = append(got, "(too long)")
		case err == io.EOF:
			return got
		case err != nil:
			return append(got, "("+err.Error()+")")
		default:
			got = append(got, string(line))
		}
	}
}

func TestLineReader(t *testing.T) {
	long, noise, blank := "{"+strings.Repeat("x", 70_000), strings.Repeat("x", 70_000), strings.Repeat(" \t", 35_000)
	for _, tt := range []struct {
		name, text string
		max        int
		want       []string
	}{
		{"lines", "{\"a\":1}\n{\"b\":2}\n", 0, []string{`{"a":1}`, `{"b":2}`}},
		{"CRLF, blanks and blank lines", "\n \t\r\n  {}  \r\n\r\n[]\t\n", 0, []string{`{}`, `[]`}},
		{"no newline at the end", "{}\n{\"cut\":", 0, []string{`{}`, `{"cut":`}},
		{"byte order marks", "\xef\xbb\xbf{}\n \xef\xbb\xbf []\n\xef\xbb\xbf\n", 0, []string{`{}`, `[]`}},
		{"nothing", "", 0, nil},
		{"longer than the buffer", long + "\nshort\n", 0, []string{long, "short"}},
		{"much longer", "[" + long + long + long + "]\r\nshort\n", 0, []string{"[" + long + long +
			long + "]", "short"}},
		{"longer than the buffer at the end", "short\n" + long, 0, []string{"short", long}},
		{"blanks within", "{" + blank + "}" + blank + "\n", 0, []string{"{" + blank + "}"}},
		{"blanks in front", blank + "\n" + blank + "{}\n" + blank + "\xef\xbb\xbf" + blank + "[]\n" + blank, 0,
			[]string{"{}", "[]"}},
		{"blanks over the bound", blank + "\n{}\n", 10, []string{"(too long)", "{}"}},
		{"no message", noise[:64<<10-1] + "\n" + noise[:64<<10] + "\n{}\n", 0, []string{noise[:64<<10-1],
			"(too long)", "{}"}},
		{"no message behind blanks", blank + "x\n\xef\xbb\xbf" + noise + "\n{}\n", 0, []string{"(too long)",
			"(too long)", "{}"}},
		{"CRs over the bound", "{" + strings.Repeat("\r", 200_000) + "\n{}\n", 100_000, []string{"(too long)", "{}"}},
		{"no message and CRs", "x" + strings.Repeat("\r", 200_000) + "\n{}\n", 0, []string{"(too long)", "{}"}},
		{"no message at the end", "{}\n\"" + noise, 0, []string{"{}", "(too long)"}},
		{"at the bound", "12345\r\n12345\n", 5, []string{"12345", "12345"}},
		{"over the bound", "12345\n123456\n12345\n", 5, []string{"12345", "(too long)", "12345"}},
		{"far over the bound", "ok\n" + long + "\nok\n", 10, []string{"ok", "(too long)", "ok"}},
		{"over the bound at the end", "ok\n" + long, 10, []string{"ok", "(too long)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, readLines(strings.NewReader(tt.text), tt.max)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.want, readLines(iotest.OneByteReader(strings.NewReader(tt.text)), tt.max)); d != "" {
				t.Errorf("byte by byte: %s", d)
			}
		})
	}
}

func TestLineReaderAfterAnError(t *testing.T) {
	lines := mcp.NewLineReader(io.MultiReader(strings.NewReader("{}\nhalf"), iotest.ErrReader(io.ErrUnexpectedEOF)), 0)
	var got []string
	for range 4 {
		line, err := lines.Next()
		got = append(got, fmt.Sprintf("%s %v", line, err))
	}
	want := []string{"{} <nil>", "half <nil>", " unexpected EOF", " unexpected EOF"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLinesBelongToTheCaller(t *testing.T) {
	lines := mcp.NewLineReader(strings.NewReader("first\nother\n"), 0)
	first, _ := lines.Next()
	if _, err := lines.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first) != "first" {
		t.Errorf("the first line became %q", first)
	}
}

// A line over the bound is reported while it is still coming: an endless one must not be waited for.
func TestTooLongIsSaidAtOnce(t *testing.T) {
	for _, tt := range []struct {
		first string
		max   int
	}{{"x", 0}, {"{", 100_000}} {
		out, in := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := in.Write([]byte(tt.first + strings.Repeat("x", 1<<20)))
			done <- err
		}()
		if _, err := mcp.NewLineReader(out, tt.max).Next(); !errors.Is(err, mcp.ErrTooLong) {
			t.Errorf("%s: got %v", tt.first, err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: the writer had ended before: %v", tt.first, err)
		}
	}
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// allocated is how many bytes f allocates, those the collector took back included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A server that floods its output must not cost memory by it.
func TestLongLinesCostLittle(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name, first string
		zeros       int64
		max         int
		tooLong     bool
		most        uint64
	}{
		{"no message", "", 1 << 30, 0, true, mib / 4},
		{"no message behind many blanks", strings.Repeat(" ", 8*mib), 1 << 30, 0, true, mib / 4},
		{"over the bound", "{", 1 << 30, 4 * mib, true, 5 * mib},
		{"within the bound", "{", 16 * mib, 0, false, 33 * mib},
	} {
		text := io.MultiReader(strings.NewReader(tt.first), io.LimitReader(zeros{}, tt.zeros),
			strings.NewReader("\n{}\n"))
		var got []byte
		var errs [2]error
		size := allocated(func() {
			lines := mcp.NewLineReader(text, tt.max)
			_, errs[0] = lines.Next()
			got, errs[1] = lines.Next()
		})
		if errors.Is(errs[0], mcp.ErrTooLong) != tt.tooLong || errs[1] != nil || string(got) != "{}" {
			t.Errorf("%s: got %v, then %.20q", tt.name, errs, got)
		}
		if size > tt.most {
			t.Errorf("%s: allocated %d bytes, want at most %d", tt.name, size, tt.most)
		}
	}
}

func TestSmallLinesAreOneAllocation(t *testing.T) {
	lines := mcp.NewLineReader(strings.NewReader(strings.Repeat(" {\"id\":1}\r\n", 1000)), 0)
	if n := testing.AllocsPerRun(500, func() { _, _ = lines.Next() }); n != 1 {
		t.Errorf("%v allocations a line, want 1", n)
	}
}

func TestSplitValues(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
		ok   bool
	}{
		{`{"id":1}`, []string{`{"id":1}`}, true},
		{` {"id":1}{"id":2} [3] `, []string{`{"id":1}`, `{"id":2}`, `[3]`}, true},
		{`{"id":1} trailing words`, []string{`{"id":1}`}, false},
		{`INFO listening`, nil, false},
		{`12:30 INFO listening`, []string{`12`}, false},
		{`{"broken":`, nil, false},
		{"{\"a\":\"\xff\"}", nil, false},
		{``, nil, true},
	} {
		values, ok := mcp.SplitJSONValues([]byte(tt.line))
		var got []string
		for _, v := range values {
			got = append(got, string(v))
		}
		if d := cmp.Diff(tt.want, got); d != "" || ok != tt.ok {
			t.Errorf("SplitValues(%q): %v %s", tt.line, ok, d)
		}
	}
}

// FuzzLines is rows FZ-1 and FZ-3: lines are the same however the bytes arrive, none is longer than the bound, and
// what is split of one is JSON.
func FuzzLines(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text+"\r\n"+text), 8)
	}
	f.Add([]byte("\xef\xbb\xbf{}\n{}{}\n\nlog line\n"), 0)
	f.Fuzz(func(t *testing.T, text []byte, max int) {
		max &= 0xff
		got := readLines(bytes.NewReader(text), max)
		if d := cmp.Diff(got, readLines(iotest.OneByteReader(bytes.NewReader(text)), max)); d != "" {
			t.Errorf("byte by byte: %s", d)
		}
		for _, line := range got {
			if line == "" || strings.Contains(line, "\n") || max > 0 && len(line) > max && line != "(too long)" {
				t.Errorf("line %q", line)
			}
			values, ok := mcp.SplitJSONValues([]byte(line))
			for _, v := range values {
				if err := rawjson.Valid(v); err != nil {
					t.Errorf("value %q of %q: %v", v, line, err)
				}
			}
			if ok && strings.Join(strings.Fields(string(bytes.Join(values, nil))),
				"") != strings.Join(strings.Fields(line), "") {
				t.Errorf("%q has the values %q", line, values)
			}
		}
	})
}

func ExampleLineReader() {
	lines := mcp.NewLineReader(strings.NewReader("starting up\r\n\n{\"id\":1}{\"id\":2}\n"), 0)
	for line, err := lines.Next(); err == nil; line, err = lines.Next() {
		values, ok := mcp.SplitJSONValues(line)
		fmt.Println(len(values), ok)
	}
	// Output:
	// 0 false
	// 2 true
}
