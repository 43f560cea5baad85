package shield

import (
	"fmt"
	"slices"
	"strings"
)

// An Inspector finds injected instructions in texts. It is safe for concurrent use and stores no state between texts.
type Inspector struct {
	reader  *wordReader
	matcher *ruleMatcher
	markers *markerSet
	scorer  *SentenceScorer
	phrases []notedPhrase
}

// NewInspector returns an Inspector. It returns an error if an embedded word list is invalid.
func NewInspector() (*Inspector, error) { return newInspectorWithWeights(nil) }

// newInspectorWithWeights returns an Inspector that uses the given weights for definitions. Use it to measure a newly
// learned table. The table has DefinitionSlots bytes; nil selects the embedded table.
func newInspectorWithWeights(definitions []byte) (*Inspector, error) {
	if definitions != nil && len(definitions) != DefinitionSlots {
		return nil, fmt.Errorf("read the weights: %d bytes, want %d", len(definitions), DefinitionSlots)
	}
	lex, err := loadLexicon()
	if err != nil {
		return nil, err
	}
	all := map[string]wordFact{}
	addAddressRoles(all)
	addShiftedWords(all)
	phrases := notedPhrases()
	addPhraseStarts(all, phrases)
	scale := newSentenceScorer(all)
	if definitions != nil {
		scale.definitions = string(definitions)
	}
	return &Inspector{&wordReader{lexicon: lex, fold: newWordFolder(), known: scale.known},
		newRuleMatcher(injectionRules()), newMarkerSet(markerRules()), scale, phrases}, nil
}

// maxCodeDepth is the maximum number of nested encodings that are decoded, such as Base64 inside hexadecimal.
const maxCodeDepth = 3

const (
	// maxDefinitionText is the maximum number of bytes of a definition's text that are inspected. The caller must not
	// show the text after them.
	maxDefinitionText = 64 << 10
	// maxResultText is the maximum number of bytes of a result that are inspected. A longer result is flagged.
	maxResultText = 1 << 20
)

// lookalikeRule is the name of the rule against words with lookalike letters.
const lookalikeRule = "lookalikes"

// Inspect returns the findings for a text in canonical form, sorted by offset. where is the origin of the text. at is
// the place of the text; it determines the weight above which a sentence counts as an instruction to a model. about
// returns the topic of the definition or result around the text; it is nil for a text without other texts around it.
func (in *Inspector) Inspect(text string, where TextOrigin, at TextPlace, about func() WordTopic) []TextMatch {
	return in.inspect(text, where, at, about, nil)
}

// inspect is like Inspect. If has is not nil, it also adds the concepts of the text's words to has.
func (in *Inspector) inspect(text string, where TextOrigin, at TextPlace, about func() WordTopic,
	has *concepts) []TextMatch {
	most := maxResultText
	if where == FromDefinitions {
		most = maxDefinitionText
	}
	unread := max(0, len(text)-most)
	text = text[:len(text)-unread]
	left := 4*len(text) + maxDefinitionText // remaining bytes to inspect, including decoded text
	found := in.inspectNested(text, where, at, about, 0, &left, has)
	if unread > 0 && where == FromResults {
		found = append(found, TextMatch{"unread", "is too long: the end was not inspected", ActionFlag, len(text),
			len(text) + unread})
	}
	return withoutOverlaps(found)
}

// withoutOverlaps merges overlapping findings of the same rule. Of them it returns the finding with the strongest
// action, extended to the end of the other findings.
func withoutOverlaps(found []TextMatch) []TextMatch {
	var out []TextMatch
	for _, f := range found {
		n := slices.IndexFunc(out, func(o TextMatch) bool { return o.Rule == f.Rule && f.At < o.End && o.At < f.End })
		switch {
		case n < 0:
			if len(out) < maxRemovals {
				out = append(out, f)
			}
		case f.Act > out[n].Act:
			f.End = max(f.End, out[n].End)
			out[n] = f
		case f.Act == out[n].Act:
			out[n].End = max(f.End, out[n].End)
		}
	}
	return out
}

func (in *Inspector) inspectNested(text string, where TextOrigin, at TextPlace, about func() WordTopic, depth int,
	left *int, seen *concepts) []TextMatch {
	if *left -= len(text); *left < 0 {
		return nil
	}
	room := in.reader.readText(text)
	defer in.reader.releaseBuffer(room)
	words := room.all
	innocent := harmlessContext{scale: in.scorer, words: words, where: where}
	found := in.matcher.match(words, where, &innocent, seen)
	has := bytesOf(text)
	for _, f := range in.markers.findMarkers(text, &has, where) {
		if n := wordIndexAt(words, f.At); (f.Rule == "pipe" || f.Rule == "shell") && n < len(words) &&
			(isMention(words, n) || innocent.isHarmless(n)) {
			f.Act = ActionNote
		}
		found = append(found, f)
	}
	if where == FromDefinitions || has.HasNonASCII() {
		found = append(found, findLookalikes(words, text, where)...)
	}
	if !hasActionable(found) {
		found = append(found, in.findHeaviest(words, text, at, about)...)
	}
	if depth < maxCodeDepth {
		for _, c := range decodeAll(text, &has) {
			found = append(found, in.hiddenOrders(c, found, where, depth, left)...)
		}
		turned, moved := hasOddWords(words)
		if turned {
			found = append(found, in.findReversed(words, text, where, left)...)
		}
		if !hasActionable(found) {
			if moved {
				found = append(found, in.findDisguised(words, text, where, depth, left)...)
			}
			if has.Has('\\') || has.Has('%') || has.Has('=') || has.Has('&') {
				found = append(found, in.inspectEscapes(text, where, depth, left)...)
			}
		}
	}
	if len(found) == 0 && depth == 0 && where == FromDefinitions {
		return in.notePhrases(words, text)
	}
	if len(found) > 1 {
		slices.SortStableFunc(found, func(a, b TextMatch) int { return a.At - b.At })
	}
	return found
}

// hasActionable reports whether a finding has a stronger action than ActionNote.
func hasActionable(found []TextMatch) bool {
	return slices.ContainsFunc(found, func(f TextMatch) bool { return f.Act > ActionNote })
}

// hasOddWords reports whether the text must be searched by findReversed (turned) and by findDisguised (dressed). It
// examines the words in one pass.
func hasOddWords(words []textWord) (turned, dressed bool) {
	mangled, latin, moved, apart, leet := 0, 0, 0, 0, 0
	for i := range words {
		w := &words[i]
		if w.mangled {
			mangled++
		}
		if w.cipher != 0 {
			moved++
		}
		if n := len(w.folded); n > 3 && w.folded[n-1] == 'y' && w.folded[n-2] == 'a' {
			latin++
		}
		if w.lettersApart || w.signs&classNonASCII != 0 {
			apart++
		}
		if w.signs&(classDigit|classOther) != 0 && w.signs&(classLower|classUpper) != 0 {
			leet++
		}
	}
	return mangled >= 2 || latin >= minPigLatin, moved >= minShifted || apart >= minDisguised || leet >= minDisguised
}

// wordIndexAt returns the index of the first word that ends after byte offset at.
func wordIndexAt(words []textWord, at int) int {
	n, _ := slices.BinarySearchFunc(words, at+1, func(w textWord, at int) int { return w.end - at })
	return n
}

// hiddenOrders inspects a decoded text and returns at most one finding, at the position of the encoded part. A rule
// that also matches the plain text is ignored. An encoded instruction is meant to be invisible for people, so its
// finding has ActionBlank.
func (in *Inspector) hiddenOrders(c decodedText, plain []TextMatch, where TextOrigin, depth int, left *int) []TextMatch {
	worst := ActionNote
	why := ""
	for _, f := range in.inspectNested(c.Text, where, PlaceNone, nil, depth+1, left, nil) {
		if f.Act > worst && !slices.ContainsFunc(plain, func(p TextMatch) bool { return p.Rule == f.Rule }) {
			worst, why = f.Act, f.Why
		}
	}
	switch {
	case worst > ActionNote:
		return []TextMatch{{"encoded", "in " + c.How + ": " + why, ActionBlank, c.At, c.End}}
	case isProse(c.Text) && (where == FromResults || in.HasOrder(c.Text)) && c.How != "entities" && c.How != "escapes":
		return []TextMatch{{"encoded", "contains a sentence in " + c.How, ActionFlag, c.At, c.End}}
	}
	return nil
}

// HasOrder reports whether a text may contain an instruction to a reader. That is the case if it has a word that
// addresses or urges a reader ("you", "must") and a word for an action ("send", "delete").
func (in *Inspector) HasOrder(text string) bool {
	has := concepts(0)
	room := in.reader.readText(text)
	defer in.reader.releaseBuffer(room)
	for i := range room.all {
		has |= room.all[i].concepts
	}
	return has&(conceptMust|conceptYou|conceptMe|conceptNot|conceptCovert|conceptCall) != 0 &&
		has&(conceptRead|conceptSend|conceptIgnore|conceptChange|conceptRemoving|conceptTell|conceptYou|conceptCall|conceptWignore|conceptWsend) != 0
}

// isProse reports whether a decoded text has at least four words, of which at least three quarters consist of letters.
func isProse(text string) bool {
	words := strings.Fields(text)
	letters := 0
	for _, w := range words {
		if strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz'.,!?") == "" {
			letters++
		}
	}
	return len(words) >= 4 && letters*4 >= len(words)*3
}

// findReversed decodes a text that seems to be reversed, in ROT13 or in Pig Latin, and returns the findings about it.
func (in *Inspector) findReversed(words []textWord, text string, where TextOrigin, left *int) []TextMatch {
	marks, first := 0, len(text)
	for _, w := range words {
		if w.mangled {
			marks++
			first = min(first, w.at)
		}
	}
	if plain := in.undoPigLatin(words); plain != "" {
		return in.hiddenOrders(decodedText{How: "pig latin", Text: plain, At: words[0].at, End: len(text)}, nil, where,
			maxCodeDepth-1, left)
	}
	if marks < 2 {
		return nil
	}
	for _, c := range [...]decodedText{
		{How: "letters read from the end", Text: reverseText(text), At: first, End: len(text)},
		{How: "rot13", Text: rot13(text), At: first, End: len(text)},
	} {
		if found := in.hiddenOrders(c, nil, where, maxCodeDepth-1, left); found != nil && found[0].Act == ActionBlank {
			return found
		}
	}
	return nil
}

// findLookalikes finds words that mix letters of different alphabets that look alike. In definitions, it also finds
// texts in phonetic letters, texts without vowels, and texts that are not in any language.
func findLookalikes(words []textWord, text string, where TextOrigin) (found []TextMatch) {
	const most = 8
	phonetic, seen := 0, 0 // seen: end of the last word; a word may appear in parts
	for _, w := range words {
		if w.mixedAlphabets {
			return []TextMatch{{lookalikeRule, "mixes the letters of several alphabets in a word",
				ActionFlag, w.at, w.end}}
		}
		if w.at < seen {
			continue
		}
		seen = w.end
		if where == FromDefinitions && !isASCII(text[w.at:w.end]) {
			for _, r := range text[w.at:w.end] {
				if r >= 0x0250 && r <= 0x02AF || r >= 0x1D00 && r <= 0x1D7F {
					phonetic++
				}
			}
		}
		if phonetic > most {
			return []TextMatch{{lookalikeRule, "uses letters that look like others", ActionFlag, w.at, w.end}}
		}
	}
	if where != FromDefinitions {
		return nil
	}
	if isVowelless(words, text) {
		return []TextMatch{{"garbled", "is written without vowels", ActionFlag, words[0].at, words[len(words)-1].end}}
	}
	return findGarbled(words, text)
}

// rarePairs contains a set of letters for each letter a to z, as bits. Bit n is set if the letter with index n rarely
// follows this letter in languages with Latin script. Rarely means fewer than 60 times in a million pairs, counted in
// honest tool descriptions, documents and the word lists.
var rarePairs = [26]uint32{0x800000, 0x289942e, 0xe1306a, 0xa91420, 0x0, 0x2e1964e, 0x2a19024, 0x2e104e6, 0x0,
	0x3c39eee, 0x2e0824a, 0x2830064, 0x2a10008, 0x830002, 0x10000, 0x2e13226, 0x3efb7ff, 0x810002, 0x800002, 0x21020a,
	0x810000, 0x3e99eea, 0x2e1166a, 0x2f77e6e, 0x1a102c0, 0x2e30e66}

// findGarbled finds a text in which at least 20 % of the letter pairs are rare. Such a text was encrypted, or its
// letters were replaced.
func findGarbled(words []textWord, text string) []TextMatch {
	const fewest, percent = 40, 20
	pairs, odd := 0, 0
	for _, w := range words {
		if raw := text[w.at:w.end]; len(raw) != len(w.folded) || len(raw) < 3 || len(raw) > 16 ||
			raw[1:] != w.folded[1:] {
			continue
		}
		for i := 1; i < len(w.folded); i++ {
			a, b := w.folded[i-1]-'a', w.folded[i]-'a'
			if a < 26 && b < 26 {
				pairs++
				odd += int(rarePairs[a] >> b & 1)
			}
		}
	}
	if pairs < fewest || odd*100 < pairs*percent {
		return nil
	}
	return []TextMatch{{"garbled", "is not in any language: its letters may be encrypted", ActionFlag, words[0].at,
		words[len(words)-1].end}}
}
