package injection

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes has, for each letter, the letters of other alphabets that are drawn like it, and those of its own that
// have no decomposition. It is for matching only: no text is ever given out with letters changed.
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

// letterWithoutDecomposition are letters that have no decomposition, and are folded whatever stands beside them, since
// people leave them out.
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

// A wordFolder folds words for matching.
type wordFolder struct {
	drawn map[rune]string
	leet  [256]byte // 0 for bytes that stand for no letter
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

// foldWord returns a word in lower case, compatibility forms and accents undone.
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

// unencloseLetter undoes the letters in circles and squares that have no compatibility form.
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

// readAsLatin reads a folded word as one of Latin letters, if each of its letters is drawn like one.
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

// readLeet reads a word whose letters are in part digits and signs; ok reports whether there were both.
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

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mixesAlphabets reports whether a word mixes Latin letters with letters of another alphabet that are drawn like Latin
// ones, more than once back and forth or within: what no language does.
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
