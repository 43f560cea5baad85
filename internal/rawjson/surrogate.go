package rawjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendDecoded appends the text of raw, a valid JSON string without its quotes. JSON can escape a lone surrogate, but
// UTF-8 cannot encode it; it becomes the three bytes that UTF-8 would use for its code point. These bytes sort like
// code points and never occur in valid UTF-8.
func appendDecoded(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			unit := hex4(raw[i+1:])
			i += 4
			if !utf16.IsSurrogate(unit) {
				dst = utf8.AppendRune(dst, unit)
				break
			}
			if len(raw) > i+6 && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if pair := utf16.DecodeRune(unit, hex4(raw[i+3:])); pair != utf8.RuneError {
					dst = utf8.AppendRune(dst, pair)
					i += 6
					break
				}
			}
			dst = append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// hex4 parses the four hexadecimal digits at the start of b.
func hex4(b []byte) (unit rune) {
	for _, c := range b[:4] {
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		unit = unit<<4 | rune(c)
	}
	return unit
}

// AppendStringified appends text as a JSON string, in the form that JavaScript's JSON.stringify writes.
func AppendStringified(dst []byte, text string) []byte { return appendStringified(dst, []byte(text)) }

// appendStringified appends text, decoded by appendDecoded, as a JSON string with only the escapes that JSON.stringify
// writes.
func appendStringified(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0 // text[plain:i] needs no escape
	for i := 0; i < len(text); i++ {
		c := text[i]
		lone := c == 0xED && i+2 < len(text) && text[i+1] >= 0xA0 // a lone surrogate, see appendDecoded
		if c >= ' ' && c != '"' && c != '\\' && !lone {
			continue
		}
		dst = append(dst, text[plain:i]...)
		switch {
		case lone:
			unit := 0xD000 | uint16(text[i+1]&0x3F)<<6 | uint16(text[i+2]&0x3F)
			dst = append(dst, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
			i += 2
		case c >= ' ':
			dst = append(dst, '\\', c)
		case c >= '\b' && c <= '\r' && c != '\v':
			dst = append(dst, '\\', "btn.fr"[c-'\b'])
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		plain = i + 1
	}
	return append(append(dst, text[plain:]...), '"')
}
