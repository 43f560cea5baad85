package injection

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// What is written in other letters than its own, or in letters that were moved, is written so for a reader who undoes
// it: a model. It is read as what it stands for, and looked at as a value of a definition is, where hardly any prose
// belongs.

const (
	minDisguised = 4  // words in a row of words
	minShifted   = 2  // small words whose letters were moved in one way
	maxDisguised = 16 // stretches of one text that are undone
)

// findDisguised returns the orders in stretches of a text that are written in letters which stand for others.
func (in *Inspector) findDisguised(words []textWord, text string, where TextOrigin, depth int,
	left *int) (found []Finding) {
	plain := isASCII(text)
	for from, to := 0, 0; from < len(words) && len(found) < maxDisguised; from = to {
		n, all, leet := 0, 0, 0
		for to = from; to < len(words) && to-from < maxWeighedWords &&
			words[to].sentence == words[from].sentence; to++ {
			if to > from && words[to].at == words[to-1].at {
				continue // a part of a word
			}
			all++
			if raw := text[words[to].at:words[to].end]; words[to].lettersApart || !plain && isFancyWord(raw) {
				n++
			} else if isLeetWord(raw) {
				leet++
			}
		}
		c := DecodedText{At: words[from].at, End: words[to-1].end}
		switch {
		case n >= minDisguised && n*2 >= all:
			c.How, c.Text = "letters that stand for others", in.plainWords(words[from:to])
			if !in.isMostlyEnglish(c.Text) {
				c.How, c.Text = "letters on their heads", undoUpsideDown(text[c.At:c.End])
			}
		case leet >= minDisguised && leet*3 >= all:
			c.How, c.Text = "digits for letters", in.plainWords(words[from:to])
		default:
			if way := shiftOf(words[from:to]); way != 0 {
				c.How, c.Text = undoShift(way, text[c.At:c.End])
			}
		}
		if c.Text != "" && in.isMostlyEnglish(c.Text) {
			found = append(found, in.inspectDecoded(c, where, depth, left)...)
		}
	}
	return found
}

// inspectDecoded returns the orders of a text that was decoded. Any order counts, as it does in a value of a
// definition.
func (in *Inspector) inspectDecoded(c DecodedText, where TextOrigin, depth int, left *int) []Finding {
	for _, f := range in.inspectNested(c.Text, FromDefinitions, placeDecoded, nil, depth+1, left, nil) {
		if f.Act > ActionNote {
			act := ActionBlank
			if where == FromDefinitions && f.Rule == "order" {
				act = ActionFlag // the scale says so, and no rule
			}
			return []Finding{{"encoded", "in " + c.How + ": " + f.Why, act, c.At, c.End}}
		}
	}
	return nil
}

// upsideDownLetters has each letter as it looks on its head, and after it the letter that it is.
const upsideDownLetters = "ɐaqbɔcpdǝeɟfƃgɓgɥhᴉiıiɾjʞkɯmundpbqɹrʇtnuʌvʍwʎy˙."

// undoUpsideDown returns a text that was turned by half a circle as it was before.
func undoUpsideDown(text string) string {
	stand := map[rune]rune{}
	all := []rune(upsideDownLetters)
	for i := 0; i+1 < len(all); i += 2 {
		stand[all[i]] = all[i+1]
	}
	return strings.Map(func(r rune) rune {
		if up, ok := stand[r]; ok {
			return up
		}
		return r
	}, ReverseText(text))
}

// plainWords returns the words as they are read, with digits that stand for letters read as these.
func (in *Inspector) plainWords(words []textWord) string {
	var b strings.Builder
	for i := range words {
		w := words[i].folded
		if !in.isKnownWord(w) {
			for _, l := range [...]string{w, strings.ReplaceAll(w, "1", "l"), strings.ReplaceAll(w, "0", "u")} {
				if read, ok := in.reader.fold.readLeet(l); ok && (in.isKnownWord(read) || l == w) {
					w = read
				}
			}
		}
		if read, ok := in.reader.fold.readAsLatin(w); ok {
			w = read
		}
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

// isFancyWord reports whether a word has a letter of an alphabet that is used for its looks: of mathematics, in
// circles, as wide as an ideograph, turned round or small where it is a capital.
func isFancyWord(raw string) bool {
	for _, r := range raw {
		switch {
		case r >= 0x1D400 && r <= 0x1D7FF, r >= 0xFF21 && r <= 0xFF5A, r >= 0x24B6 && r <= 0x24E9,
			r >= 0x1F110 && r <= 0x1F189,
			r >= 0x1F1E6 && r <= 0x1F1FF, r >= 0x0250 && r <= 0x02AF, r >= 0x1D00 && r <= 0x1D7F,
			r >= 0xA730 && r <= 0xA731:
			return true
		case isGenericMark(r) && r >= 0x0330 && r <= 0x034E: // a line through the letter, or below it
			return true
		}
	}
	return false
}

// isLeetWord reports whether a word has digits or signs before letters: what names of programs have too, but no four
// in a row of words.
func isLeetWord(raw string) bool {
	inner := false
	for i := range len(raw) {
		letter := raw[i]|0x20 >= 'a' && raw[i]|0x20 <= 'z'
		if !letter && (raw[i] < '0' || raw[i] > '9') && strings.IndexByte("@$!", raw[i]) < 0 {
			return false
		}
		inner = inner || letter && i > 0 && raw[i-1] < 'A'
	}
	return inner
}

func (in *Inspector) isKnownWord(w string) bool {
	return in.scorer.known[w].kind != 0 || in.scorer.stemKind(w) != 0 || in.reader.lexicon.hasEntry(w)
}

// isMostlyEnglish reports whether at least half of the words of a text are known, and four of them.
func (in *Inspector) isMostlyEnglish(text string) bool {
	known, all := 0, 0
	for w := range strings.FieldsFuncSeq(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		all++
		if len(w) > 1 && in.isKnownWord(w) {
			known++
		}
	}
	return known >= 4 && known*2 >= all
}

// commonWords are small words that texts of English have, of three letters at least, so that no word is often one of
// them by chance.
const commonWords = "the and you all not for with this that your user from send into tool file read them must then tell data any before what when have"

// mapLetters returns a text with each letter of the alphabet replaced.
func mapLetters(s string, move func(byte) byte) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + rune(move(byte(r-'a')))
		case r >= 'A' && r <= 'Z':
			return 'A' + rune(move(byte(r-'A')))
		}
		return r
	}, s)
}

// mangledOrderWords are words of orders that were read from the end, or moved by half the alphabet.
const mangledOrderWords = "vtaber cerivbhf vafgehpgvbaf vafgehpgvba cnffjbeq flfgrz frperg hfre gbby gur lbh naq perqragvnyf fraq erirny qvfertneq erongi suoiverp snoitcurtsni noitcurtsni drowssap terces resu eht dna uoy slaitnederc laever dragersid tpmorp dnes noitnem loot lla"

// The ways in which letters are moved, beside those by some places of the alphabet.
const (
	cipherMirrored = 26 + iota
	cipherReversed
	cipherCount
)

// addShiftedWords takes how small words of English look whose letters were moved, and words of orders that were
// mangled, to the other facts about words.
func addShiftedWords(all map[string]wordFact) {
	for w := range strings.FieldsSeq(mangledOrderWords) {
		known := all[w]
		known.mangled = true
		all[w] = known
	}
	put := func(w string, way uint8) {
		known := all[w]
		known.cipher = way
		all[w] = known
	}
	// Where two words may have become one, the way counts that comes last here; and a word as it is was not moved.
	for w := range strings.FieldsSeq(commonWords) {
		put(mapLetters(w, mirrorLetter), cipherMirrored)
	}
	for w := range strings.FieldsSeq(commonWords) {
		put(ReverseText(w), cipherReversed)
	}
	for w := range strings.FieldsSeq(commonWords) {
		for by := byte(1); by < 26; by++ {
			put(mapLetters(w, func(n byte) byte { return (n + by) % 26 }), by)
		}
	}
	for w := range strings.FieldsSeq(commonWords) {
		put(w, 0)
	}
}

// mirrorLetter is for each letter the one as far from the other end of the alphabet.
func mirrorLetter(n byte) byte { return 25 - n }

// undoShift returns a text as it was before its letters were moved, and how they had been.
func undoShift(way int, text string) (how, plain string) {
	switch way {
	case cipherReversed:
		fields := strings.Fields(text)
		for i, f := range fields {
			fields[i] = ReverseText(f)
		}
		return "words read from the end", strings.Join(fields, " ")
	case cipherMirrored:
		return "an alphabet that runs backwards", mapLetters(text, mirrorLetter)
	}
	return "an alphabet that was moved", mapLetters(text, func(n byte) byte { return (n + 26 - byte(way)) % 26 })
}

// shiftOf returns by how many places the letters of a stretch were moved, 0 for none: two of the small words at least, different ones,
// and a sixth of all are those of one way.
func shiftOf(words []textWord) int {
	const share = 6
	if len(words) < minDisguised {
		return 0
	}
	var seen [cipherCount]uint8
	before := ""
	for i := range words {
		way := int(words[i].cipher)
		if way == 0 || words[i].folded == before {
			continue
		}
		before = words[i].folded
		if seen[way]++; int(seen[way]) >= minShifted && int(seen[way])*share >= len(words) {
			return way
		}
	}
	return 0
}

// escapedRun is a row of escapes of any kind, each for a letter.
var escapedRun = lazyregexp.New(`(?i)(?:(?:\\+u00|\\+x|%|=)[0-9a-f]{2}|&#(?:x[0-9a-f]{2}|[0-9]{2,3});){12,}`)

// inspectEscapes returns the orders in rows of escapes: letters that need none were written so.
func (in *Inspector) inspectEscapes(text string, where TextOrigin, depth int, left *int) (found []Finding) {
	const fewest = 12
	if max(strings.Count(text, `\`), strings.Count(text, "%"), strings.Count(text, "="),
		strings.Count(text, "&#")) < fewest {
		return nil
	}
	for _, at := range escapedRun().FindAllStringIndex(text, maxDisguised) {
		row := html.UnescapeString(text[at[0]:at[1]])
		row = DecodeEscapes(strings.ReplaceAll(row, `\\`, `\`), '\\', "u", 4)
		row = DecodeEscapes(DecodeEscapes(DecodeEscapes(row, '\\', "x", 2), '%', "", 2), '=', "", 2)
		if utf8.ValidString(row) && in.isMostlyEnglish(row) {
			found = append(found, in.inspectDecoded(DecodedText{How: "escapes", Text: row, At: at[0], End: at[1]},
				where, depth, left)...)
		}
	}
	return found
}
