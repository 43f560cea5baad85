package words

import (
	_ "embed" // the kinds of words and what they weigh
	"math"
	binary "math/bits"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/shield/scale"
)

//go:embed kinds.txt
var kindList string

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
		return 0.4
	case Member:
		return -2.4
	case Answer:
		return 0.4
	case undone:
		return -2
	}
	return 1.3 // Instructions
}

// lightest gives what a sentence may weigh that has no word of what stands around it (Topic).
func lightest(at Place) float64 {
	switch at {
	case Description:
		return -1.4
	case Schema:
		return -1.7
	case Answer:
		return -0.4
	}
	return heaviest(at)
}

// fewestAround is how many words of a topic an answer has that a sentence can be strange to.
const fewestAround = 25

// What a sentence of an answer may weigh that speaks to the model which reads it, that names one and says what is to be done, that says what
// models have to do and has no word of what stands around it, and that is in another language than English: honest answers have few of these.
const (
	addressing = -3
	naming     = -1.2
	obliging   = -1.8
	foreignly  = -0.5
)

// certain is what an order in an answer weighs that is one even where it has a word about attacks.
const certain = 1.5

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
	// abroad has the kinds of what words of other languages are about, by their concepts.
	abroad [64]uint8
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
		for about, kind := range foreignKinds {
			if kind == name {
				s.abroad[binary.TrailingZeros64(uint64(about))] = n
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

// foreignKinds has the kind that a word of another language is of, by what it is about.
var foreignKinds = map[concepts]string{
	wignore: "ignore", winstr: "rules", wprior: "previous", wnot: "never", wtell: "tell", wuser: "user", wsecret: "secret", wsend: "send",
	wsystem: "task", wmodel: "model", wreader: "model", wdo: "delete",
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
	if of := w.has & foreignWords; of != 0 {
		return s.abroad[binary.TrailingZeros64(uint64(of))]
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
func (s *Scale) put(words []word, l *scale.Load) {
	const near = 6
	var last [near]uint32
	beforeWord := uint32(0)
	before, twoBefore, n := uint32(255), uint32(255), 0
	about := concepts(0)
	for i := range words {
		w := &words[i]
		about |= w.has
		k := uint32(s.kind(w))
		word := scale.Hash(w.folded)
		for _, f := range [...][3]uint32{{1, k, 0}, {2, word, 0}, {3, before, k}, {10, beforeWord, word}, {4, twoBefore, k}, {15, twoBefore<<16 | before, k}} {
			l.Add(f[0], f[1], f[2])
		}
		if k == 0 {
			l.Pieces(w.folded)
		}
		beforeWord = word
		switch i {
		case 0:
			l.Add(5, k, 0)
			l.Add(13, word, 0)
		case 1:
			l.Add(6, before, k)
		}
		if bare := k &^ inflected; bare > smallKinds {
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

// A Sentence is what a learner sees of one.
type Sentence struct {
	Text string
	// Definitions and Answers are the slots of its features in either table (shield/scale).
	Definitions, Answers []uint32
	// Strange says that no word of it stands in what is around it.
	Strange bool
	// Mention says that it talks about an attack.
	Mention bool
}

// Sentences gives the sentences of a text that can be weighed. About is what the text stands in, of which it is a part if own.
func (in *Inspector) Sentences(text string, about Topic, own bool) (all []Sentence) {
	room := in.reader.read(text)
	defer in.reader.free(room)
	in.scale.each(room.all, func(words []word) {
		l := scale.Load{Keep: true}
		in.scale.put(words, &l)
		definitions, answers := l.Slots()
		all = append(all, Sentence{text[words[0].at:words[len(words)-1].end], definitions, answers, in.scale.strange(words, about, own), talksOf(words)})
	})
	return all
}

// each gives the sentences of a text that can be weighed.
func (s *Scale) each(words []word, found func([]word)) {
	for from, to := 0, 0; from < len(words); from = to {
		for to = from; to < len(words) && to-from < mostWords && words[to].sentence == words[from].sentence; to++ {
		}
		if enough(words[from:to], fewestWords) {
			found(words[from:to])
		}
	}
}

// enough says whether a sentence has so many words, or as much in a script that parts none.
func enough(sentence []word, fewest int) bool {
	const letters = 3 // bytes of one
	return len(sentence) >= fewest || sentence[0].signs&foreignSign != 0 && sentence[len(sentence)-1].end-sentence[0].at >= 2*fewest*letters &&
		strings.ContainsFunc(sentence[0].folded, scale.Unspaced)
}

// Weighed is the rule of a sentence that is heavy for where it stands.
const Weighed = "order"

// weighed names the heaviest sentence of a text, if it is heavier than honest ones are at its place. One that talks about an
// attack is noted.
func (in *Inspector) weighed(words []word, text string, at Place, about func() Topic) (found []Finding) {
	if at == Nowhere {
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
		if talksOf(sentence) && (at != Answer || w < certain) {
			f.Act = Note
		}
		found = []Finding{f}
	})
	return found
}

// weight is what the load comes to at a place.
func weight(l *scale.Load, at Place) float64 {
	if at < Answer {
		return l.Definitions()
	}
	return l.Answers()
}

// counts gives what a sentence weighs, and says whether that is more than most, and more than honest ones weigh at its place. It is not
// weighed where it could not count.
func (in *Inspector) counts(sentence []word, most float64, text string, at Place, about func() Topic) (w float64, ok bool) {
	if at == Answer {
		return in.countsInAnswer(sentence, most, text, about)
	}
	var l scale.Load
	in.scale.put(sentence, &l)
	if w = weight(&l, at); w <= most {
		return w, false
	}
	heavy, light := heaviest(at), lightest(at)
	if (at == Description || at == Schema) && in.scale.describes(&sentence[0]) {
		light, heavy = heavy, heavy+1
	}
	return w, w > heavy || w > light && about != nil && in.scale.acts(sentence) && in.scale.strange(sentence, about(), at == Description)
}

// countsInAnswer is counts for a sentence of an answer.
func (in *Inspector) countsInAnswer(sentence []word, most float64, text string, about func() Topic) (w float64, ok bool) {
	to := in.scale.addressed(sentence, text)
	if to < toModels && !enough(sentence, fewestInAnswers) {
		return 0, false
	}
	l := scale.Load{Short: true}
	in.scale.put(sentence, &l)
	if w = l.Answers(); w <= most || to == toForeign {
		return w, w > most
	}
	heavy, light := heaviest(Answer), lightest(Answer)
	switch {
	case to == toModels:
		return w, w > addressing
	case in.scale.foreign(sentence):
		heavy = foreignly
	case w > naming && namesModel(sentence) && in.scale.acts(sentence):
		return w, true
	case to == ofModels:
		light = obliging
	}
	if w > heavy || w <= light || about == nil || !in.scale.acts(sentence) {
		return w, w > heavy
	}
	topic := about()
	return w, len(topic) >= fewestAround && in.scale.strange(sentence, topic, true)
}

// foreign says whether a sentence is in another language than English, as far as its words tell: one in four at most is of a kind.
func (s *Scale) foreign(sentence []word) bool {
	known, all, end := 0, 0, -1
	for i := range sentence {
		w := &sentence[i]
		if w.at < end { // found within the last
			continue
		}
		end = w.end
		all++
		if w.kind != 0 || w.has&(ident|address|pathname) != 0 || w.folded != "" && w.folded[0] <= '9' {
			known++
		}
	}
	return known*4 <= all
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
	l := scale.Load{Short: true}
	s.put(words, &l)
	return l.Answers() < harmless
}
