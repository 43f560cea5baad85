package words

import (
	"html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/shield/coded"
)

// What is written in other letters than its own, or in letters that were moved, is written so for a reader who undoes it: a model. It
// is read as what it stands for, and looked at as a value of a definition is, where hardly any prose belongs.

const (
	fewestDressed = 4  // words in a row of words
	fewestMoved   = 2  // small words whose letters were moved in one way
	mostDressed   = 16 // stretches of one text that are undone
)

// dressed says what a text's stretches say that are written in letters which stand for others.
func (in *Inspector) dressed(words []word, text string, where Whence, depth int, left *int) (found []Finding) {
	plain := ascii(text)
	for from, to := 0, 0; from < len(words) && len(found) < mostDressed; from = to {
		n, all, leet := 0, 0, 0
		for to = from; to < len(words) && to-from < mostWords && words[to].sentence == words[from].sentence; to++ {
			if to > from && words[to].at == words[to-1].at {
				continue // a part of a word
			}
			all++
			if raw := text[words[to].at:words[to].end]; words[to].apart || !plain && costumed(raw) {
				n++
			} else if leetish(raw) {
				leet++
			}
		}
		c := coded.Text{At: words[from].at, End: words[to-1].end}
		switch {
		case n >= fewestDressed && n*2 >= all:
			c.How, c.Text = "letters that stand for others", in.plain(words[from:to])
			if !in.english(c.Text) {
				c.How, c.Text = "letters on their heads", upright(text[c.At:c.End])
			}
		case leet >= fewestDressed && leet*3 >= all:
			c.How, c.Text = "digits for letters", in.plain(words[from:to])
		default:
			if way := moved(words[from:to]); way != 0 {
				c.How, c.Text = undoMove(way, text[c.At:c.End])
			}
		}
		if c.Text != "" && in.english(c.Text) {
			found = append(found, in.unhidden(c, where, depth, left)...)
		}
	}
	return found
}

// unhidden says what a text that was undone has somebody do. Any order counts, as it does in a value of a definition.
func (in *Inspector) unhidden(c coded.Text, where Whence, depth int, left *int) []Finding {
	for _, f := range in.inspect(c.Text, Definitions, undone, nil, depth+1, left) {
		if f.Act > Note {
			act := Blank
			if where == Definitions && f.Rule == "order" {
				act = Flag // the scale says so, and no rule
			}
			return []Finding{{"encoded", "in " + c.How + ": " + f.Why, act, c.At, c.End}}
		}
	}
	return nil
}

// overturned has each letter as it looks on its head, and after it the letter that it is.
const overturned = "ɐaqbɔcpdǝeɟfƃgɓgɥhᴉiıiɾjʞkɯmundpbqɹrʇtnuʌvʍwʎy˙."

// upright gives a text that was turned by half a circle as it was before.
func upright(text string) string {
	stand := map[rune]rune{}
	all := []rune(overturned)
	for i := 0; i+1 < len(all); i += 2 {
		stand[all[i]] = all[i+1]
	}
	return strings.Map(func(r rune) rune {
		if up, ok := stand[r]; ok {
			return up
		}
		return r
	}, coded.Turned(text))
}

// plain gives the words as they are read, with digits that stand for letters read as these.
func (in *Inspector) plain(words []word) string {
	var b strings.Builder
	for i := range words {
		w := words[i].folded
		if !in.known(w) {
			for _, l := range [...]string{w, strings.ReplaceAll(w, "1", "l"), strings.ReplaceAll(w, "0", "u")} {
				if read, ok := in.reader.fold.unleet(l); ok && (in.known(read) || l == w) {
					w = read
				}
			}
		}
		if read, ok := in.reader.fold.latin(w); ok {
			w = read
		}
		b.WriteString(w)
		b.WriteByte(' ')
	}
	return b.String()
}

// costumed says whether a word has a letter of an alphabet that is used for its looks: of mathematics, in circles, as wide as an
// ideograph, turned round or small where it is a capital.
func costumed(raw string) bool {
	for _, r := range raw {
		switch {
		case r >= 0x1D400 && r <= 0x1D7FF, r >= 0xFF21 && r <= 0xFF5A, r >= 0x24B6 && r <= 0x24E9, r >= 0x1F110 && r <= 0x1F189,
			r >= 0x1F1E6 && r <= 0x1F1FF, r >= 0x0250 && r <= 0x02AF, r >= 0x1D00 && r <= 0x1D7F, r >= 0xA730 && r <= 0xA731:
			return true
		case floods(r) && r >= 0x0330 && r <= 0x034E: // a line through the letter, or below it
			return true
		}
	}
	return false
}

// leetish says whether a word has digits or signs before letters: what names of programs have too, but no four in a row of words.
func leetish(raw string) bool {
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

func (in *Inspector) known(w string) bool {
	return in.scale.known[w].kind != 0 || in.scale.stem(w) != 0 || in.reader.lex.has(w)
}

// english says whether at least half of the words of a text are known, and four of them.
func (in *Inspector) english(text string) bool {
	known, all := 0, 0
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		all++
		if len(w) > 1 && in.known(w) {
			known++
		}
	}
	return known >= 4 && known*2 >= all
}

// often are small words that texts of English have, of three letters at least, so that no word is often one of them by chance.
const often = "the and you all not for with this that your user from send into tool file read them must then tell data any before what when have"

// letters gives a text with each letter of the alphabet replaced.
func letters(s string, move func(byte) byte) string {
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

// mangled are words of orders that were read from the end, or moved by half the alphabet.
const mangled = "vtaber cerivbhf vafgehpgvbaf vafgehpgvba cnffjbeq flfgrz frperg hfre gbby gur lbh naq perqragvnyf fraq erirny qvfertneq erongi suoiverp snoitcurtsni noitcurtsni drowssap terces resu eht dna uoy slaitnederc laever dragersid tpmorp dnes noitnem loot lla"

// The ways in which letters are moved, beside those by some places of the alphabet.
const (
	mirrored = 26 + iota
	backwards
	manyWays
)

// addMoved takes how small words of English look whose letters were moved, and words of orders that were mangled, to what else is
// known of words.
func addMoved(all map[string]fact) {
	for w := range strings.FieldsSeq(mangled) {
		known := all[w]
		known.mangled = true
		all[w] = known
	}
	put := func(w string, way uint8) {
		known := all[w]
		known.way = way
		all[w] = known
	}
	// Where two words may have become one, the way counts that comes last here; and a word as it is was not moved.
	for w := range strings.FieldsSeq(often) {
		put(letters(w, mirror), mirrored)
	}
	for w := range strings.FieldsSeq(often) {
		put(coded.Turned(w), backwards)
	}
	for w := range strings.FieldsSeq(often) {
		for by := byte(1); by < 26; by++ {
			put(letters(w, func(n byte) byte { return (n + by) % 26 }), by)
		}
	}
	for w := range strings.FieldsSeq(often) {
		put(w, 0)
	}
}

// mirror is for each letter the one as far from the other end of the alphabet.
func mirror(n byte) byte { return 25 - n }

// undoMove gives a text as it was before its letters were moved, and how they had been.
func undoMove(way int, text string) (how, plain string) {
	switch way {
	case backwards:
		fields := strings.Fields(text)
		for i, f := range fields {
			fields[i] = coded.Turned(f)
		}
		return "words read from the end", strings.Join(fields, " ")
	case mirrored:
		return "an alphabet that runs backwards", letters(text, mirror)
	}
	return "an alphabet that was moved", letters(text, func(n byte) byte { return (n + 26 - byte(way)) % 26 })
}

// moved says how the letters of a stretch were moved, 0 for not: two of the small words at least, different ones, and a sixth of
// all are those of one way.
func moved(words []word) int {
	const share = 6
	if len(words) < fewestDressed {
		return 0
	}
	var seen [manyWays]uint8
	before := ""
	for i := range words {
		way := int(words[i].way)
		if way == 0 || words[i].folded == before {
			continue
		}
		before = words[i].folded
		if seen[way]++; int(seen[way]) >= fewestMoved && int(seen[way])*share >= len(words) {
			return way
		}
	}
	return 0
}

// escaped is a row of escapes of any kind, each for a letter.
var escaped = regexp.MustCompile(`(?i)(?:(?:\\+u00|\\+x|%|=)[0-9a-f]{2}|&#(?:x[0-9a-f]{2}|[0-9]{2,3});){12,}`)

// escapedRows says what rows of escapes say: letters that need none were written so.
func (in *Inspector) escapedRows(text string, where Whence, depth int, left *int) (found []Finding) {
	const fewest = 12
	if max(strings.Count(text, `\`), strings.Count(text, "%"), strings.Count(text, "="), strings.Count(text, "&#")) < fewest {
		return nil
	}
	for _, at := range escaped.FindAllStringIndex(text, mostDressed) {
		row := html.UnescapeString(text[at[0]:at[1]])
		row = coded.Escapes(strings.ReplaceAll(row, `\\`, `\`), '\\', "u", 4)
		row = coded.Escapes(coded.Escapes(coded.Escapes(row, '\\', "x", 2), '%', "", 2), '=', "", 2)
		if utf8.ValidString(row) && in.english(row) {
			found = append(found, in.unhidden(coded.Text{How: "escapes", Text: row, At: at[0], End: at[1]}, where, depth, left)...)
		}
	}
	return found
}
