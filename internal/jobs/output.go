package jobs

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// The bytes of a stream that are kept: its beginning, and its end.
const (
	keptHead = 32 << 10
	keptTail = 256 << 10
)

// An Output keeps the beginning and the end of a stream, and counts its bytes. It is safe for concurrent use; the zero
// value is empty.
type Output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring from keptTail bytes on, whose first byte is at total % keptTail
	total int64
}

// Write adds bytes. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	if room := keptHead - len(o.head); room > 0 {
		o.head = append(o.head, p[:min(room, n)]...)
	}
	if over := len(p) - keptTail; over > 0 {
		p, o.total = p[over:], o.total+int64(over)
		o.tail = append(o.tail[:0], make([]byte, keptTail)...)
	}
	for len(p) > 0 {
		at := int(o.total % keptTail)
		part := p[:min(len(p), keptTail-at)]
		if len(o.tail) < keptTail {
			o.tail = append(o.tail[:at], part...)
		} else {
			copy(o.tail[at:], part)
		}
		p, o.total = p[len(part):], o.total+int64(len(part))
	}
	return n, nil
}

// Size returns the number of bytes of the stream.
func (o *Output) Size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// kept returns the end of the stream that is kept. It needs mu.
func (o *Output) kept() []byte {
	if o.total <= keptTail {
		return o.tail[:o.total]
	}
	at := int(o.total % keptTail)
	return append(o.tail[at:len(o.tail):len(o.tail)], o.tail[:at]...)
}

// Text returns the stream as a text of about at most ceiling bytes. A longer stream is cut in its middle, where a line
// says how many bytes are left out.
func (o *Output) Text(ceiling int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.kept()
	if o.total <= int64(min(ceiling, keptTail)) {
		return validText(tail)
	}
	head := o.head[:min(len(o.head), ceiling/2)]
	tail = tail[max(0, len(tail)-(ceiling-len(head))):]
	head, tail = wholeRunes(head, tail)
	elided := o.total - int64(len(head)) - int64(len(tail))
	return validText(head) + fmt.Sprintf("\n[%d bytes elided to stay within the output ceiling]\n", elided) + validText(tail)
}

// From returns what follows the byte numbered cursor, as far as it is kept, at most the last window bytes; the number of
// bytes between that are left out; and the number of the byte that comes next.
func (o *Output) From(cursor int64, window int) (text string, elided, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.kept()
	cursor = min(max(cursor, 0), o.total)
	if fresh := int(min(o.total-cursor, int64(len(tail)), int64(window))); fresh < len(tail) {
		tail = tail[len(tail)-fresh:]
	}
	_, tail = wholeRunes(nil, tail)
	return validText(tail), o.total - cursor - int64(len(tail)), o.total
}

// LastLines returns the last n lines of the stream, as far as they are kept.
func (o *Output) LastLines(n int) []string {
	o.mu.Lock()
	text := validText(o.kept())
	o.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}

// wholeRunes drops the part of a character at the end of head, and at the beginning of tail.
func wholeRunes(head, tail []byte) (h, t []byte) {
	for cut := 1; cut <= min(utf8.UTFMax-1, len(head)); cut++ {
		if b := head[len(head)-cut]; utf8.RuneStart(b) {
			if !utf8.FullRune(head[len(head)-cut:]) {
				head = head[:len(head)-cut]
			}
			break
		}
	}
	for cut := 0; cut < min(utf8.UTFMax, len(tail)); cut++ {
		if utf8.RuneStart(tail[cut]) {
			tail = tail[cut:]
			break
		}
	}
	return head, tail
}

func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
