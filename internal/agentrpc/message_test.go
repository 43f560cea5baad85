package agentrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzReadMessages reads any input. No line may be longer than the limit, no line may be lost, and a message that was
// accepted must be read again as the same message.
func FuzzReadMessages(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"abort"}` + "\n\r\n" + `{"jsonrpc":"2.0","id":"x","result":null}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","params":[1]}`, `{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}`,
		"[]\n1\n\"x\"\n{}\n", strings.Repeat("a", 200) + "\n{}", "\xff\n\ufeff{}\n", `{"id":[],"method":{}}`,
		`{"jsonrpc":"2.0","method":"a","id":1,"id":{}}`, `{"jsonrpc":"2.0","method":"\u2028"}`,
	} {
		f.Add([]byte(seed), uint8(64))
	}
	f.Fuzz(func(t *testing.T, input []byte, size uint8) {
		limit := int(size)
		r := lineReader{bufio.NewReaderSize(iotest.HalfReader(bytes.NewReader(input)), 16), limit}
		lines := 0
		for {
			line, err := r.read()
			if errors.Is(err, io.EOF) {
				break
			}
			lines++
			if errors.Is(err, errLineTooLong) {
				continue
			}
			if err != nil || len(line) == 0 || len(line) > limit+1 || bytes.ContainsRune(line, '\n') {
				t.Fatalf("read %q, %v with the limit %d", line, err, limit)
			}
			checkMessage(t, line)
		}
		want := 0
		for l := range bytes.SplitSeq(input, []byte("\n")) {
			if len(bytes.TrimSpace(l)) > 0 || len(l) > limit {
				want++
			}
		}
		if lines > want {
			t.Errorf("%d lines of %q, want at most %d", lines, input, want)
		}
	})
}

// checkMessage checks that a message can be written and read again.
func checkMessage(t *testing.T, line []byte) {
	m, problem := parseMessage(line)
	if problem != nil {
		return
	}
	if m.Version != "2.0" || m.Method == "" && m.ID == nil {
		t.Fatalf("%q was accepted as %+v", line, m)
	}
	again, err := encodeLine(m)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if i := bytes.IndexByte(again, '\n'); i != len(again)-1 || bytes.ContainsAny(again, "\u2028\u2029") {
		t.Fatalf("%q is not one line", again)
	}
	n, problem := parseMessage(bytes.TrimSpace(again))
	if problem != nil || n.Method != m.Method || !sameJSON(n.ID, m.ID) {
		t.Fatalf("%q was read as %+v, then as %+v, %v", line, m, n, problem)
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return len(a) == 0 && len(b) == 0 || json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x == y
}

// TestReadLongLine reads a line of the maximum size, a longer one, and the next.
func TestReadLongLine(t *testing.T) {
	long := strings.Repeat("a", maxLine)
	r := lineReader{bufio.NewReaderSize(strings.NewReader(long+"\n"+long+"ab\nnext"), 64<<10), maxLine}
	if line, err := r.read(); err != nil || len(line) != maxLine {
		t.Errorf("a line of the maximum size: %d bytes, %v", len(line), err)
	}
	if _, err := r.read(); !errors.Is(err, errLineTooLong) {
		t.Errorf("a longer line: %v", err)
	}
	if line, err := r.read(); err != nil || string(line) != "next" {
		t.Errorf("the next line: %q, %v", line, err)
	}
	if _, err := r.read(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}
