package manners

import (
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// seen gives JSON that says the same, and shows all that it says: what cannot be seen, or would act on a terminal, stands there as
// its code point. Such characters are in texts only, where JSON takes an escape for them.
func seen(text []byte) []byte {
	var out []byte
	copied := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if unseen(r) || r == utf8.RuneError && size == 1 {
			out = append(out, text[copied:i]...)
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			copied = i + size
		}
		i += size
	}
	if out == nil {
		return text
	}
	return append(out, text[copied:]...)
}

// unseen says whether a character leaves nothing to be seen, or has not been defined. Those of JSON's own, between its texts, are seen.
func unseen(r rune) bool {
	const blank = '\u2800' // a Braille cell without dots
	switch {
	case r < utf8.RuneSelf:
		return r == 0x7f
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector), r == blank:
		return true
	}
	return !unicode.IsPrint(r)
}
