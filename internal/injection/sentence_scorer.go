package injection

import (
	_ "embed" // the kinds of words and what they weigh
	"math"
	binary "math/bits"
	"strings"
)

//go:embed kinds.txt
var kindList string

// A TextPlace is the position of a text. It determines how much prose with instructions is normal there.
type TextPlace int

const (
	// PlaceNone is for texts that people read. They are not weighed.
	PlaceNone TextPlace = iota
	// PlaceInstructions is for the instructions of a server, which tell a model what to do.
	PlaceInstructions
	// PlaceDescription is for the description of a tool, which may say how to use it.
	PlaceDescription
	// PlaceSchema is for a description in a schema, which explains a value.
	PlaceSchema
	// PlaceMember is for a title, a default, an example or a member of _meta, which are seldom prose.
	PlaceMember
	// PlaceAnswer is for the result of a call, which may be any document.
	PlaceAnswer
	// placeDecoded is for decoded text, which was written in letters that stand for others.
	placeDecoded
)

// maxWeight returns the greatest weight of a sentence at a place that does not count as an order. One or two in a
// thousand honest tools that were not used for learning exceed it. It does not depend on the length of the surrounding
// text; otherwise an order could be hidden in a long text.
func maxWeight(at TextPlace) float64 {
	switch at {
	case PlaceDescription:
		return 0.7
	case PlaceSchema:
		return 0.4
	case PlaceMember:
		return -2.4
	case PlaceAnswer:
		return 0.4
	case placeDecoded:
		return -2
	}
	return 1.3 // Instructions
}

// maxStrangeWeight returns the greatest weight of a sentence that shares no word with its context (WordTopic).
func maxStrangeWeight(at TextPlace) float64 {
	switch at {
	case PlaceDescription:
		return -1.4
	case PlaceSchema:
		return -1.7
	case PlaceAnswer:
		return -0.4
	}
	return maxWeight(at)
}

// minTopicWords is the minimum number of topic words in an answer before a sentence can be off topic.
const minTopicWords = 25

// The greatest weights of special sentences in an answer: one that addresses the model that reads it (addressing), one
// that names a model and an action (naming), one about the duties of models that shares no word with its context
// (obliging), and one in another language than English (foreign). Honest answers have few of these.
const (
	addressingLimit = -3
	namingLimit     = -1.2
	obligingLimit   = -1.8
	foreignLimit    = -0.5
)

// certainWeight is the weight from which a sentence of an answer is an order even if it has a word about attacks.
const certainWeight = 1.5

// minSentenceWords is the minimum number of words of a sentence that is weighed.
const minSentenceWords = 5

// minAnswerWords is the minimum for answers, which have many headings and incomplete sentences.
const minAnswerWords = 7

// maxWeighedWords is the maximum number of words that are weighed together. A longer sentence is weighed in parts:
// otherwise repetition would increase its weight.
const maxWeighedWords = 64

// A SentenceScorer weighs sentences. A weight is high for sentences that resemble orders to a model, and low for those
// that describe a tool. It uses kinds of words and their neighbourhood, so that it also recognises orders in unusual
// words. The weights were learned from orders and honest texts (internal/tools/shieldlearn).
type SentenceScorer struct {
	known map[string]wordFact
	// lastPlain is the last of the kinds at the head of the list whose words are of no topic, and everywhere has the
	// others.
	lastPlain  uint8
	everywhere [256]bool
	// firstVerb and lastVerb are the first and the last of the kinds of what can be done.
	firstVerb, lastVerb uint8
	// foreignKinds has the kinds of what words of other languages are about, by their concepts.
	foreignKinds [64]uint8
}

// newSentenceScorer returns a scorer. It adds the kinds of words to known.
func newSentenceScorer(known map[string]wordFact) *SentenceScorer {
	s := &SentenceScorer{known: known}
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

// The kinds of words that are in no list, and the bit that marks an inflected form of a listed word.
const (
	kindAddress = 120 + iota
	kindPath
	kindPlace
	kindName
	kindNumber
	kindInflected = 128
)

// smallKinds is the number of kinds of small words, which are first in the list. They form no pairs.
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

// stemKind returns the kind of the base form of an inflected word, 0 for none.
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

// addFeatures adds the features of a sentence to l.
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

// A LearnerSentence is a sentence with the data from which weights are learned.
type LearnerSentence struct {
	Text string
	// DefinitionSlots and Answers are the slots of its features in either table (shield/scale).
	DefinitionSlots, AnswerSlots []uint32
	// OffTopic reports that no word of it stands in what is around it.
	OffTopic bool
	// Mention reports that it talks about an attack.
	Mention bool
}

// Sentences returns the sentences of a text that can be weighed. About is the topic of the text's context; own reports
// that the context includes the text.
func (in *Inspector) Sentences(text string, about WordTopic, own bool) (all []LearnerSentence) {
	room := in.reader.readText(text)
	defer in.reader.releaseBuffer(room)
	in.scorer.eachSentence(room.all, func(words []textWord) {
		l := FeatureSum{KeepSlots: true}
		in.scorer.addFeatures(words, &l)
		definitions, answers := l.Slots()
		all = append(all, LearnerSentence{text[words[0].at:words[len(words)-1].end], definitions, answers,
			in.scorer.isOffTopic(words, about, own), talksAboutAttack(words)})
	})
	return all
}

// eachSentence calls found for each sentence of a text that can be weighed.
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

// hasEnoughWords reports whether a sentence has at least fewest words, or the same length in a script without spaces.
func hasEnoughWords(sentence []textWord, fewest int) bool {
	const letters = 3 // bytes of one
	return len(sentence) >= fewest || sentence[0].signs&classNonASCII != 0 &&
		sentence[len(sentence)-1].end-sentence[0].at >= 2*fewest*letters &&
		strings.ContainsFunc(sentence[0].folded, IsUnspacedScript)
}

// WeighedRule is the rule for a sentence whose weight is too high for its place.
const WeighedRule = "order"

// findHeaviest returns the heaviest sentence of a text if its weight is too high for its place. A sentence that talks
// about an attack is noted only.
func (in *Inspector) findHeaviest(words []textWord, text string, at TextPlace, about func() WordTopic) (
	found []Finding) {
	if at == PlaceNone {
		return nil
	}
	most := math.Inf(-1)
	in.scorer.eachSentence(words, func(sentence []textWord) {
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

// weightAt returns the weight of the features at a place.
func weightAt(l *FeatureSum, at TextPlace) float64 {
	if at < PlaceAnswer {
		return l.DefinitionWeight()
	}
	return l.AnswerWeight()
}

// weighSentence returns the weight of a sentence. ok reports whether it exceeds most and is too high for the place.
func (in *Inspector) weighSentence(sentence []textWord, most float64, text string, at TextPlace,
	about func() WordTopic) (w float64, ok bool) {
	if at == PlaceAnswer {
		return in.weighInAnswer(sentence, most, text, about)
	}
	var l FeatureSum
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

// weighInAnswer is weighSentence for a sentence of an answer.
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

// isForeign reports whether a sentence seems to be in another language than English: at most one in four words is
// known.
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

// isDescriptive reports whether a sentence with this first word describes a tool: "Sends", where an order has "Send".
func (s *SentenceScorer) isDescriptive(first *textWord) bool {
	k := s.wordKind(first)
	return k&kindInflected != 0 && k&^kindInflected >= s.firstVerb && k&^kindInflected <= s.lastVerb &&
		strings.HasSuffix(first.folded, "s")
}

// hasVerb reports whether a sentence has a word for an action or a duty. The name of a thing has none.
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

// harmlessWeight is the weight below which the words around a rule's anchor are those of an honest answer.
const harmlessWeight = -3

// A harmlessContext reports whether a word of an answer is surrounded by words like those of honest documents. A rule
// that matches there does not count. Words of other languages have no weight, so they are never harmless.
type harmlessContext struct {
	scale *SentenceScorer
	words []textWord
	where TextOrigin
	// The last result: block is counted from 1.
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

// isHarmless reports whether words are like those of honest documents.
func (s *SentenceScorer) isHarmless(words []textWord) bool {
	l := FeatureSum{AnswersOnly: true}
	s.addFeatures(words, &l)
	return l.AnswerWeight() < harmlessWeight
}
