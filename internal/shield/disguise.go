package shield

import (
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
)

// Disguised text is written in lookalike letters, with digits for letters, or in a simple cipher. A person would not
// read such text, but a model decodes it, so a disguise is itself suspicious. The decoded text is inspected with the
// strict limits for placeDecoded.

const (
	minDisguised = 4  // a sentence with fewer disguised words is not decoded
	minShifted   = 2  // so many common words in a cipher reveal the cipher of a sentence
	maxDisguised = 16 // maximum number of disguised parts that are decoded in a text
)

// findDisguised decodes the disguised parts of a text and returns the findings about instructions to a model in them.
func (in *Inspector) findDisguised(words []textWord, text string, where TextOrigin, depth int,
	left *int) (found []TextMatch) {
	plain := isASCII(text)
	for from, to := 0, 0; from < len(words) && len(found) < maxDisguised; from = to {
		n, all, leet := 0, 0, 0
		for to = from; to < len(words) && to-from < maxWeighedWords &&
			words[to].sentence == words[from].sentence; to++ {
			if to > from && words[to].at == words[to-1].at {
				continue // another part of the same word
			}
			all++
			if raw := text[words[to].at:words[to].end]; words[to].lettersApart || !plain && isFancyWord(raw) {
				n++
			} else if isLeetWord(raw) {
				leet++
			}
		}
		c := decodedText{At: words[from].at, End: words[to-1].end}
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

// inspectDecoded inspects a decoded text. If the text contains an instruction to a model, it returns one finding at the
// position of the encoded part. Otherwise it returns nil.
func (in *Inspector) inspectDecoded(c decodedText, where TextOrigin, depth int, left *int) []TextMatch {
	for _, f := range in.inspectNested(c.Text, FromDefinitions, placeDecoded, nil, depth+1, left, nil) {
		if f.Act > ActionNote {
			act := ActionBlank
			if where == FromDefinitions && f.Rule == "order" {
				act = ActionFlag // found by weight only, not by a rule
			}
			return []TextMatch{{"encoded", "in " + c.How + ": " + f.Why, act, c.At, c.End}}
		}
	}
	return nil
}

// upsideDownLetters lists pairs: a character that looks like an upside-down letter, then the letter.
const upsideDownLetters = "ɐaqbɔcpdǝeɟfƃgɓgɥhᴉiıiɾjʞkɯmundpbqɹrʇtnuʌvʍwʎy˙."

// undoUpsideDown returns the plain form of a text that is written upside down: it reverses the text and replaces the
// upside-down letters.
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
	}, reverseText(text))
}

// plainWords returns the words in plain letters, separated by spaces. If the lexicon does not know a word, digits and
// signs in it are replaced by the letters that they stand for.
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

// isFancyWord reports whether a word has a decorative letter: mathematical, full-width, circled, squared, phonetic, a
// small capital, or struck through or underlined with a combining mark.
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

// isLeetWord reports whether a word has a digit or one of "@$!" before a letter, as "s3nd". The name of a program may
// look like this too, so findDisguised requires several such words in one sentence.
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

// isMostlyEnglish reports whether the lexicon contains at least four words, and at least half of all words, of a text.
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

// commonWords are frequent English words of at least three letters. Shorter words are left out because a cipher often
// produces them by chance.
const commonWords = "the and you all not for with this that your user from send into tool file read them must then tell data any before what when have"

// mapLetters returns the text with each letter replaced. The function move takes and returns the index of a letter, 0
// to 25; the case is kept.
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

// mangledOrderWords are words that are frequent in attacks, written in ROT13 or from the end to the beginning.
const mangledOrderWords = "vtaber cerivbhf vafgehpgvbaf vafgehpgvba cnffjbeq flfgrz frperg hfre gbby gur lbh naq perqragvnyf fraq erirny qvfertneq erongi suoiverp snoitcurtsni noitcurtsni drowssap terces resu eht dna uoy slaitnederc laever dragersid tpmorp dnes noitnem loot lla"

// The values of wordFact.cipher that are not a shift. A value from 1 to 25 means a Caesar cipher: each letter is moved
// by that number of places.
const (
	cipherMirrored = 26 + iota
	cipherReversed
	cipherCount
)

// addShiftedWords adds the common words in each cipher, and mangledOrderWords, to the map of word facts.
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
	// Two ciphers may produce the same word; the cipher that is added last then replaces the other. Plain words are
	// added last, with cipher 0, so that they never count as disguised.
	for w := range strings.FieldsSeq(commonWords) {
		put(mapLetters(w, mirrorLetter), cipherMirrored)
	}
	for w := range strings.FieldsSeq(commonWords) {
		put(reverseText(w), cipherReversed)
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

// mirrorLetter returns the letter at the same distance from the other end of the alphabet (the Atbash cipher: a
// becomes z).
func mirrorLetter(n byte) byte { return 25 - n }

// undoShift decodes a text in the given cipher. It returns the name of the cipher, as a text for people, and the plain
// text.
func undoShift(way int, text string) (how, plain string) {
	switch way {
	case cipherReversed:
		fields := strings.Fields(text)
		for i, f := range fields {
			fields[i] = reverseText(f)
		}
		return "words read from the end", strings.Join(fields, " ")
	case cipherMirrored:
		return "an alphabet that runs backwards", mapLetters(text, mirrorLetter)
	}
	return "an alphabet that was moved", mapLetters(text, func(n byte) byte { return (n + 26 - byte(way)) % 26 })
}

// shiftOf returns the cipher of a sentence, or 0 if the sentence is plain. A cipher counts if at least minShifted
// common words, and at least a sixth of all words, are written in it. A word that is repeated in sequence counts once.
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

// escapedRun matches a run of at least twelve escapes of any kind. Each escape stands for a letter.
var escapedRun = lazyregexp.New(`(?i)(?:(?:\\+u00|\\+x|%|=)[0-9a-f]{2}|&#(?:x[0-9a-f]{2}|[0-9]{2,3});){12,}`)

// inspectEscapes decodes runs of escapes and returns the findings about instructions to a model in them. Plain letters
// need no escapes, so a run of escaped letters is suspicious.
func (in *Inspector) inspectEscapes(text string, where TextOrigin, depth int, left *int) (found []TextMatch) {
	const fewest = 12
	if max(strings.Count(text, `\`), strings.Count(text, "%"), strings.Count(text, "="),
		strings.Count(text, "&#")) < fewest {
		return nil
	}
	for _, at := range escapedRun().FindAllStringIndex(text, maxDisguised) {
		row := html.UnescapeString(text[at[0]:at[1]])
		row = decodeEscapes(strings.ReplaceAll(row, `\\`, `\`), '\\', "u", 4)
		row = decodeEscapes(decodeEscapes(decodeEscapes(row, '\\', "x", 2), '%', "", 2), '=', "", 2)
		if utf8.ValidString(row) && in.isMostlyEnglish(row) {
			found = append(found, in.inspectDecoded(decodedText{How: "escapes", Text: row, At: at[0], End: at[1]},
				where, depth, left)...)
		}
	}
	return found
}
