package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// A writer writes the members of a record. Their names come with all that stands around them: `,"kind":`.
type writer struct {
	dst   []byte
	rules *Rules
}

// add appends a text as it is. Inlined, it would make its callers three times as long: a call that finds none of this in the
// processor's cache waits for each line of it.
//
//go:noinline
func (w *writer) add(text string) { w.dst = append(w.dst, text...) }

// quoted appends text as a JSON string on one line; what is no UTF-8 becomes U+FFFD.
func (w *writer) quoted(text string) {
	if plain(text) == len(text) {
		w.dst = append(append(append(w.dst, '"'), text...), '"')
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always encodes
	w.dst = append(w.dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}

// plain gives how many bytes a text begins with that are ASCII and stand for themselves in a JSON string.
func plain(s string) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		// Each difference has the highest bit of the first byte set that is below ' ', '"', '\\'; what is not ASCII has it anyway.
		low, quote, slash := w-ones*' ', (w^ones*'"')-ones, (w^ones*'\\')-ones
		if (w|low|quote|slash)&(ones<<7) != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.add(name)
		w.quoted(clip(value))
	}
}

// veiled writes a text that callers or servers make up, URIs among them.
func (w *writer) veiled(name, value string) {
	if value != "" {
		value, _ := w.rules.text(value)
		w.text(name, value)
	}
}

func (w *writer) number(name string, value int64) {
	if value == 0 {
		return
	}
	w.add(name)
	if value < 0 {
		w.dst = strconv.AppendInt(w.dst, value, 10)
		return
	}
	var digits [20]byte
	i := len(digits)
	for rest := uint64(value); rest > 0; rest /= 10 {
		i--
		digits[i] = '0' + byte(rest%10)
	}
	w.add(string(digits[i:]))
}

// time writes a time as time.RFC3339Nano has it, in UTC. Each record has one, and to go by a layout costs ten times as much.
func (w *writer) time(name string, t time.Time) {
	w.add(name)
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		w.dst = append(t.AppendFormat(append(w.dst, '"'), time.RFC3339Nano), '"')
		return
	}
	hour, minute, second := t.Clock()
	start := len(w.dst)
	w.add(`"0000-00-00T00:00:00.000000000`)
	text := w.dst[start:]
	end := len(text)
	rest := uint(t.Nanosecond())
	for i := len(text) - 1; i > 0; i-- {
		switch text[i] {
		case '0':
			text[i] += byte(rest % 10)
			rest /= 10
		case '.':
			rest = uint(((((year*100+int(month))*100+day)*100+hour)*100+minute)*100 + second)
			for text[end-1] == '0' {
				end--
			}
			if end == i+1 { // no fraction
				end = i
			}
		}
	}
	w.dst = w.dst[:start+end]
	w.add(`Z"`)
}
