package shield

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/shield/words"
)

// sameReading says whether two texts differ in nothing that their meaning hangs on. All signs count, but for those that one writes
// in more ways: white space, the case of what begins a sentence, the full stop, or the mark of exclamation, at the end, typographic quotes and dashes, bullets
// of lists, bold and backticks.
func sameReading(before, after string) bool {
	before, after = simple(before), simple(after)
	// A list reads the same without its bullets, and with them in one line.
	return slices.EqualFunc(readWords(before), readWords(after), readWord.same) ||
		slices.EqualFunc(readWords(bullet().ReplaceAllString(before, "$1")), readWords(bullet().ReplaceAllString(after, "$1")), readWord.same)
}

// typographic writes with plain signs what typography writes with its own.
var typographic = strings.NewReplacer(
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‘", "'", "’", "'", "‚", "'", "‛", "'",
	"‐", "-", "‑", "-", "‒", "-", "–", "-", "—", "-", "―", "-", "−", "-", "…", "...", "\r\n", "\n", "\r", "\n",
)

var (
	// bullet begins an entry of a list. Before a number it may be a sign.
	bullet = lazily("(?m)^[ \t]*[-*+•◦‣·▪][ \t]+([\\p{L}`*_\"'(\\[])")
	// bold is a stretch between doubled stars that can be no path and no wildcard.
	bold = lazily("(^|[\\s(])\\*\\*([\\p{L}`](?:[^*\\n/\\\\]*[^*\\s/\\\\])?)\\*\\*($|[\\s)]|[.,:;!?](?:\\s|$))")
	// stressed are words that one stresses and calls no file by: a star at any other word may be a wildcard.
	stressed  = lazily(`(^|[\s(])(?:\*(` + stress + `)\*|_(` + stress + `)_)($|[\s)]|[.,:;!?](?:\s|$))`)
	backticks = lazily("`+")
)

const (
	stressOne = `(?i:not|no|never|only|always|must|do|don't|cannot|should|may|before|after|and|or|both|each|every|required|optional|note|important|warning)`
	stress    = stressOne + `(?: ` + stressOne + `)*`
)

// simple gives a text in its canonical form, with plain signs and without what stresses words.
func simple(text string) string {
	text, _ = words.Canonical(text)
	text = typographic.Replace(text)
	for range 2 { // two that stand side by side share the blank between them
		text = bold().ReplaceAllString(text, "$1$2$3")
		text = stressed().ReplaceAllString(text, "$1$2$3$4")
	}
	return betweenScripts(withoutBackticks(text)) // last: stars within backticks or quotes are wildcards
}

// withoutBackticks takes the backticks away, but for those that part two words.
func withoutBackticks(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range backticks().FindAllStringIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		before, _ := utf8.DecodeLastRuneInString(text[:m[0]])
		after, _ := utf8.DecodeRuneInString(text[m[1]:])
		if ofWord(before) && ofWord(after) {
			b.WriteString(text[m[0]:m[1]])
		}
	}
	return b.String() + text[at:]
}

// betweenScripts takes blanks away that stand between an ideograph, or kana, and a letter or digit of ASCII: who sets them there does so
// for the eye.
func betweenScripts(text string) string {
	latin := func(r rune) bool { return r < utf8.RuneSelf && ofWord(r) }
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
			if last, next := out[len(out)-1], runes[end]; latin(last) && ideograph(next) || ideograph(last) && latin(next) {
				i = end
			}
		}
		out = append(out, runes[i])
	}
	return string(out)
}

func ofWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A readWord is a word with all signs that touch it.
type readWord struct {
	text string
	// begins says that a sentence, or a line, begins with it.
	begins bool
}

// same says whether two words read the same: where both begin a sentence, a capital does not count.
func (w readWord) same(v readWord) bool {
	return w.text == v.text || w.begins && v.begins && uncapital(w.text) == uncapital(v.text)
}

// uncapital gives a word of letters without the capital that it begins with; what has other signs within may be a name.
func uncapital(word string) string {
	bare := strings.Trim(word, `"'(),;:.!?`)
	if bare == "" || strings.ContainsFunc(bare, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		return word
	}
	r, size := utf8.DecodeRuneInString(bare)
	at := strings.Index(word, bare)
	return word[:at] + string(unicode.ToLower(r)) + word[at+size:]
}

// readWords cuts a text at its white space, whose kind and length do not count.
func readWords(text string) (all []readWord) {
	begins := true
	for line := range strings.Lines(text) {
		begins = true
		for _, field := range strings.Fields(line) {
			if strings.Trim(field, "-") == "" {
				field = "-" // a dash of a typewriter
			}
			all = append(all, readWord{field, begins})
			begins = strings.ContainsAny(field[len(field)-1:], ".!?:") || begins && (field == "-" || field == "*" || field == "+" || field == "•")
		}
	}
	if n := len(all); n > 0 {
		all[n-1].text = withoutStop(all[n-1].text)
	}
	return all
}

// withoutStop takes the full stop, or the mark of exclamation, off the last word. After other signs it may be a path, or an ellipsis.
func withoutStop(word string) string {
	stop, size := utf8.DecodeLastRuneInString(word)
	bare := word[:len(word)-size]
	last, _ := utf8.DecodeLastRuneInString(bare)
	if strings.ContainsRune(".!。！", stop) && (ofWord(last) || unicode.IsMark(last) || strings.ContainsRune(`)]"'%`, last)) {
		return bare
	}
	return word
}

// saysName says whether a title has the words of the name beside it and no others; of a schema's that stands for the
// whole, also with what libraries add.
func saysName(title, name string) bool {
	rest, ok := strings.CutPrefix(letters(title), letters(name))
	return ok && name != "" && slices.Contains([]string{"", "arguments", "args", "input", "output", "result"}, rest) &&
		!strings.ContainsFunc(title, func(r rune) bool { return !ofWord(r) && !unicode.IsMark(r) && r != ' ' && r != '_' && r != '-' })
}

// letters gives the letters and digits of a text, in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if ofWord(r) || unicode.IsMark(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// oneMore is what a title may go on with to name one thing more: a word or two.
var oneMore = lazily(`^(?: or |/)([A-Za-z]+)(?: ([A-Za-z]+))?$`)

// deeds are words that make more of a title than one thing more: what is done, to how much, to what nobody gives away, and the roots of paths.
var deeds = wordSet(`delete deletes remove erase wipe drop destroy purge truncate clear clean reset kill stop shred trash discard revert
		send upload post email mail forward share publish export transfer pay buy sell order leak copy sync import fetch download
		execute run exec eval invoke call shell write overwrite edit change modify replace rename move install uninstall format grant revoke allow deny
		enable disable bypass ignore override skip force approve merge deploy sign login impersonate read access steal
		all any anything every everything everyone whole entire not no never none without only must always instead else other others
		secret secrets password passwords passphrase token tokens key keys credential credentials private root sudo admin system disk disks drive
		home database databases account accounts tmp temp etc usr var bin dev proc sys opt mnt lib`)

// namesOneMore says whether a title says what it said, and names one thing more: "issue" is then "issue or pull request".
func namesOneMore(before, after string) bool {
	rest, ok := strings.CutPrefix(after, before)
	m := oneMore().FindStringSubmatch(rest)
	return ok && before != "" && m != nil && !deeds[strings.ToLower(m[1])] && !deeds[strings.ToLower(m[2])]
}

// lazily compiles an expression when it is first used: most processes compare nothing.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// wordSet gives the words of a text.
func wordSet(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}
