package words

import (
	_ "embed" // the kinds of words and what they weigh
	"math"
	binary "math/bits"
	"strings"
)

//go:embed kinds.txt
var kindList string

//go:embed weights.bin
var weightTable string

//go:embed answers.bin
var answerTable string

// A Place says how much prose that tells somebody what to do belongs where a text stands.
type Place int

const (
	// Nowhere has no text weighed: what is said to people.
	Nowhere Place = iota
	// Instructions are for a model, and tell it what to do.
	Instructions
	// Description is that of a tool as a whole, which may say how to use it.
	Description
	// Schema is a description within a schema, which says what a value is.
	Schema
	// Member is a title, a default, an example, a member of _meta: seldom prose at all.
	Member
	// Answer is what a call answered, which may be any document.
	Answer
	// undone is what was written in letters that stand for others.
	undone
)

// heaviest gives what a sentence may weigh at a place before it counts as an order: what one or two in a thousand honest tools, which
// the weights were not learned from, have something heavier than. It does not depend on how much stands around the sentence, or an
// order could be hidden in a long text.
func heaviest(at Place) float64 {
	switch at {
	case Description:
		return 0.7
	case Schema:
		return 0.3
	case Member:
		return -2.2
	case Answer:
		return 0.3
	case undone:
		return -2
	}
	return 1.5 // Instructions
}

// lightest gives what a sentence may weigh that has no word of what stands around it (Topic).
func lightest(at Place) float64 {
	switch at {
	case Description:
		return -1.4
	case Schema:
		return -1.8
	case Answer:
		return -1.2
	}
	return heaviest(at)
}

// fewestAround is how many words of a topic an answer has that a sentence can be strange to.
const fewestAround = 25

// addressing is what a sentence of an answer may weigh that speaks to the model which reads it.
const addressing = -3

// fewestWords is how many words a sentence has that is weighed.
const fewestWords = 5

// fewestInAnswers is that of answers, where headings and halves of sentences are many.
const fewestInAnswers = 7

// mostWords is how many words are weighed together: of what goes on longer each stretch is weighed alone, since what is said again
// and again would grow heavy by that.
const mostWords = 64

// A Scale weighs sentences: how much one is like those that give a model orders, and how little like those that describe a tool.
// It looks at kinds of words and at which stand near each other, so that an order in words of its own is heavy as well. What each
// weighs was learned from orders and honest definitions (internal/shieldlearn).
type Scale struct {
	known map[string]fact
	// lastPlain is the last of the kinds at the head of the list whose words are of no topic, and everywhere has the others.
	lastPlain  uint8
	everywhere [256]bool
	// firstVerb and lastVerb are the first and the last of the kinds of what can be done.
	firstVerb, lastVerb uint8
}

// Slots is how many weights there are. A feature's slot is its hash: that two share one matters as seldom as it happens.
const Slots = 1 << 16

// A Load is what a sentence has on the scale.
type Load struct {
	definitions, answers, n int  // steps of either table, and how many features there are
	short                   bool // only what counts in answers is weighed
	// Slots has the features' slots, if Keep.
	Slots []uint32
	Keep  bool
	// Strange says that no word of it stands in what is around it.
	Strange bool
	// Mention says that it talks about an attack.
	Mention bool
}

func (l *Load) add(sort, a, b uint32) {
	h := sort*0x9E3779B1 ^ a*0x85EBCA6B ^ b*0xC2B2AE35
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 12
	h *= 0x297A2D39
	h ^= h >> 15
	h %= Slots
	if !l.short {
		l.definitions += int(int8(weightTable[h]))
	}
	l.answers += int(int8(answerTable[h]))
	l.n++
	if l.Keep {
		l.Slots = append(l.Slots, h)
	}
}

// PerUnit is how many steps of a weight in the table are one.
const PerUnit = 16

// weight is what the load comes to at a place: above zero for what is more like an order. In definitions both tables count: each was
// learned from what the other has not seen, and together they are wrong less often than either.
func (l *Load) weight(at Place) float64 {
	total := float64(l.answers)
	if at < Answer {
		total = float64(l.definitions+l.answers) / 2
	}
	return total / PerUnit / math.Sqrt(float64(l.n)+1)
}

// newScale makes a scale, which takes the kinds of words to what else is known of them.
func newScale(known map[string]fact) *Scale {
	s := &Scale{known: known}
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
		for w := range strings.SplitSeq(all, ", ") {
			if of := known[w]; of.kind == 0 {
				of.kind = n
				known[w] = of
			}
		}
	}
	return s
}

// What stands for no word of the list, and what is added to the kind of a word in another form.
const (
	kindAddress = 120 + iota
	kindPath
	kindPlace
	kindName
	kindNumber
	inflected = 128
)

// smallKinds are the first kinds of the list, of small words: no pairs are kept of them.
const smallKinds = 18

// kind gives a word's kind, 0 for none.
func (s *Scale) kind(w *word) uint8 {
	switch {
	case w.has&address != 0:
		return kindAddress
	case w.has&pathname != 0:
		return kindPath
	case w.has&place != 0:
		return kindPlace
	}
	if w.kind != 0 {
		return w.kind
	}
	if k := s.stem(w.folded); k != 0 {
		return k | inflected
	}
	switch {
	case w.has&ident != 0:
		return kindName
	case w.folded != "" && w.folded[0] >= '0' && w.folded[0] <= '9':
		return kindNumber
	}
	return 0
}

// stem gives the kind of what a word is a form of.
func (s *Scale) stem(word string) uint8 {
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

// put lays a sentence's words on the scale.
func (s *Scale) put(words []word, l *Load) {
	const near = 6
	var last [near]uint32
	beforeWord := uint32(0)
	before, twoBefore, n := uint32(255), uint32(255), 0
	about := concepts(0)
	for i := range words {
		w := &words[i]
		about |= w.has
		k := uint32(s.kind(w))
		word := hashed(w.folded)
		for _, f := range [...][3]uint32{{1, k, 0}, {2, word, 0}, {3, before, k}, {10, beforeWord, word}, {4, twoBefore, k}, {15, twoBefore<<16 | before, k}} {
			l.add(f[0], f[1], f[2])
		}
		beforeWord = word
		switch i {
		case 0:
			l.add(5, k, 0)
			l.add(13, word, 0)
		case 1:
			l.add(6, before, k)
		}
		if bare := k &^ inflected; bare > smallKinds {
			for _, other := range last[:min(n, near)] {
				l.add(7, other, bare)
			}
			last[n%near] = bare
			n++
		}
		twoBefore, before = before, k
	}
	l.add(14, uint32(min(len(words)/4, 8)), 0)
	for rest := about; rest != 0; {
		a := binary.TrailingZeros64(uint64(rest))
		rest &= rest - 1
		l.add(8, uint32(a), 0)
		for others := rest; others != 0; others &= others - 1 {
			l.add(9, uint32(a), uint32(binary.TrailingZeros64(uint64(others))))
		}
	}
}

func hashed(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// Sentences gives what each sentence of a text has on the scale, and the text of it: what a learner needs. About is what the text
// stands in, of which it is a part if own.
func (in *Inspector) Sentences(text string, about Topic, own bool) (all []Load, texts []string) {
	room := in.reader.read(text)
	defer in.reader.free(room)
	in.scale.each(room.all, func(words []word) {
		l := Load{Keep: true}
		in.scale.put(words, &l)
		l.Mention = talksOf(words)
		l.Strange = in.scale.strange(words, about, own)
		all, texts = append(all, l), append(texts, text[words[0].at:words[len(words)-1].end])
	})
	return all, texts
}

// each gives the sentences of a text that can be weighed.
func (s *Scale) each(words []word, found func([]word)) {
	for from, to := 0, 0; from < len(words); from = to {
		for to = from; to < len(words) && to-from < mostWords && words[to].sentence == words[from].sentence; to++ {
		}
		if to-from >= fewestWords {
			found(words[from:to])
		}
	}
}

// Weighed is the rule of a sentence that is heavy for where it stands.
const Weighed = "order"

// weighed names the heaviest sentence of a text, if it is heavier than honest ones are at its place. One that talks about an
// attack is noted.
func (in *Inspector) weighed(words []word, text string, at Place, about func() Topic) (found []Finding) {
	if at == Nowhere || len(words) < fewestWords {
		return nil
	}
	most := math.Inf(-1)
	in.scale.each(words, func(sentence []word) {
		w, ok := in.counts(sentence, most, text, at, about)
		if !ok {
			return
		}
		most = w
		f := Finding{Weighed, "reads as an order to a model", Flag, sentence[0].at, sentence[len(sentence)-1].end}
		if talksOf(sentence) {
			f.Act = Note
		}
		found = []Finding{f}
	})
	return found
}

// counts gives what a sentence weighs, and says whether that is more than most, and more than honest ones weigh at its place. It is not
// weighed where it could not count.
func (in *Inspector) counts(sentence []word, most float64, text string, at Place, about func() Topic) (w float64, ok bool) {
	to := toNobody
	if at == Answer {
		if to = in.scale.addressed(sentence, text); to < toModels && len(sentence) < fewestInAnswers {
			return 0, false
		}
	}
	l := Load{short: at == Answer}
	in.scale.put(sentence, &l)
	if w = l.weight(at); w <= most {
		return w, false
	}
	light := lightest(at)
	switch to {
	case toForeign:
		return w, true
	case toModels:
		return w, w > addressing
	case ofModels:
		light = -1.8
	}
	heavy := heaviest(at)
	if (at == Description || at == Schema) && in.scale.describes(&sentence[0]) {
		light, heavy = heavy, heavy+1
	}
	if w > heavy || w <= light || about == nil || !in.scale.acts(sentence) {
		return w, w > heavy
	}
	topic := about()
	if at == Answer && len(topic) < fewestAround {
		return w, false
	}
	return w, in.scale.strange(sentence, topic, at == Description || at == Answer)
}

// describes says whether a sentence that begins with the word says what a tool does: "Sends", where an order has "Send".
func (s *Scale) describes(first *word) bool {
	k := s.kind(first)
	return k&inflected != 0 && k&^inflected >= s.firstVerb && k&^inflected <= s.lastVerb && strings.HasSuffix(first.folded, "s")
}

// acts says whether a sentence has a word for what can be done, or has to be: what names a thing has none.
func (s *Scale) acts(sentence []word) bool {
	for i := range sentence {
		w := &sentence[i]
		if k := s.kind(w) &^ inflected; k >= s.firstVerb && k <= s.lastVerb || w.has&(must|not|you) != 0 {
			return true
		}
	}
	return false
}

// talksOf says whether a sentence talks about an attack.
func talksOf(sentence []word) bool {
	for i := range sentence {
		if sentence[i].has&mention != 0 {
			return true
		}
	}
	return false
}

// harmless is what the words around a rule's anchor weigh in an answer that is like honest ones.
const harmless = -3

// An innocence says of a word of an answer whether it stands among words that are as in honest documents: there a rule that is met
// counts for nothing. Words of other languages weigh nothing, and are never so.
type innocence struct {
	scale *Scale
	words []word
	where Whence
	// What was weighed last: block is counted from 1.
	block, sentence int
	light           bool
}

func (n *innocence) of(anchor int) bool {
	if n.where != Results {
		return false
	}
	const block, cited = 16, 30 // what is quoted so near to a word about attacks, in the same sentence or another, is one
	words, at, sentence := n.words, anchor/block, n.words[anchor].sentence
	if at+1 != n.block || sentence != n.sentence {
		from, to := anchor, anchor+1
		for from > max(0, (at-1)*block) && words[from-1].sentence == sentence {
			from--
		}
		for to < min(len(words), (at+2)*block) && words[to].sentence == sentence {
			to++
		}
		n.block, n.sentence, n.light = at+1, sentence, n.scale.light(words[from:to])
	}
	return n.light || words[anchor].quoted && talksOf(words[max(0, anchor-cited):min(len(words), anchor+cited)])
}

// light says whether words are as in honest documents.
func (s *Scale) light(words []word) bool {
	l := Load{short: true}
	s.put(words, &l)
	return l.weight(Answer) < harmless
}
