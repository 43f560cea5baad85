package shield

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

// sameReading reports whether two texts differ in nothing that their meaning hangs on. All signs count, except for
// those that one writes in more ways: white space, the case of what begins a sentence, the full stop, or the mark of
// exclamation, at the end, typographic quotes and dashes, bullets of lists, bold and backticks.
func sameReading(before, after string) bool {
	before, after = plainReading(before), plainReading(after)
	// A list reads the same without its bullets, and with them in one line.
	return slices.EqualFunc(proseWords(before), proseWords(after), proseWord.readsSameAs) ||
		slices.EqualFunc(proseWords(listBullet().ReplaceAllString(before, "$1")),
			proseWords(listBullet().ReplaceAllString(after, "$1")), proseWord.readsSameAs)
}

// plainTypography writes with plain signs what typography writes with its own.
var plainTypography = strings.NewReplacer(
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "‛", "'",
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...", "\r\n", "\n", "\r", "\n",
)

var (
	// listBullet begins an entry of a list. Before a number it may be a sign.
	listBullet = lazyRegexp("(?m)^[ \t]*[-*+•◦‣·▪][ \t]+([\\p{L}`*_\"'(\\[])")
	// boldText is a stretch between doubled stars that can be no path and no wildcard.
	boldText = lazyRegexp("(^|[\\s(])\\*\\*([\\p{L}`](?:[^*\\n/\\\\]*[^*\\s/\\\\])?)\\*\\*($|[\\s)]|[.,:;!?](?:\\s|$))")
	// stressedWords are words that one stresses and calls no file by: a star at any other word may be a wildcard.
	stressedWords = lazyRegexp(`(^|[\s(])(?:\*(` + stressWords + `)\*|_(` + stressWords +
		`)_)($|[\s)]|[.,:;!?](?:\s|$))`)
	backticks = lazyRegexp("`+")
)

const (
	stressWord  = `(?i:not|no|never|only|always|must|do|don't|cannot|should|may|before|after|and|or|both|each|every|required|optional|note|important|warning)`
	stressWords = stressWord + `(?: ` + stressWord + `)*`
)

// plainReading returns a text in its canonical form, with plain signs and without what stresses words.
func plainReading(text string) string {
	text, _ = injection.CanonicalText(text)
	text = plainTypography.Replace(text)
	for range 2 { // two that stand side by side share the blank between them
		text = boldText().ReplaceAllString(text, "$1$2$3")
		text = stressedWords().ReplaceAllString(text, "$1$2$3$4")
	}
	return trimBetweenScripts(withoutBackticks(text)) // last: stars within backticks or quotes are wildcards
}

// withoutBackticks takes the backticks away, except for those that part two words.
func withoutBackticks(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range backticks().FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		after, _ := utf8.DecodeRuneInString(text[m[1]:])
		if isWordRune(before) && isWordRune(after) {
			b.WriteString(text[m[0]:m[1]])
		}
	}
	return b.String() + text[at:]
}

// trimBetweenScripts takes blanks away that stand between an ideograph, or kana, and a letter or digit of ASCII: who
// sets them there does so for the eye.
func trimBetweenScripts(text string) string {
	latin := func(r rune) bool { return r < utf8.RuneSelf && isWordRune(r) }
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

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A proseWord is a word with all signs that touch it.
type proseWord struct {
	text string
	// begins reports that a sentence, or a line, begins with it.
	begins bool
}

// readsSameAs reports whether two words read the same: where both begin a sentence, a capital does not count.
func (w proseWord) readsSameAs(v proseWord) bool {
	return w.text == v.text || w.begins && v.begins && withoutCapital(w.text) == withoutCapital(v.text)
}

// withoutCapital returns a word of letters without the capital that it begins with; what has other signs within may be
// a name.
func withoutCapital(word string) string {
	bare := strings.Trim(word, `"'(),;:.!?`)
	if bare == "" || strings.ContainsFunc(bare, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		return word
	}
	r, size := utf8.DecodeRuneInString(bare)
	at := strings.Index(word, bare)
	return word[:at] + string(unicode.ToLower(r)) + word[at+size:]
}

// proseWords cuts a text at its white space, whose kind and length do not count.
func proseWords(text string) (all []proseWord) {
	begins := true
	for line := range strings.Lines(text) {
		begins = true
		for _, field := range strings.Fields(line) {
			if strings.Trim(field, "-") == "" {
				field = "-" // a dash of a typewriter
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

// withoutFinalStop takes the full stop, or the mark of exclamation, off the last word. After other signs it may be a
// path, or an ellipsis.
func withoutFinalStop(word string) string {
	stop, size := utf8.DecodeLastRuneInString(word)
	bare := word[:len(word)-size]
	last, _ := utf8.DecodeLastRuneInString(bare)
	if strings.ContainsRune(".!。！", stop) && (isWordRune(last) || unicode.IsMark(last) ||
		strings.ContainsRune(`)]"'%`, last)) {
		return bare
	}
	return word
}

// titleSaysName reports whether a title has the words of the name beside it and no others; of a schema's that stands
// for the whole, also with what libraries add.
func titleSaysName(title, name string) bool {
	rest, ok := strings.CutPrefix(lowerLettersOnly(title), lowerLettersOnly(name))
	return ok && name != "" && slices.Contains([]string{"", "arguments", "args", "input", "output", "result"}, rest) &&
		!strings.ContainsFunc(title, func(r rune) bool {
			return !isWordRune(r) && !unicode.IsMark(r) && r != ' ' &&
				r != '_' && r != '-'
		})
}

// lowerLettersOnly returns the letters and digits of a text, in lower case.
func lowerLettersOnly(text string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) || unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// oneMoreNoun is what a title may go on with to name one thing more: a word or two.
var oneMoreNoun = lazyRegexp(`^(?: or |/)([A-Za-z]+)(?: ([A-Za-z]+))?$`)

// riskyWords are words that make more of a title than one thing more: what is done, to how much, to what nobody gives
// away, and the roots of paths.
var riskyWords = wordSet(`delete deletes remove erase wipe drop destroy purge truncate clear clean reset kill stop shred trash discard revert
		send upload post email mail forward share publish export transfer pay buy sell order leak copy sync import fetch download
		execute run exec eval invoke call shell write overwrite edit change modify replace rename move install uninstall format grant revoke allow deny
		enable disable bypass ignore override skip force approve merge deploy sign login impersonate read access steal
		all any anything every everything everyone whole entire not no never none without only must always instead else other others
		secret secrets password passwords passphrase token tokens key keys credential credentials private root sudo admin system disk disks drive
		home database databases account accounts tmp temp etc usr var bin dev proc sys opt mnt lib`)

// addsOneNoun reports whether a title says what it said, and names one thing more: "issue" is then "issue or pull
// request".
func addsOneNoun(before, after string) bool {
	rest, ok := strings.CutPrefix(after, before)
	m := oneMoreNoun().FindStringSubmatch(rest)
	return ok && before != "" && m != nil && !riskyWords[strings.ToLower(m[1])] && !riskyWords[strings.ToLower(m[2])]
}

// lazyRegexp compiles an expression when it is first used: most processes compare nothing.
func lazyRegexp(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// wordSet returns the words of a text.
func wordSet(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}
