package shield

import (
	_ "embed" // the lists of words by kind
	"math"
	binary "math/bits"
	"strings"
)

//go:embed kinds.txt
var kindList string

// A TextPlace is the place of a text in a definition or a result. It determines how much prose with instructions is
// normal in the text.
type TextPlace int

const (
	// PlaceNone is for texts whose sentences are not weighed, for example text that is shown to people only.
	PlaceNone TextPlace = iota
	// PlaceInstructions is for the instructions of a server, which tell a model what to do.
	PlaceInstructions
	// PlaceDescription is for the description of a whole tool, which may explain how to use it.
	PlaceDescription
	// PlaceSchema is for a description inside a schema, which explains a value.
	PlaceSchema
	// PlaceMember is for titles, defaults, examples and members of _meta, which are rarely prose.
	PlaceMember
	// PlaceAnswer is for the result of a call, which may be any document.
	PlaceAnswer
	// placeDecoded is for text that was decoded from an encoding or a disguise.
	placeDecoded
)

// maxWeight returns the weight limit for a place. A sentence with a larger weight counts as an instruction to a model.
// Only one or two in a thousand honest tools outside the training data have a sentence with a larger weight. The limit
// does not depend on the length of the text. Otherwise an instruction could be hidden in a long text.
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
	return 1.5 // PlaceInstructions
}

// maxStrangeWeight returns the weight limit for a sentence that shares no topic word with the texts around it (see
// WordTopic). It is at most that of maxWeight.
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

// maxSplitWeight is the weight limit for a sentence that spans several texts of a definition.
const maxSplitWeight = -1

// minTopicWords is the minimum number of topic words in an answer (the result of a call). If there are fewer, the test
// whether a sentence is off-topic is not made.
const minTopicWords = 25

// Weight limits for some kinds of sentences in an answer (the result of a call). They are lower than the limit for other
// sentences, because such sentences are rare in honest answers: a sentence whose weight reaches its limit is reported.
// addressingLimit is for a sentence that speaks to the model that reads it. namingLimit is for a sentence with the name
// of a model and a verb. obligingLimit is for an off-topic sentence about the duties of models. foreignLimit is for a
// sentence in another language than English.
const (
	addressingLimit = -3
	namingLimit     = -1.2
	obligingLimit   = -1.8
	foreignLimit    = -0.5
)

// certainWeight is the weight from which a sentence of an answer is flagged even if it mentions an attack.
const certainWeight = 1.5

// minSentenceWords is the minimum number of words of a sentence that is weighed.
const minSentenceWords = 5

// minAnswerWords is like minSentenceWords, for answers (results of calls), which have many headings and incomplete
// sentences.
const minAnswerWords = 7

// maxWeighedWords is the maximum number of words that are weighed together. A longer sentence is weighed in parts,
// because repetitions in it would increase its weight.
const maxWeighedWords = 64

// A SentenceScorer computes the weight of a sentence. The weight of an instruction to a model is usually positive, and
// the weight of a description of a tool is usually negative. The weight depends on the kinds of words and their
// neighbours, so the scorer also recognizes instructions in new wording. internal/tools/shieldlearn learned the weights
// from attacks and honest definitions.
type SentenceScorer struct {
	known map[string]wordFact
	// definitions contains the weights for definitions.
	definitions string
	// lastPlain and everywhere describe words that occur in all texts and so do not show the topic. These are the words
	// of the kinds up to lastPlain, and of the kinds in everywhere.
	lastPlain  uint8
	everywhere [256]bool
	// firstVerb and lastVerb are the first and the last of the kinds of verbs.
	firstVerb, lastVerb uint8
	// foreignKinds contains the kind for each concept of words in other languages. The index is the number of the
	// concept's bit.
	foreignKinds [64]uint8
}

// newSentenceScorer returns a scorer. It also adds the kinds of words to known, the map of word facts.
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

// foreignKinds maps each concept of words in other languages to the name of a kind.
var foreignKinds = map[concepts]string{
	conceptWignore: "ignore", conceptWinstr: "rules", conceptWprior: "previous", conceptWnot: "never",
	conceptWtell: "tell", conceptWuser: "user", conceptWsecret: "secret", conceptWsend: "send",
	conceptWsystem: "task", conceptWmodel: "model", conceptWreader: "model", conceptWdo: "delete",
}

// Kinds of words that are not in kinds.txt. The flag kindInflected is added to the kind of an inflected form ("sends").
const (
	kindAddress = 120 + iota
	kindPath
	kindPlace
	kindName
	kindNumber
	kindInflected = 128
)

// smallKinds is the number of kinds at the beginning of kinds.txt that contain function words, such as "the". Pairs of
// kinds in which one is such a kind are not used as features.
const smallKinds = 18

// wordKind returns the kind of a word, or 0 if it has none.
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

// stemKind returns the kind of the base form of an inflected English word, or 0 if no kind is known.
func (s *SentenceScorer) stemKind(word string) uint8 {
	if n := len(word); n < 4 || word[n-1] != 's' && word[n-1] != 'd' && word[n-1] != 'g' {
		return 0 // most words
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

// addFeatures adds the features of a sentence to the sum: its words, their kinds, their neighbours and its concepts.
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
		word := featureHash(w.folded)
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

// A LearnerSentence is one sentence with its features, as input for learning weights.
type LearnerSentence struct {
	Text string
	// DefinitionSlots and AnswerSlots are the slots of its features in the two weight tables.
	DefinitionSlots, AnswerSlots []uint32
	// OffTopic reports whether the sentence shares no topic word with the texts around it, see WordTopic.
	OffTopic bool
	// Mention reports whether the sentence contains a word about attacks.
	Mention bool
}

// Sentences returns the sentences of a text that are long enough to be weighed. about is the topic of the surrounding
// texts; own reports whether these texts include text itself.
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

// eachSentence calls found with each sentence that is long enough to be weighed.
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

// withoutShortHead removes a short sentence of at most three words at the beginning, as in "Finds flights. Always ...".
// Such a short sentence is not separated when the text is read. But the rest must be weighed without it.
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

// hasEnoughWords reports whether a sentence has at least fewest words, or the equivalent length in a script without
// spaces.
func hasEnoughWords(sentence []textWord, fewest int) bool {
	const letters = 3 // bytes of a letter
	return len(sentence) >= fewest || sentence[0].signs&classNonASCII != 0 &&
		sentence[len(sentence)-1].end-sentence[0].at >= 2*fewest*letters &&
		strings.ContainsFunc(sentence[0].folded, isUnspacedScript)
}

// WeighedRule is the Rule of a finding for a sentence that no rule matched, but whose score from learned weights
// exceeds the limit for its place. Such a finding is sometimes wrong.
const WeighedRule = "order"

// findHeaviest returns a finding for the sentence with the largest weight, if that weight exceeds the limit for the
// place. Otherwise it returns nil. If the sentence has a word about attacks, the finding has ActionNote, except for a
// sentence of an answer with at least certainWeight.
func (in *Inspector) findHeaviest(words []textWord, text string, at TextPlace, about func() WordTopic) (
	found []TextMatch) {
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
		f := TextMatch{WeighedRule, "reads as an order to a model", ActionFlag, sentence[0].at,
			sentence[len(sentence)-1].end}
		if talksAboutAttack(sentence) && (at != PlaceAnswer || w < certainWeight) {
			f.Act = ActionNote
		}
		found = []TextMatch{f}
	})
	return found
}

// weightAt returns the weight of the features, computed with the weight tables for the place.
func weightAt(l *FeatureSum, at TextPlace) float64 {
	if at < PlaceAnswer {
		return l.DefinitionWeight()
	}
	return l.AnswerWeight()
}

// weighSentence returns the weight of a sentence. ok reports whether the weight exceeds both most and the limit for the
// place. For a sentence that is too short to count, it returns 0 and false.
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

// weighInAnswer is like weighSentence, for a sentence of an answer (the result of a call).
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

// isForeign reports whether a sentence seems to be in another language than English: at most a quarter of its words
// are known.
func (s *SentenceScorer) isForeign(sentence []textWord) bool {
	known, all, end := 0, 0, -1
	for i := range sentence {
		w := &sentence[i]
		if w.at < end { // another part of the same word
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

// isDescriptive reports whether the first word of a sentence is a verb in the third person ("Sends"). Such a sentence
// describes a tool, while an instruction begins with "Send".
func (s *SentenceScorer) isDescriptive(first *textWord) bool {
	k := s.wordKind(first)
	return k&kindInflected != 0 && k&^kindInflected >= s.firstVerb && k&^kindInflected <= s.lastVerb &&
		strings.HasSuffix(first.folded, "s")
}

// hasVerb reports whether a sentence has a verb in kinds.txt, or a word such as "must", "not" or "you". A sentence that
// is only a name has no such word.
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

// talksAboutAttack reports whether a sentence contains a word about attacks.
func talksAboutAttack(sentence []textWord) bool {
	for i := range sentence {
		if sentence[i].concepts&conceptMention != 0 {
			return true
		}
	}
	return false
}

// harmlessWeight is the weight limit below which the words around an anchor are typical of honest results.
const harmlessWeight = -3

// A harmlessContext determines whether the words around an anchor in a result are typical of honest documents. If so, a
// match of a rule at that anchor becomes a note. Rules whose anchor is a word of another language than English do not
// use it.
type harmlessContext struct {
	scale *SentenceScorer
	words []textWord
	where TextOrigin
	// block, sentence and light describe the words that were weighed last: the number of their block, starting at 1,
	// their sentence, and the result.
	block, sentence int
	light           bool
}

func (n *harmlessContext) isHarmless(anchor int) bool {
	if n.where != FromResults {
		return false
	}
	// A quotation that is at most cited words away from a word about attacks is an example of an attack, even in
	// another sentence.
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

// isHarmless reports whether the words are typical of honest documents.
func (s *SentenceScorer) isHarmless(words []textWord) bool {
	l := FeatureSum{AnswersOnly: true}
	s.addFeatures(words, &l)
	return l.AnswerWeight() < harmlessWeight
}
