package jobs

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// keptHead and keptTail are the numbers of bytes that an Output stores from the beginning and from the end of a stream.
const (
	keptHead = 32 << 10
	keptTail = 256 << 10
)

// An Output receives the output of a command as a stream of bytes. Of a long stream it stores only the beginning and
// the end. It is safe for concurrent use. The zero value is an empty stream.
type Output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // when it has keptTail bytes, it is a ring buffer whose oldest byte is at total % keptTail
	total int64
}

// Write appends bytes to the stream. It never returns an error.
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

// Size returns the number of bytes that were written to the stream, including bytes that are not stored.
func (o *Output) Size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// kept returns the last keptTail bytes of the stream, or all bytes of a shorter stream. The caller must hold mu.
func (o *Output) kept() []byte {
	if o.total <= keptTail {
		return o.tail[:o.total]
	}
	at := int(o.total % keptTail)
	return append(o.tail[at:len(o.tail):len(o.tail)], o.tail[:at]...)
}

// Text returns the stream as a text of about ceiling bytes at most. From a longer stream the middle is omitted. In its
// place, the text has a line with the number of omitted bytes.
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

// From returns the bytes of the stream after the first cursor bytes, so that repeated calls return only new output. If
// these are more than window bytes, or some of them are not stored any more, it returns only the last of them. elided
// is the number of bytes between cursor and text that are omitted. next is the cursor for the next call, which is the
// size of the stream.
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

// LastLines returns the last n lines of the stream, or fewer if the stored end of the stream has fewer lines.
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

// wholeRunes returns head without an incomplete UTF-8 character at its end, and tail without an incomplete character at
// its beginning.
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
