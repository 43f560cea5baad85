package shield

import ()

// carriesHiddenText reports whether r is an invisible character that attackers use to encode a hidden text.
func carriesHiddenText(r rune) bool {
	return r >= tagFirst && r <= 0xE01EF || r >= 0xFE00 && r <= 0xFE0F || r >= 0x200B && r <= 0x200F ||
		r >= 0x2060 && r <= 0x2064 ||
		r == byteOrderMark || r == 0x180E || r == softHyphen
}

// decodeInvisible decodes a run of invisible characters. Tag characters stand for ASCII letters, variation selectors
// stand for bytes, and two different characters stand for the bits 0 and 1. It returns "" if the result is not
// readable text.
func decodeInvisible(run string) string {
	if len(run) < 8 {
		return ""
	}
	var tags, octets []byte
	for _, r := range run {
		switch {
		case r > tagFirst+0x1F && r < tagLast:
			tags = append(tags, byte(r-tagFirst))
		case r >= 0xFE00 && r <= 0xFE0F:
			octets = append(octets, byte(r-0xFE00))
		case r >= 0xE0100 && r <= 0xE01EF:
			octets = append(octets, byte(r-0xE0100+16))
		}
	}
	if s := string(tags); isReadable(s) {
		return s
	}
	if s := string(octets); isReadable(s) {
		return s
	}
	return decodeBits(run)
}

// decodeBits decodes a run that uses two different characters as bits, eight for each byte. It tries both assignments
// of 0 and 1 to the two characters, and returns "" if neither yields readable text.
func decodeBits(run string) string {
	one := []rune(run)
	a, b := one[0], rune(0)
	for _, r := range one {
		if r != a && b == 0 {
			b = r
		}
	}
	for _, zero := range []rune{a, b} {
		var text []byte
		var value, n byte
		for _, r := range one {
			if r != a && r != b {
				continue
			}
			value <<= 1
			if r != zero {
				value |= 1
			}
			if n++; n == 8 {
				text, value, n = append(text, value), 0, 0
			}
		}
		if isReadable(string(text)) {
			return string(text)
		}
	}
	return ""
}
