package shield

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"html"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A decodedText is a part of a text that is encoded, for example in Base64, together with its decoded form.
type decodedText struct {
	// How is the name of the encoding, for a message to people. Text is the decoded text.
	How, Text string
	// At and End are the byte offsets of the encoded part in the original text.
	At, End int
}

// maxDecoded is the maximum number of encoded parts that one decoder returns for a text. minCode is the minimum length
// of an encoded part, in characters.
const (
	maxDecoded = 64
	minCode    = 16
)

// decodeAll finds the encoded parts of a text and returns each with its decoded form, so that an instruction cannot
// hide in an encoding. It knows Base64, Base32, Base85, hexadecimal, binary digits, decimal character codes, percent
// and other escapes, HTML entities, Morse, Braille and the NATO radio alphabet ("alfa bravo"). The set of bytes
// that occur in the text is passed as has. A decoder whose typical bytes are missing is skipped.
func decodeAll(text string, has *byteSet) (found []decodedText) {
	if len(text) < 12 { // the shortest code: four escapes of three bytes
		return nil
	}
	if hasRunOf(text, codeCharacter, minCode) {
		found = decodeRuns(text)
	}
	if has.intersects(&writingLeads) {
		found = append(found, decodeEscapedWriting(text, has)...)
	}
	if has.intersects(&numberSpacers) && hasRunOf(text, codeDigit|codeGap, 2*minCode) {
		found = append(found, decodeNumbers(text)...)
	}
	// The byte set knows only the ASCII white space, but pieces may also be separated by white space outside ASCII.
	if has.HasNonASCII() || has.intersects(&pieceSpacers) && mayBeInPieces(text) {
		found = append(found, decodeChunkedBase64(text)...)
	}
	return append(found, decodeBrailleAndBase85(text, has)...)
}

// decodeEscapedWriting decodes a text in which single letters are written as escapes, for example "%41" or "\u0041".
// It returns one decodedText for each kind of escape that occurs often enough.
func decodeEscapedWriting(text string, has *byteSet) (found []decodedText) {
	for i := range escapeWritings {
		w := &escapeWritings[i]
		if !has.Has(w.sign[0]) || strings.Count(text, w.sign) < w.fewest {
			continue
		}
		if plain := w.undo(text); len(text)-len(plain) > max(2*w.fewest, len(text)/10) && utf8.ValidString(plain) {
			found = append(found, decodedText{w.how, plain, strings.Index(text, w.sign), len(text)})
		}
	}
	if has.Has('\\') && strings.Count(text, `\`) >= minCode {
		if plain := decodeOctals(text); plain != text && utf8.ValidString(plain) {
			found = append(found, decodedText{"escapes", plain, strings.IndexByte(text, '\\'), len(text)})
		}
	}
	return found
}

// writingLeads are the first bytes of the escapes in escapeWritings and of octal escapes. numberSpacers are the bytes
// that separate encoded numbers. pieceSpacers are the bytes that separate the pieces of chunked Base64.
var writingLeads, numberSpacers, pieceSpacers = bytesOf(`%\U=&`), bytesOf(codeGaps), bytesOf(" \n\t\r\v\f")

// escapeWritings lists the kinds of escapes that decodeEscapedWriting decodes. An escape starts with sign. A text is
// decoded only if it contains at least fewest signs. The function undo returns the text with its escapes decoded.
var escapeWritings = [...]struct {
	how, sign string
	fewest    int
	undo      func(string) string
}{
	{"percent escapes", "%", 4, func(s string) string { return decodeEscapes(s, '%', "", 2) }},
	{"escapes", `\x`, 4, func(s string) string { return decodeEscapes(s, '\\', "x", 2) }},
	{"escapes", `\u`, 4, func(s string) string { return decodeEscapes(s, '\\', "u", 4) }},
	{"escapes", "U+", 4, func(s string) string { return decodeEscapes(s, 'U', "+", 4) }},
	{"quoted-printable", "=", 4, func(s string) string { return decodeEscapes(softBreaks.Replace(s), '=', "", 2) }},
	{"entities", "&", 3, html.UnescapeString},
}

// softBreaks removes the soft line breaks of quoted-printable text: "=" at the end of a line.
var softBreaks = strings.NewReplacer("=\r\n", "", "=\n", "")

// decodeOctals returns the text with each octal escape, such as "\101", replaced by its byte.
func decodeOctals(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if v, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Chunked Base64 has at least minPieces pieces. Each piece but the last has at least minPieceLength characters.
const minPieces, minPieceLength = 4, 4

// decodeChunkedBase64 decodes Base64 that was cut into pieces with white space between them. At least half of the
// pieces must contain a digit or mix upper and lower case after the first letter, because words of prose rarely do.
func decodeChunkedBase64(text string) (found []decodedText) {
	start, stop, n, odd := 0, 0, 0, 0
	flush := func(end int) {
		if n >= minPieces && odd*2 >= n && len(found) < maxDecoded {
			pieces := strings.Fields(text[start:stop])
			// The first or the last piece may be an ordinary word next to the code, so each is also left out in turn.
			for _, p := range [][]string{pieces, pieces[1:], pieces[:n-1], pieces[1 : n-1]} {
				if how, plain := decodeRun(strings.TrimRight(strings.Join(p, ""), "=")); plain != "" {
					found = append(found, decodedText{how, plain, start, end})
					break
				}
			}
		}
		n, odd = 0, 0
	}
	for at, piece := range spaceFields(text) {
		code := len(piece) >= minPieceLength && areCodeBytes(strings.TrimRight(piece, "="))
		if !code && (n == 0 || len(piece) > minPieceLength || !strings.HasSuffix(piece, "=")) {
			flush(at)
			continue
		}
		if n == 0 {
			start = at
		}
		n++
		if isMixedCase(piece[1:]) {
			odd++
		}
		stop = at + len(piece)
	}
	flush(len(text))
	return found
}

// spaceFields iterates over the words of a text that are separated by white space. It yields the byte offset of each
// word and the word.
func spaceFields(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(text); {
			piece := text[at:]
			i := strings.IndexFunc(piece, unicode.IsSpace)
			if i == 0 {
				_, size := utf8.DecodeRuneInString(piece)
				at += size
				continue
			}
			if i > 0 {
				piece = piece[:i]
			}
			if !yield(at, piece) {
				return
			}
			at += len(piece)
		}
	}
}

// isMixedCase reports whether a piece contains a digit, or both lower-case and upper-case letters.
func isMixedCase(piece string) bool {
	small, large := false, false
	for i := range len(piece) {
		switch c := piece[i]; {
		case '0' <= c && c <= '9':
			return true
		case 'a' <= c && c <= 'z':
			small = true
		case 'A' <= c && c <= 'Z':
			large = true
		}
	}
	return small && large
}

// decodeRuns decodes each run of at least minCode characters that Base64, Base32 or hexadecimal can consist of.
func decodeRuns(text string) (found []decodedText) {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && isCodeByte(text[i]) {
			continue
		}
		if i-start >= minCode && len(found) < maxDecoded {
			if how, plain := decodeRun(text[start:i]); plain != "" {
				found = append(found, decodedText{how, plain, start, i})
			}
		}
		start = i + 1
	}
	return found
}

func areCodeBytes(text string) bool {
	for i := range len(text) {
		if !isCodeByte(text[i]) {
			return false
		}
	}
	return true
}

func isCodeByte(b byte) bool { return codeClasses[b]&codeCharacter != 0 }

// decodeRun decodes a run as hexadecimal, binary digits, Base64 (standard or URL alphabet) or Base32. It returns the
// name of the encoding and the decoded text, or two empty strings if no decoding is readable text.
func decodeRun(run string) (how, text string) {
	trimmed := strings.TrimPrefix(strings.TrimPrefix(run, "0x"), "0X")
	if len(trimmed)%2 == 0 && looksLikeHex(trimmed) && isHex(trimmed) {
		if b, err := hex.DecodeString(trimmed); err == nil && isReadable(string(b)) {
			return "hexadecimal", string(b)
		}
	}
	if isBits(trimmed) {
		return "bits", decodeBits8(trimmed)
	}
	enc := base64.RawStdEncoding
	if strings.IndexByte(run, '-') >= 0 || strings.IndexByte(run, '_') >= 0 {
		enc = base64.RawURLEncoding
	}
	if s := decodeBase64(enc, run); s != "" {
		return "Base64", s
	}
	if len(run)%4 == 1 { // the first character was a separator before the code
		if s := decodeBase64(enc, run[1:]); s != "" {
			return "Base64", s
		}
	}
	if len(run) >= 24 && !hasLowerCase(run) {
		if b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(run); err == nil &&
			isReadable(string(b)) {
			return "Base32", string(b)
		}
	}
	return "", ""
}

// decodeBase64 decodes a run with the given Base64 alphabet. It returns "" if the result is not readable text.
func decodeBase64(enc *base64.Encoding, run string) string {
	if !looksLikeBase64(enc, run) {
		return ""
	}
	b, err := enc.DecodeString(run)
	if err != nil || !isReadable(string(b)) {
		return ""
	}
	return string(b)
}

// probeLength is the number of characters that are decoded first as a cheap test. Most runs are not encoded text, and
// already the bytes that their first characters decode to are not readable.
const probeLength = 16

func looksLikeHex(run string) bool {
	var plain [probeLength / 2]byte
	n, err := hex.Decode(plain[:], []byte(run[:min(probeLength, len(run))]))
	return err == nil && looksReadable(plain[:n])
}

func looksLikeBase64(enc *base64.Encoding, run string) bool {
	var plain [probeLength]byte
	n, err := enc.Decode(plain[:], []byte(run[:min(probeLength, len(run)&^3)]))
	return err == nil && looksReadable(plain[:n])
}

// isBits reports whether a run consists of the digits 0 and 1 only.
func isBits(run string) bool {
	for i := range len(run) {
		if run[i]|1 != '1' {
			return false
		}
	}
	return true
}

func hasLowerCase(run string) bool {
	for i := range len(run) {
		if run[i] >= 'a' && run[i] <= 'z' {
			return true
		}
	}
	return false
}

// looksReadable reports whether b can be the beginning of a readable text. The last character of b may be incomplete.
func looksReadable(b []byte) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && utf8.FullRune(b) || isUnprintable(r) {
			return false
		}
		b = b[size:]
	}
	return true
}

func isUnprintable(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r >= 0x7F && r < 0xA0
}

func isHex(run string) bool {
	for i := range len(run) {
		if codeClasses[run[i]]&codeDigit == 0 {
			return false
		}
	}
	return true
}

// decodeBits8 decodes binary digits, eight for each byte. It returns "" if the result is not readable text.
func decodeBits8(run string) string {
	var b []byte
	for i := 0; i+8 <= len(run); i += 8 {
		n, err := strconv.ParseUint(run[i:i+8], 2, 8)
		if err != nil {
			return ""
		}
		b = append(b, byte(n))
	}
	if s := string(b); isReadable(s) {
		return s
	}
	return ""
}

// decodeEscapes returns the text with each escape decoded. An escape is the byte lead, then the string mark, then n
// hexadecimal digits. Two digits stand for a byte; more digits stand for a Unicode character.
func decodeEscapes(text string, lead byte, mark string, n int) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		digits := i + 1 + len(mark)
		if text[i] == lead && digits+n <= len(text) && text[i+1:digits] == mark {
			if v, err := strconv.ParseUint(text[digits:digits+n], 16, 32); err == nil {
				i = digits + n - 1
				switch after, size := lowSurrogate(text[i+1:], lead, mark, n); {
				case n == 2:
					b.WriteByte(byte(v))
				case size > 0 && utf16.IsSurrogate(rune(v)):
					b.WriteRune(utf16.DecodeRune(rune(v), after))
					i += size
				default:
					b.WriteRune(rune(v))
				}
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// lowSurrogate decodes the escape at the beginning of a text if it is the second half of a UTF-16 surrogate pair. It
// returns the surrogate and the length of the escape in bytes, or zeros for any other text.
func lowSurrogate(text string, lead byte, mark string, n int) (r rune, size int) {
	digits := 1 + len(mark)
	if n != 4 || len(text) < digits+n || text[0] != lead || text[1:digits] != mark {
		return 0, 0
	}
	v, err := strconv.ParseUint(text[digits:digits+n], 16, 32)
	if err != nil || v < 0xDC00 || v > 0xDFFF {
		return 0, 0
	}
	return rune(v), digits + n
}

// Classes of a byte, by its possible functions in an encoded text. A byte may belong to several classes.
const (
	codeDigit     uint8 = 1 << iota // a hexadecimal digit
	codeGap                         // a separator between two numbers
	codeCharacter                   // a character of Base64, in either alphabet
	codeOdd                         // an upper-case letter or a digit: rare inside a word of prose
	codeWhite                       // white space
	codeToken                       // anything but white space
	codeOther                       // neither a character of Base64 nor its padding "="
)

const codeGaps = " ,:-.x/\\"

// codeClasses maps each byte to the set of its classes.
var codeClasses = func() (of [256]uint8) {
	for i := range of {
		b := byte(i)
		capital, figure := 'A' <= b && b <= 'Z', '0' <= b && b <= '9'
		if figure || 'a' <= b|0x20 && b|0x20 <= 'f' {
			of[b] |= codeDigit
		}
		if strings.IndexByte(codeGaps, b) >= 0 {
			of[b] |= codeGap
		}
		if capital || figure {
			of[b] |= codeOdd
		}
		if capital || figure || 'a' <= b && b <= 'z' || strings.IndexByte("+/-_", b) >= 0 {
			of[b] |= codeCharacter
		} else if b != '=' {
			of[b] |= codeOther
		}
		if b < utf8.RuneSelf && unicode.IsSpace(rune(b)) {
			of[b] |= codeWhite
		} else {
			of[b] |= codeToken
		}
	}
	return of
}()

// minNumbers is the minimum number of encoded letters in a sequence that decodeNumbers decodes.
const minNumbers = 8

// decodeNumbers decodes texts that encode each letter separately, with separators between the letters: hexadecimal
// pairs, groups of eight binary digits, decimal character codes, and Morse.
func decodeNumbers(text string) (found []decodedText) {
	start, between := -1, 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && codeClasses[text[i]]&(codeDigit|codeGap) != 0 {
			if start < 0 {
				start, between = i, 0
			}
			if codeClasses[text[i]]&codeGap != 0 {
				between++
			}
			continue
		}
		if start >= 0 && i-start >= 2*minCode && between >= minNumbers-1 && len(found) < maxDecoded {
			if how, plain := decodeSpaced(text[start:i]); plain != "" {
				found = append(found, decodedText{how, plain, start, i})
			}
		}
		start = -1
	}
	return found
}

func decodeSpaced(run string) (how, text string) {
	if signals := longestRunOf(run, ".-/ "); len(signals) >= 2*minCode {
		return "Morse", decodeMorse(signals)
	}
	parts := strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune(codeGaps, r) })
	for _, base := range []struct {
		how       string
		base, len int
	}{{"hexadecimal", 16, 2}, {"bits", 2, 8}, {"numbers of characters", 10, 0}} {
		// A letter of the surrounding text may have been taken as the first or last number, so each is also left out
		// in turn.
		for _, p := range [][]string{parts, parts[min(1, len(parts)):], parts[:max(0, len(parts)-1)]} {
			if s := joinNumbers(p, base.base, base.len); s != "" {
				return base.how, s
			}
		}
	}
	return "", ""
}

// longestRunOf returns the longest part of a text that consists only of the given characters.
func longestRunOf(text, characters string) (longest string) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune(characters, r) }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

func joinNumbers(parts []string, base, size int) string {
	var b []byte
	for _, p := range parts {
		if p == "0" && base == 16 {
			continue
		}
		n, err := strconv.ParseUint(p, base, 16)
		if err != nil || size > 0 && len(p) != size || n > 0xFF {
			return ""
		}
		b = append(b, byte(n))
	}
	if s := string(b); len(b) >= minNumbers && isReadable(s) {
		return s
	}
	return ""
}

// morseCodes lists the Morse codes of the letters a to z, in this order.
const morseCodes = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."

func decodeMorse(run string) string {
	codes := strings.Fields(morseCodes)
	var b strings.Builder
	for _, w := range strings.FieldsFunc(strings.ReplaceAll(run, "  ", "/"), func(r rune) bool { return r == '/' }) {
		for c := range strings.FieldsSeq(w) {
			n := slices.Index(codes, c)
			if n < 0 {
				return ""
			}
			b.WriteByte('a' + byte(n))
		}
		b.WriteByte(' ')
	}
	if s := b.String(); isReadable(s) {
		return s
	}
	return ""
}

// reverseText returns the text with its characters in reverse order.
func reverseText(text string) string {
	r := []rune(text)
	slices.Reverse(r)
	return string(r)
}

// rot13 returns the text with each letter a to z and A to Z moved by 13 places in the alphabet (the ROT13 cipher).
func rot13(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, text)
}

// isReadable reports whether decoded bytes are likely to be text for a reader. They must be valid UTF-8 of at least
// four bytes without control characters, and at least 40 % of the characters must be letters, spaces or "/".
func isReadable(s string) bool {
	if len(s) < 4 || !utf8.ValidString(s) {
		return false
	}
	letters, all := 0, 0
	for _, r := range s {
		if isUnprintable(r) || r == utf8.RuneError {
			return false
		}
		if r >= 'a' && r <= 'z' || r == ' ' || r == '/' || r >= 'A' && r <= 'Z' || r > 0xBF {
			letters++
		}
		all++
	}
	return letters*10 >= all*4
}
