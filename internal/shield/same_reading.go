package shield

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// sameReading reports whether two texts are equal except for differences in style. Such differences are white space,
// the case at the beginning of a sentence, and a final full stop or exclamation mark. Typographic quotes and dashes,
// list bullets, bold and backticks are such differences too.
func sameReading(before, after string) bool {
	before, after = plainReading(before), plainReading(after)
	// Lists are also compared without bullets: a list may have become one line.
	return slices.EqualFunc(proseWords(before), proseWords(after), proseWord.readsSameAs) ||
		slices.EqualFunc(proseWords(listBullet().ReplaceAllString(before, "$1")),
			proseWords(listBullet().ReplaceAllString(after, "$1")), proseWord.readsSameAs)
}

// plainTypography replaces typographic quotes, dashes and ellipses by their ASCII forms, and "\r" line ends by "\n".
var plainTypography = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(
		"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "‛", "'",
		"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...", "\r\n", "\n", "\r", "\n",
	)
})

var (
	// listBullet matches the bullet of a list item. It does not match "-" before a number, which may be a minus sign.
	listBullet = lazyregexp.New("(?m)^[ \t]*[-*+•◦‣·▪][ \t]+([\\p{L}`*_\"'(\\[])")
	// boldText matches text between double stars. It does not match stars that may belong to a path or a wildcard.
	boldText = lazyregexp.New("(^|[\\s(])\\*\\*([\\p{L}`](?:[^*\\n/\\\\]*[^*\\s/\\\\])?)\\*\\*($|[\\s)]|[.,:;!?](?:\\s|$))")
	// stressedWords matches words between stars or underscores, if they are words that writers often emphasize and not
	// file names. A star at any other word may be a wildcard.
	stressedWords = lazyregexp.New(`(^|[\s(])(?:\*(` + stressWords + `)\*|_(` + stressWords +
		`)_)($|[\s)]|[.,:;!?](?:\s|$))`)
	backticks = lazyregexp.New("`+")
)

const (
	stressWord  = `(?i:not|no|never|only|always|must|do|don't|cannot|should|may|before|after|and|or|both|each|every|required|optional|note|important|warning)`
	stressWords = stressWord + `(?: ` + stressWord + `)*`
)

// plainReading returns a text in canonical form, with ASCII quotes and dashes and without marks of emphasis.
func plainReading(text string) string {
	text, _ = CanonicalText(text)
	text = plainTypography().Replace(text)
	for range 2 { // twice, since two neighbours share the blank between them
		text = boldText().ReplaceAllString(text, "$1$2$3")
		text = stressedWords().ReplaceAllString(text, "$1$2$3$4")
	}
	return trimBetweenScripts(withoutBackticks(text)) // last, since stars within backticks or quotes are wildcards
}

// withoutBackticks removes backticks, except those that separate two words.
func withoutBackticks(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range backticks().FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		after, _ := utf8.DecodeRuneInString(text[m[1]:])
		if isLetterOrNumber(before) && isLetterOrNumber(after) {
			b.WriteString(text[m[0]:m[1]])
		}
	}
	return b.String() + text[at:]
}

// trimBetweenScripts removes spaces between an ideograph or kana and an ASCII letter or digit. Such spaces are optional
// in these scripts.
func trimBetweenScripts(text string) string {
	latin := func(r rune) bool { return r < utf8.RuneSelf && isLetterOrNumber(r) }
	ideograph := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }
	if !strings.ContainsFunc(text, ideograph) {
		return text
	}
	runes := []rune(text)
	out := make([]rune, 0, len(runes))
	for i := 0; i < len(runes); i++ {
		end := i
		for end < len(runes) && runes[end] == ' ' {
			end++
		}
		if end > i && len(out) > 0 && end < len(runes) {
			if last, next := out[len(out)-1], runes[end]; latin(last) && ideograph(next) ||
				ideograph(last) && latin(next) {
				i = end
			}
		}
		out = append(out, runes[i])
	}
	return string(out)
}

func isLetterOrNumber(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A proseWord is a word of a text, including punctuation next to it, up to white space.
type proseWord struct {
	text string
	// begins reports whether the word is the first of a sentence or a line.
	begins bool
}

// readsSameAs reports whether two words are equal. If both words begin a sentence, the case of the first letter is
// ignored.
func (w proseWord) readsSameAs(v proseWord) bool {
	return w.text == v.text || w.begins && v.begins && withoutCapital(w.text) == withoutCapital(v.text)
}

// withoutCapital returns a word with its first letter in lower case, if the word has only letters. A word with other
// characters inside may be a name, and is returned unchanged.
func withoutCapital(word string) string {
	bare := strings.Trim(word, `"'(),;:.!?`)
	if bare == "" || strings.ContainsFunc(bare, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		return word
	}
	r, size := utf8.DecodeRuneInString(bare)
	at := strings.Index(word, bare)
	return word[:at] + string(unicode.ToLower(r)) + word[at+size:]
}

// proseWords splits a text into words at white space. It removes the final stop of the last word. A dash of several
// hyphens becomes one hyphen.
func proseWords(text string) (all []proseWord) {
	begins := true
	for line := range strings.Lines(text) {
		begins = true
		for _, field := range strings.Fields(line) {
			if strings.Trim(field, "-") == "" {
				field = "-" // a dash may be typed as several hyphens
			}
			all = append(all, proseWord{field, begins})
			begins = strings.ContainsAny(field[len(field)-1:], ".!?:") || begins && (field == "-" || field == "*" ||
				field == "+" || field == "•")
		}
	}
	if n := len(all); n > 0 {
		all[n-1].text = withoutFinalStop(all[n-1].text)
	}
	return all
}

// withoutFinalStop removes a full stop or exclamation mark from the end of a word. The mark is removed only after a
// letter, digit, bracket, quote or "%". After another character it may be part of a path or an ellipsis.
func withoutFinalStop(word string) string {
	stop, size := utf8.DecodeLastRuneInString(word)
	bare := word[:len(word)-size]
	last, _ := utf8.DecodeLastRuneInString(bare)
	if strings.ContainsRune(".!。！", stop) && (isLetterOrNumber(last) || unicode.IsMark(last) ||
		strings.ContainsRune(`)]"'%`, last)) {
		return bare
	}
	return word
}

// titleSaysName reports whether a title has exactly the words of the name of the titled object. The title may also end
// with a word that schema libraries add, such as "arguments".
func titleSaysName(title, name string) bool {
	rest, ok := strings.CutPrefix(lowerLettersOnly(title), lowerLettersOnly(name))
	return ok && name != "" && slices.Contains([]string{"", "arguments", "args", "input", "output", "result"}, rest) &&
		!strings.ContainsFunc(title, func(r rune) bool {
			return !isLetterOrNumber(r) && !unicode.IsMark(r) && r != ' ' &&
				r != '_' && r != '-'
		})
}

// lowerLettersOnly returns the letters and digits of a text, in lower case.
func lowerLettersOnly(text string) string {
	return strings.Map(func(r rune) rune {
		if isLetterOrNumber(r) || unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// oneMoreNoun matches text that was appended to a title and names one more thing, in one or two words: " or pull
// request".
var oneMoreNoun = lazyregexp.New(`^(?: or |/)([A-Za-z]+)(?: ([A-Za-z]+))?$`)

// riskyWords are words that change the meaning of a title when added: actions, quantities, secrets, and root
// directories.
var riskyWords = sync.OnceValue(func() map[string]bool {
	return wordSet(`delete deletes remove erase wipe drop destroy purge truncate clear clean reset kill stop shred trash discard revert
		send upload post email mail forward share publish export transfer pay buy sell order leak copy sync import fetch download
		execute run exec eval invoke call shell write overwrite edit change modify replace rename move install uninstall format grant revoke allow deny
		enable disable bypass ignore override skip force approve merge deploy sign login impersonate read access steal
		all any anything every everything everyone whole entire not no never none without only must always instead else other others
		secret secrets password passwords passphrase token tokens key keys credential credentials private root sudo admin system disk disks drive
		home database databases account accounts tmp temp etc usr var bin dev proc sys opt mnt lib`)
})

// addsOneNoun reports whether the title after equals the title before with one more noun: "issue" becomes "issue or
// pull request".
func addsOneNoun(before, after string) bool {
	rest, ok := strings.CutPrefix(after, before)
	m := oneMoreNoun().FindStringSubmatch(rest)
	return ok && before != "" && m != nil && !riskyWords()[strings.ToLower(m[1])] && !riskyWords()[strings.ToLower(m[2])]
}

// wordSet returns the set of the words in a text.
func wordSet(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}
