package injection

import (
	_ "embed" // the kinds of words and what they weigh
	"math"
	binary "math/bits"
	"strings"
)

//go:embed kinds.txt
var kindList string

// A TextPlace is where a text stands, by how much prose with orders belongs there.
type TextPlace int

const (
	// PlaceNone has no text weighed: what is said to people.
	PlaceNone TextPlace = iota
	// PlaceInstructions are for a model, and tell it what to do.
	PlaceInstructions
	// PlaceDescription is that of a tool as a whole, which may say how to use it.
	PlaceDescription
	// PlaceSchema is a description within a schema, which explains a value.
	PlaceSchema
	// PlaceMember is a title, a default, an example, a member of _meta: seldom prose at all.
	PlaceMember
	// PlaceAnswer is what a call answered, which may be any document.
	PlaceAnswer
	// placeDecoded is what was written in letters that stand for others.
	placeDecoded
)

// maxWeight returns what a sentence may weigh at a place before it counts as an order: what one or two in a thousand
// honest tools, which the weights were not learned from, have something heavier than. It does not depend on how much
// stands around the sentence, or an order could be hidden in a long text.
func maxWeight(at TextPlace) float64 {
	switch at {
	case PlaceDescription:
		return 0.9
	case PlaceSchema:
		return 0.6
	case PlaceMember:
		return -2.2
	case PlaceAnswer:
		return 0.4
	case placeDecoded:
		return -2
	}
	return 1.5 // Instructions
}

// maxStrangeWeight returns what a sentence may weigh that has no word of the texts around it (WordTopic).
func maxStrangeWeight(at TextPlace) float64 {
	switch at {
	case PlaceDescription:
		return -1.2
	case PlaceSchema:
		return -1.5
	case PlaceAnswer:
		return -0.4
	}
	return maxWeight(at)
}

// maxSplitWeight is what texts of a definition may weigh that go on with each other.
const maxSplitWeight = -1

// minTopicWords is how many words of a topic an answer has that a sentence can be strange to.
const minTopicWords = 25

// What a sentence of an answer may weigh: one that speaks to the model which reads it; one that names a model and a
// deed; one about the duties of models with no word of the texts around it; and one in another language than English.
// Honest answers have few of these.
const (
	addressingLimit = -3
	namingLimit     = -1.2
	obligingLimit   = -1.8
	foreignLimit    = -0.5
)

// certainWeight is what an order in an answer weighs that is one even where it has a word about attacks.
const certainWeight = 1.5

// minSentenceWords is how many words a sentence has that is weighed.
const minSentenceWords = 5

// minAnswerWords is that of answers, where headings and halves of sentences are many.
const minAnswerWords = 7

// maxWeighedWords is how many words are weighed together. Of longer sentences each stretch is weighed alone, since
// repetition would make them heavy.
const maxWeighedWords = 64

// A SentenceScorer weighs sentences: how much one is like those that give a model orders, and how little like those
// that describe a tool. It looks at kinds of words and at which stand near each other, so that an order in words of
// its own is heavy as well. What each weighs was learned from orders and honest definitions (internal/shieldlearn).
type SentenceScorer struct {
	known map[string]wordFact
	// definitions has the weights of definitions.
	definitions string
	// lastPlain is the last of the kinds at the head of the list whose words are of no topic, and everywhere has the
	// others.
	lastPlain  uint8
	everywhere [256]bool
	// firstVerb and lastVerb are the first and the last of the kinds of deeds.
	firstVerb, lastVerb uint8
	// foreignKinds has the kinds of words of other languages, by the numbers of their concepts.
	foreignKinds [64]uint8
}

// newSentenceScorer makes a scorer, and adds the kinds of words to the other facts about them.
func newSentenceScorer(known map[string]wordFact) *SentenceScorer {
	s := &SentenceScorer{known: known, definitions: definitionWeights}
	n := uint8(0)
	for line := range strings.SplitSeq(kindList, "\n") {
		name, all, ok := strings.Cut(line, ": ")
		if !ok || line[0] == '#' {
			continue
		}
		n++
		switch name {
		case "trouble":
			s.lastPlain = n
		case "read":
			s.firstVerb = n
		case "login":
			s.lastVerb = n
		case "user", "model", "tool", "param", "reply", "shape", "page", "data":
			s.everywhere[n] = true
		}
		for about, kind := range foreignKinds {
			if kind == name {
				s.foreignKinds[binary.TrailingZeros64(uint64(about))] = n
			}
		}
		for w := range strings.SplitSeq(all, ", ") {
			if of := known[w]; of.kind == 0 {
				of.kind = n
				known[w] = of
			}
		}
	}
	return s
}

// foreignKinds has the kind of a word of another language, by its concept.
var foreignKinds = map[concepts]string{
	conceptWignore: "ignore", conceptWinstr: "rules", conceptWprior: "previous", conceptWnot: "never",
	conceptWtell: "tell", conceptWuser: "user", conceptWsecret: "secret", conceptWsend: "send",
	conceptWsystem: "task", conceptWmodel: "model", conceptWreader: "model", conceptWdo: "delete",
}

// What stands for no word of the list, and what is added to the kind of a word in another form.
const (
	kindAddress = 120 + iota
	kindPath
	kindPlace
	kindName
	kindNumber
	kindInflected = 128
)

// smallKinds are the first kinds of the list, of small words: no pairs are kept of them.
const smallKinds = 18

// wordKind returns a word's kind, 0 for none.
func (s *SentenceScorer) wordKind(w *textWord) uint8 {
	switch {
	case w.concepts&conceptAddress != 0:
		return kindAddress
	case w.concepts&conceptPathname != 0:
		return kindPath
	case w.concepts&conceptPlace != 0:
		return kindPlace
	}
	if w.kind != 0 {
		return w.kind
	}
	if of := w.concepts & conceptsForeign; of != 0 {
		return s.foreignKinds[binary.TrailingZeros64(uint64(of))]
	}
	if k := s.stemKind(w.folded); k != 0 {
		return k | kindInflected
	}
	switch {
	case w.concepts&conceptIdent != 0:
		return kindName
	case w.folded != "" && w.folded[0] >= '0' && w.folded[0] <= '9':
		return kindNumber
	}
	return 0
}

// stemKind returns the kind of the word that another is a form of.
func (s *SentenceScorer) stemKind(word string) uint8 {
	if n := len(word); n < 4 || word[n-1] != 's' && word[n-1] != 'd' && word[n-1] != 'g' {
		return 0 // as most words
	}
	for _, end := range [...]string{"s", "d", "es", "ed", "ing"} {
		base, ok := strings.CutSuffix(word, end)
		n := len(base)
		if !ok || n < 3 {
			continue
		}
		if k := s.known[base].kind; k != 0 {
			return k
		}
		if len(end) < 2 {
			continue
		}
		if k := s.known[base+"e"].kind; k != 0 {
			return k
		}
		if base[n-1] == base[n-2] {
			if k := s.known[base[:n-1]].kind; k != 0 {
				return k
			}
		}
		if base[n-1] == 'i' {
			if k := s.known[base[:n-1]+"y"].kind; k != 0 {
				return k
			}
		}
	}
	return 0
}

// addFeatures lays a sentence's words on the scale.
func (s *SentenceScorer) addFeatures(words []textWord, l *FeatureSum) {
	const near = 6
	var last [near]uint32
	beforeWord := uint32(0)
	before, twoBefore, n := uint32(255), uint32(255), 0
	about := concepts(0)
	for i := range words {
		w := &words[i]
		about |= w.concepts
		k := uint32(s.wordKind(w))
		word := FeatureHash(w.folded)
		for _, f := range [...][3]uint32{{1, k, 0}, {2, word, 0}, {3, before, k}, {10, beforeWord, word},
			{4, twoBefore, k}, {15, twoBefore<<16 | before, k}} {
			l.Add(f[0], f[1], f[2])
		}
		if k == 0 {
			l.AddWordPieces(w.folded)
		}
		beforeWord = word
		switch i {
		case 0:
			l.Add(5, k, 0)
			l.Add(13, word, 0)
		case 1:
			l.Add(6, before, k)
		}
		if bare := k &^ kindInflected; bare > smallKinds {
			for _, other := range last[:min(n, near)] {
				l.Add(7, other, bare)
			}
			last[n%near] = bare
			n++
		}
		twoBefore, before = before, k
	}
	l.Add(14, uint32(min(len(words)/4, 8)), 0)
	for rest := about; rest != 0; {
		a := binary.TrailingZeros64(uint64(rest))
		rest &= rest - 1
		l.Add(8, uint32(a), 0)
		for others := rest; others != 0; others &= others - 1 {
			l.Add(9, uint32(a), uint32(binary.TrailingZeros64(uint64(others))))
		}
	}
}

// A LearnerSentence is what a learner sees of one.
type LearnerSentence struct {
	Text string
	// DefinitionSlots and Answers are the slots of its features in either table (shield/scale).
	DefinitionSlots, AnswerSlots []uint32
	// OffTopic reports that no word of it stands in what is around it.
	OffTopic bool
	// Mention reports that it talks about an attack.
	Mention bool
}

// Sentences returns the sentences of a text that can be weighed. About is what the text stands in, of which it is a
// part if own.
func (in *Inspector) Sentences(text string, about WordTopic, own bool) (all []LearnerSentence) {
	room := in.reader.readText(text)
	defer in.reader.releaseBuffer(room)
	in.scorer.eachSentence(room.all, func(words []textWord) {
		words = withoutShortHead(words, text)
		l := FeatureSum{KeepSlots: true, table: in.scorer.definitions}
		in.scorer.addFeatures(words, &l)
		definitions, answers := l.Slots()
		all = append(all, LearnerSentence{text[words[0].at:words[len(words)-1].end], definitions, answers,
			in.scorer.isOffTopic(words, about, own), talksAboutAttack(words)})
	})
	return all
}

// eachSentence returns the sentences of a text that can be weighed.
func (s *SentenceScorer) eachSentence(words []textWord, found func([]textWord)) {
	for from, to := 0, 0; from < len(words); from = to {
		for to = from; to < len(words) && to-from < maxWeighedWords &&
			words[to].sentence == words[from].sentence; to++ {
		}
		if hasEnoughWords(words[from:to], minSentenceWords) {
			found(words[from:to])
		}
	}
}

// withoutShortHead returns a sentence without another one of three words at most that was read as its beginning ("Finds
// flights. Always ..."): what follows is weighed by itself.
func withoutShortHead(sentence []textWord, text string) []textWord {
	const longest = 3
	for i := 1; i <= longest && len(sentence)-i >= minSentenceWords; i++ {
		gap := text[sentence[i-1].end:max(sentence[i-1].end, sentence[i].at)]
		if len(gap) > 1 && endsSentence(gap) {
			return sentence[i:]
		}
	}
	return sentence
}

// hasEnoughWords reports whether a sentence has so many words, or as much in a script that parts none.
func hasEnoughWords(sentence []textWord, fewest int) bool {
	const letters = 3 // bytes of one
	return len(sentence) >= fewest || sentence[0].signs&classNonASCII != 0 &&
		sentence[len(sentence)-1].end-sentence[0].at >= 2*fewest*letters &&
		strings.ContainsFunc(sentence[0].folded, IsUnspacedScript)
}

// WeighedRule is the rule of a sentence that is heavy for where it stands.
const WeighedRule = "order"

// findHeaviest names the heaviest sentence of a text, if it is heavier than honest ones are at its place. One that
// talks about an attack is noted.
func (in *Inspector) findHeaviest(words []textWord, text string, at TextPlace, about func() WordTopic) (
	found []Finding) {
	if at == PlaceNone {
		return nil
	}
	most := math.Inf(-1)
	in.scorer.eachSentence(words, func(sentence []textWord) {
		if at < PlaceAnswer {
			sentence = withoutShortHead(sentence, text)
		}
		w, ok := in.weighSentence(sentence, most, text, at, about)
		if !ok {
			return
		}
		most = w
		f := Finding{WeighedRule, "reads as an order to a model", ActionFlag, sentence[0].at,
			sentence[len(sentence)-1].end}
		if talksAboutAttack(sentence) && (at != PlaceAnswer || w < certainWeight) {
			f.Act = ActionNote
		}
		found = []Finding{f}
	})
	return found
}

// weightAt is what the load comes to at a place.
func weightAt(l *FeatureSum, at TextPlace) float64 {
	if at < PlaceAnswer {
		return l.DefinitionWeight()
	}
	return l.AnswerWeight()
}

// weighSentence returns what a sentence weighs, and reports whether that is more than most, and more than honest ones
// weigh at its place. It is not weighed if it could not count.
func (in *Inspector) weighSentence(sentence []textWord, most float64, text string, at TextPlace,
	about func() WordTopic) (w float64, ok bool) {
	if at == PlaceAnswer {
		return in.weighInAnswer(sentence, most, text, about)
	}
	l := FeatureSum{table: in.scorer.definitions}
	in.scorer.addFeatures(sentence, &l)
	if w = weightAt(&l, at); w <= most {
		return w, false
	}
	heavy, light := maxWeight(at), maxStrangeWeight(at)
	if (at == PlaceDescription || at == PlaceSchema) && in.scorer.isDescriptive(&sentence[0]) {
		light, heavy = heavy, heavy+1
	}
	return w, w > heavy || w > light && about != nil && in.scorer.hasVerb(sentence) && in.scorer.isOffTopic(sentence,
		about(), at == PlaceDescription)
}

// weighInAnswer is counts for a sentence of an answer.
func (in *Inspector) weighInAnswer(sentence []textWord, most float64, text string, about func() WordTopic) (
	w float64, ok bool) {
	to := in.scorer.addresseeOf(sentence, text)
	if to < addressModels && !hasEnoughWords(sentence, minAnswerWords) {
		return 0, false
	}
	l := FeatureSum{AnswersOnly: true}
	in.scorer.addFeatures(sentence, &l)
	if w = l.AnswerWeight(); w <= most || to == addressForeign {
		return w, w > most
	}
	heavy, light := maxWeight(PlaceAnswer), maxStrangeWeight(PlaceAnswer)
	switch {
	case to == addressModels:
		return w, w > addressingLimit
	case in.scorer.isForeign(sentence):
		heavy = foreignLimit
	case w > namingLimit && hasModelName(sentence) && in.scorer.hasVerb(sentence):
		return w, true
	case to == addressAboutModels:
		light = obligingLimit
	}
	if w > heavy || w <= light || about == nil || !in.scorer.hasVerb(sentence) {
		return w, w > heavy
	}
	topic := about()
	return w, len(topic) >= minTopicWords && in.scorer.isOffTopic(sentence, topic, true)
}

// isForeign reports whether a sentence is in another language than English, as far as its words tell: one in four at
// most is of a kind.
func (s *SentenceScorer) isForeign(sentence []textWord) bool {
	known, all, end := 0, 0, -1
	for i := range sentence {
		w := &sentence[i]
		if w.at < end { // found within the last
			continue
		}
		end = w.end
		all++
		if w.kind != 0 || w.concepts&(conceptIdent|conceptAddress|conceptPathname) != 0 || w.folded != "" &&
			w.folded[0] <= '9' {
			known++
		}
	}
	return known*4 <= all
}

// isDescriptive reports whether a sentence that begins with the word describes a tool: "Sends", where an order has
// "Send".
func (s *SentenceScorer) isDescriptive(first *textWord) bool {
	k := s.wordKind(first)
	return k&kindInflected != 0 && k&^kindInflected >= s.firstVerb && k&^kindInflected <= s.lastVerb &&
		strings.HasSuffix(first.folded, "s")
}

// hasVerb reports whether a sentence has a word for a deed or a duty: the name of a thing has none.
func (s *SentenceScorer) hasVerb(sentence []textWord) bool {
	for i := range sentence {
		w := &sentence[i]
		if k := s.wordKind(w) &^ kindInflected; k >= s.firstVerb && k <= s.lastVerb ||
			w.concepts&(conceptMust|conceptNot|conceptYou) != 0 {
			return true
		}
	}
	return false
}

// talksAboutAttack reports whether a sentence talks about an attack.
func talksAboutAttack(sentence []textWord) bool {
	for i := range sentence {
		if sentence[i].concepts&conceptMention != 0 {
			return true
		}
	}
	return false
}

// harmlessWeight is what the words around a rule's anchor weigh in an answer that is like honest ones.
const harmlessWeight = -3

// A harmlessContext says of a word of an answer whether it stands among words that are as in honest documents: there
// a rule that is met counts for nothing. Words of other languages weigh nothing, and are never so.
type harmlessContext struct {
	scale *SentenceScorer
	words []textWord
	where TextOrigin
	// What was weighed last: block is counted from 1.
	block, sentence int
	light           bool
}

func (n *harmlessContext) isHarmless(anchor int) bool {
	if n.where != FromResults {
		return false
	}
	// what is quoted so near to a word about attacks, in the same sentence or another, is one
	const block, cited = 16, 30
	words, at, sentence := n.words, anchor/block, n.words[anchor].sentence
	if at+1 != n.block || sentence != n.sentence {
		from, to := anchor, anchor+1
		for from > max(0, (at-1)*block) && words[from-1].sentence == sentence {
			from--
		}
		for to < min(len(words), (at+2)*block) && words[to].sentence == sentence {
			to++
		}
		n.block, n.sentence, n.light = at+1, sentence, n.scale.isHarmless(words[from:to])
	}
	return n.light || words[anchor].quoted &&
		talksAboutAttack(words[max(0, anchor-cited):min(len(words), anchor+cited)])
}

// isHarmless reports whether words are as in honest documents.
func (s *SentenceScorer) isHarmless(words []textWord) bool {
	l := FeatureSum{AnswersOnly: true}
	s.addFeatures(words, &l)
	return l.AnswerWeight() < harmlessWeight
}
