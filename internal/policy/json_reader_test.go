package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowly reads an object as readObject does, with all that encoding/json knows.
func slowly(raw []byte) (map[string]any, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, true
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, ok := slowValue(dec, 0)
	if _, err := dec.Token(); !ok || !errors.Is(err, io.EOF) {
		return nil, false
	}
	object, ok := v.(map[string]any)
	return object, ok
}

func slowValue(dec *json.Decoder, depth int) (any, bool) {
	token, err := dec.Token()
	open, composed := token.(json.Delim)
	if err != nil || !composed {
		return token, err == nil
	}
	if depth >= maxDepth {
		return nil, false
	}
	list, object, folds := []any{}, map[string]any{}, map[string]bool{}
	for dec.More() {
		name := ""
		if open == '{' {
			if token, err = dec.Token(); err != nil {
				return nil, false
			}
			name, _ = token.(string)
			if folds[foldArgumentName(name)] {
				return nil, false
			}
			folds[foldArgumentName(name)] = true
		}
		v, ok := slowValue(dec, depth+1)
		if !ok {
			return nil, false
		}
		object[name], list = v, append(list, v)
	}
	_, err = dec.Token()
	if open == '{' {
		return object, err == nil
	}
	return list, err == nil
}

// FuzzReadObject holds our reader against encoding/json's: it returns the same, of the whole and of one member.
func FuzzReadObject(f *testing.F) {
	many := strings.Builder{}
	for range 40 {
		many.WriteString(`"` + strings.Repeat("x", many.Len()%37) + `":1,`)
	}
	for _, s := range []string{
		``, `null`, `{}`, ` { "a" : [ 1.50 , -2e9, true, false, null, "x\"\u00e9\ud800", {"b":{}}, [] ] , "B":"" } `,
		`{"a":1}x`, `[1]`, `{"a":1,"A":2}`,
		`{"a":{"\u0061":1,"b":[],"a":2}}`, `{"K":1,"K":2}`, `{"arguments":{"x":1},"_meta":{"y":[{}]}}`,
		`{"ARGUMENTS":null}`, "{\"\xff\":1}",
		`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `{` + many.String() + `"":2}`,
		`{"ſ":1,"s":2}`, `{"a":1,}`, `{"a\\":"\\"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := readObject(raw, "")
		if !json.Valid(raw) || len(raw) > maxArguments {
			if err == nil && len(raw) > 0 {
				t.Fatalf("%q is read", raw)
			}
			return
		}
		if !bytes.Equal(raw, bytes.ToValidUTF8(raw, nil)) {
			if err == nil {
				t.Fatalf("%q is read", raw)
			}
			return
		}
		want, ok := slowly(raw)
		if ok != (err == nil) {
			t.Fatalf("%q: %v, want %v", raw, err, want)
		}
		if diff := cmp.Diff(any(want), toPlainMaps(got)); err == nil && diff != "" {
			t.Fatalf("%q (-want +got):\n%s", raw, diff)
		}
		part, err := readObject(raw, "arguments")
		if ok != (err == nil) {
			t.Fatalf("%q: a part of it: %v", raw, err)
		}
		for name, v := range want {
			if foldArgumentName(name) != "arguments" {
				continue
			}
			if diff := cmp.Diff(any(map[string]any{name: v}), toPlainMaps(part)); diff != "" {
				t.Fatalf("%q: a part of it (-want +got):\n%s", raw, diff)
			}
			return
		}
		if len(part) > 0 {
			t.Fatalf("%q: a part of it is %v", raw, part)
		}
	})
}

func TestASubjectKeepsAllItsNames(t *testing.T) {
	var s ruleTarget
	want := strings.Split("a b c d e f g h", " ")
	s.addNames(want[:3]...)
	s.addNames(want[3:]...)
	if diff := cmp.Diff(want, s.names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// FuzzLastWord holds the quick way to a name's last word against the thorough one.
func FuzzLastWord(f *testing.F) {
	for _, s := range []string{"", "path", "filePath", "file_path", "FILE-PATH", "aPATH", "path2Dir", "Path ", "__",
		"x.É", "HTTPDir", "dirA", "the source", "saveAs", "FILE_NAME2",
		"a_very_long_word_that_is_longer_than_any_file"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		want := ""
		for _, word := range nameWords(name) {
			want = word
		}
		if got, _ := lastWord(name); isASCII(name) && foldArgumentName(got) != want {
			t.Errorf("the last word of %q is %q, want %q", name, got, want)
		}
		if got := isPathName(name); got != policyIsPathName(lastWords(name)) {
			t.Errorf("%q names a path: %v", name, got)
		}
	})
}

// TestIsPlain has each byte at each place of texts around the eight bytes that are looked at together, and beside each
// other byte.
func TestIsPlain(t *testing.T) {
	for size := range 19 {
		for at := range size {
			for c := range 256 {
				for _, other := range []byte{' ', 'a', 0x7f} {
					text := bytes.Repeat([]byte{other}, size)
					text[at] = byte(c)
					if want := c >= ' ' && c != '\\' && c < 0x80; isPlainASCII(string(text)) != want {
						t.Fatalf("%q is plain: %v", text, !want)
					}
				}
			}
		}
	}
	if !isPlainASCII("") {
		t.Error("nothing is not plain")
	}
}

// TestInvalidUTF8IsReported has bytes that are not UTF-8 where all else is wrong before, or well.
func TestInvalidUTF8IsReported(t *testing.T) {
	for text, want := range map[string]error{
		"{\"a\":\"\xff\"}": errNotUTF8, "{\"a\xff\":1}": errNotUTF8, "{\"a\":1,\"a\":2,\"b\":\"\xff\"}": errNotUTF8,
		"[\xff]": errNotUTF8, "{\"a\":1}\xff": errNotUTF8,
		"{\"a\":\xff}": errNotUTF8, "{\"b\":{\"c\":[\"\\n\xc3\"]}}": errNotUTF8,
		"{\"a\":1,\"a\":2}": errDuplicateArgument, "{\"a\":\"\\n\u00e9\"}": nil, "{\"a\":\"\u00e9\"}\u00e9": errNotJSON,
	} {
		if _, err := readOneMember([]byte(text), "a"); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

// FuzzSameName holds the quick way to compare names against the thorough one.
func FuzzSameName(f *testing.F) {
	for _, pair := range [][2]string{{"", ""}, {"Path", "pATH"}, {"K", "\u212a"}, {"cmd", "CMD"}, {"s", "\u017f"},
		{"a", "b"}, {"\u00e9", "\u00c9"}, {"\xff", "\xfe"}, {"command", "Command"}, {"[", "{"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if got, want := equalNames(a, b), foldArgumentName(a) == foldArgumentName(b); got != want {
			t.Errorf("%q and %q are the same: %v", a, b, got)
		}
		if got, want := isCommandName(a), foldArgumentName(a) == "command" ||
			foldArgumentName(a) == "cmd"; got != want {
			t.Errorf("%q names a command: %v", a, got)
		}
	})
}
