package shield

import "strings"

// A byteSet is a set of byte values.
type byteSet [4]uint64

// bytesOf returns the bytes that occur in a text.
func bytesOf(text string) (all byteSet) {
	for i := range len(text) {
		all[text[i]>>6] |= 1 << (text[i] & 63)
	}
	return all
}

// Has reports whether the set contains a byte.
func (b *byteSet) Has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }

// HasNonASCII reports whether the set contains a byte beyond ASCII.
func (b *byteSet) HasNonASCII() bool { return b[2]|b[3] != 0 }

// intersects reports whether the two sets have a common byte.
func (b *byteSet) intersects(others *byteSet) bool {
	return b[0]&others[0]|b[1]&others[1]|b[2]&others[2]|b[3]&others[3] != 0
}

// hasRunOf reports whether a text has n successive bytes that each belong to one of the classes in of, see codeClasses.
// A run of n bytes always covers an index that is a multiple of n, so only the bytes around these indices are examined.
func hasRunOf(text string, of uint8, n int) bool {
	for at := 0; at < len(text); at += n {
		from, to := at, at
		for to < len(text) && to < at+n && codeClasses[text[to]]&of != 0 {
			to++
		}
		for from > 0 && to > at && to-from < n && codeClasses[text[from-1]]&of != 0 {
			from--
		}
		if to-from >= n {
			return true
		}
	}
	return false
}

// mayBeInPieces reports whether several successive words of a text may be the pieces of one Base64 code. It is a fast
// filter before decodeChunkedBase64, and may return true for ordinary text.
func mayBeInPieces(text string) bool {
	n, odd := 0, 0 // odd counts the pieces with an upper-case letter or digit after the first byte
	for i := 0; i < len(text); i++ {
		at, first, all := i, codeClasses[text[i]], uint8(0)
		if first&codeWhite != 0 {
			continue
		}
		for i++; i < len(text); i++ {
			is := codeClasses[text[i]]
			if is&codeWhite != 0 {
				break
			}
			all |= is
		}
		size, filled := i-at, text[i-1] == '='
		if size < minPieceLength && !filled || (first|all)&codeOther != 0 && (size > minPieceLength || !filled) {
			n, odd = 0, 0
			continue
		}
		if n++; all&codeOdd != 0 {
			odd++
		}
		if n >= minPieces && odd*2 >= minPieces {
			return true
		}
	}
	return false
}

// containsFold reports whether an ASCII text contains a word, ignoring case. The word must be in lower case.
func containsFold(text, word string) bool {
	for _, first := range [...]byte{word[0], upperASCII(word[0])} {
		for rest := text; ; rest = rest[1:] {
			at := strings.IndexByte(rest, first)
			if at < 0 {
				break
			}
			if rest = rest[at:]; len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
				return true
			}
		}
	}
	return false
}

func upperASCII(b byte) byte {
	if 'a' <= b && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}
