package shield

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes lists, for each Latin letter, the characters that look like it: letters of other alphabets, and Latin
// letters that Unicode normalization does not decompose. The table is only used to match words. Drawbridge does not
// change letters in the text that it passes on.
var lookalikes = []struct {
	letter string
	drawn  string
}{
	{"a", "аɑαᴀ𐊠ᎪꓮАΑạɐꭺ"}, {"b", "ЬʙвВΒᏴꓐᏏƄɓҍꮟ"}, {"c", "сϲᴄСϹᏟꓚⅽᑕꮯƈ"}, {"d", "ԁᴅđðᎠꓓⅾɖɗᗞժꭰ"},
	{"e", "еєҽᴇεЕΕᎬꓰℯɛǝəꭼҿ"}, {"f", "ẝꓝϜғſƒքꞙ"}, {"g", "ɡցɢԌᏀꓖɠᶃǥꮐ"}, {"h", "һհʜНΗᎻꓧɦнԋհꮋħ"}, {"i", "іıɪιІΙӏꙇᎥⅰɩ¡ӀꭵƗɨ"},
	{"j", "јϳᴊЈᎫꓙȷʝꭻյ"}, {"k", "кκᴋКΚᏦꓗĸƙҝꮶ"}, {"l", "ⅼʟꓡᏞӀłɭℓƖǀꮮլ"}, {"m", "мᴍМΜᎷꓟⅿɱꮇ"}, {"n", "ոпɴΝꓠηռИиŋɲƞп"},
	{"o", "оοօᴏОΟøσөӨՕꓳɵ"}, {"p", "рρᴘРΡᏢꓑⲣƿꮲ"}, {"q", "ԛգզʠ"}, {"r", "гʀᎡꓣɾɼɽꭇᴦꮁя"},
	{"s", "ѕʂꜱЅᏚꓢՏƽꮪ"}, {"t", "тτᴛТΤᎢꓔŧƭꭲ"}, {"u", "υսᴜՍꓴʋцμ"}, {"v", "ѵνᴠѴᏙꓦⅴꮩ"}, {"w", "ԝѡաᴡᎳꓪωшɯ"},
	{"x", "хχХΧꓫⅹ×"}, {"y", "уγүʏУΥҮꓬƴყ"}, {"z", "ᴢΖᏃꓜʐƶʑꮓ"}, {"ae", "æǽ"}, {"oe", "œ"}, {"ss", "ß"}, {"th", "þ"},
}

// letterWithoutDecomposition returns the plain spelling of a letter that Unicode normalization does not decompose, for
// example "o" for "ø". It returns "" for other letters. These letters are replaced in every word, because people often
// type the plain letter instead.
func letterWithoutDecomposition(r rune) string {
	switch r {
	case 'ø':
		return "o"
	case 'đ', 'ð':
		return "d"
	case 'ł':
		return "l"
	case 'ı':
		return "i"
	case 'ß':
		return "ss"
	case 'æ':
		return "ae"
	case 'œ':
		return "oe"
	case 'ə':
		return "e"
	case 'þ':
		return "th"
	case 'ي', 'ى':
		return "ی"
	case 'ك':
		return "ک"
	case 'ة':
		return "ه"
	}
	return ""
}

// A wordFolder translates disguised words to plain Latin letters: lookalike letters of other alphabets, and digits or
// signs used as letters.
type wordFolder struct {
	drawn map[rune]string
	leet  [256]byte // 0 for a byte that does not stand for a letter
}

func newWordFolder() *wordFolder {
	f := &wordFolder{drawn: map[rune]string{}, leet: [256]byte{'0': 'o', '1': 'i', '3': 'e', '4': 'a', '5': 's',
		'7': 't', '8': 'b', '9': 'g', '@': 'a', '$': 's', '!': 'i', '|': 'l'}}
	for _, l := range lookalikes {
		for _, r := range l.drawn {
			if _, ok := f.drawn[r]; !ok {
				f.drawn[r] = l.letter
			}
		}
	}
	return f
}

// foldWord returns the word in lower case, without accents, invisible characters and Unicode compatibility forms (for
// example full-width letters).
func foldWord(word string) string {
	if isASCII(word) {
		return strings.ToLower(word)
	}
	var b strings.Builder
	b.Grow(len(word))
	for _, r := range norm.NFKD.String(strings.Map(unencloseLetter, word)) {
		switch {
		case isGenericMark(r) && r >= 0x0300, r >= 0x064B && r <= 0x065F, r == 0x0670, r == 0x0640, isInvisible(r):
			continue
		case r < utf8.RuneSelf:
			b.WriteByte(byte(unicode.ToLower(r)))
		default:
			r = unicode.ToLower(r)
			if s := letterWithoutDecomposition(r); s != "" {
				b.WriteString(s)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// unencloseLetter returns the plain letter for a letter in a circle or square that has no Unicode compatibility form.
// It returns every other rune unchanged.
func unencloseLetter(r rune) rune {
	switch {
	case r >= 0x1F150 && r <= 0x1F169:
		return r - 0x1F150 + 'a'
	case r >= 0x1F170 && r <= 0x1F189:
		return r - 0x1F170 + 'a'
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		return r - 0x1F1E6 + 'a'
	}
	return r
}

// readAsLatin replaces the lookalike letters of a folded word by Latin letters. It returns the word unchanged and false
// if the word is plain ASCII, or has a letter that does not look like a Latin letter.
func (f *wordFolder) readAsLatin(word string) (string, bool) {
	if isASCII(word) {
		return word, false
	}
	var b strings.Builder
	for _, r := range word {
		s, ok := f.drawn[r]
		switch {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case ok:
			b.WriteString(s)
		default:
			return word, false
		}
	}
	return b.String(), true
}

// readLeet replaces the digits and signs of a word by the letters they stand for, for example "3" by "e"
// ("leetspeak"). It reports whether the word had both letters and such signs.
func (f *wordFolder) readLeet(word string) (string, bool) {
	letters, signs := 0, 0
	out := []byte(word)
	for i, b := range out {
		if l := f.leet[b]; l != 0 {
			out[i] = l
			signs++
		} else if b >= 'a' && b <= 'z' {
			letters++
		} else {
			return word, false
		}
	}
	return string(out), signs > 0 && letters > 0
}

// isASCII reports whether a text is ASCII.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mixesAlphabets reports whether a word mixes Latin letters with lookalike letters of another alphabet in a way that no
// language does. Either the alphabet changes at least twice, or a Latin word contains one or two foreign letters.
func (f *wordFolder) mixesAlphabets(word string) bool {
	turns, latin, other, last := 0, 0, 0, 0
	for _, r := range word {
		kind := 0
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			kind, latin = 1, latin+1
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Lisu):
			if _, ok := f.drawn[r]; !ok {
				return false
			}
			kind, other = 2, other+1
		default:
			continue
		}
		if last != 0 && kind != last {
			turns++
		}
		last = kind
	}
	return latin+other >= 4 && latin >= 1 && other >= 1 && (turns >= 2 || latin >= 2 && other <= 2 && latin+other >= 5)
}
