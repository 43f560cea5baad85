package injection

import (
	_ "embed" // what features weigh
	"math"
	"unicode"
)

//go:embed definitions.bin
var definitionWeights string

//go:embed answers.bin
var answerWeights string

// How many weights there are for answers, and for definitions. A feature's slot is its hash: that two share one
// matters as seldom as it happens.
const (
	AnswerSlots     = 1 << 20
	DefinitionSlots = 1 << 16
)

// WeightStepsPerUnit is how many steps of a weight in a table are one.
const WeightStepsPerUnit = 16

// A FeatureSum is what a sentence has on the scale.
type FeatureSum struct {
	// AnswersOnly reports that only what counts in answers is weighed.
	AnswersOnly bool
	// KeepSlots reports that slots are kept.
	KeepSlots bool

	// table has the weights of definitions.
	table                string
	definitions, answers weightSum
	// next has the slots of answers that were not looked up yet, n of them.
	next [slotsPerLookup]uint32
	n    int
}

// slotsPerLookup is how many slots of answers are looked up one right after the other. Their table is more than a
// processor has at hand: what it is asked for at once, it waits for once.
const slotsPerLookup = 128

// A weightSum is how many steps of a table so many features come to, and their slots in it, where they are kept.
type weightSum struct {
	steps, features int
	slots           []uint32
}

func (s *weightSum) add(table string, slots []uint32, keep bool) {
	steps := 0
	for _, slot := range slots {
		steps += int(int8(table[slot]))
	}
	s.steps += steps
	s.features += len(slots)
	if keep {
		s.slots = append(s.slots, slots...)
	}
}

// weight grows with the root of the features only, or long sentences were the heavy ones.
func (s *weightSum) weight() float64 {
	return float64(s.steps) / WeightStepsPerUnit / math.Sqrt(float64(s.features)+1)
}

// The sorts of features that Pieces adds, which only answers are weighed by. Those of others are below.
const (
	featureWordStart = 16 + iota
	featureTwoLetters
	featureThreeLetters
)

// Add adds a feature of a sort, of one thing or two.
func (l *FeatureSum) Add(sort, a, b uint32) {
	h := sort*0x9E3779B1 ^ a*0x85EBCA6B ^ b*0xC2B2AE35
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 12
	h *= 0x297A2D39
	h ^= h >> 15
	if !l.AnswersOnly && sort < featureWordStart {
		l.definitions.add(l.table, []uint32{h % DefinitionSlots}, l.KeepSlots)
	}
	if l.n == slotsPerLookup {
		l.addPending()
	}
	l.next[l.n] = h % AnswerSlots
	l.n++
}

// addPending looks up what was added.
func (l *FeatureSum) addPending() {
	l.answers.add(answerWeights, l.next[:l.n], l.KeepSlots)
	l.n = 0
}

// Slots returns the slots of the features in either table, if KeepSlots.
func (l *FeatureSum) Slots() (definitions, answers []uint32) {
	l.addPending()
	return l.definitions.slots, l.answers.slots
}

// AddWordPieces adds how a folded word begins that is of no kind: in most languages that is what its forms share. Of
// one in a script without spaces, which is several words, each two and three letters are added.
func (l *FeatureSum) AddWordPieces(word string) {
	const letters = 5
	n := 0
	for i, r := range word {
		switch n {
		case 0:
			if IsUnspacedScript(r) {
				l.addLetterRuns(word)
				return
			}
		case letters:
			l.Add(featureWordStart, FeatureHash(word[:i]), 0)
			return
		}
		n++
	}
}

// addLetterRuns adds each two and each three letters of a word that stand side by side.
func (l *FeatureSum) addLetterRuns(word string) {
	var at [3]int // where the last letters begin
	n := 0
	edge := func(i int) {
		if n >= 2 {
			l.Add(featureTwoLetters, FeatureHash(word[at[(n-2)%3]:i]), 0)
		}
		if n >= 3 {
			l.Add(featureThreeLetters, FeatureHash(word[at[n%3]:i]), 0)
		}
		at[n%3] = i
		n++
	}
	for i := range word {
		edge(i)
	}
	edge(len(word))
}

// AnswerWeight is the weight of the features in an answer: above zero, they are more like those of an order.
func (l *FeatureSum) AnswerWeight() float64 {
	l.addPending()
	return l.answers.weight()
}

// DefinitionWeight is their weight in a definition. There both tables count: each was learned from what the other
// has not seen, and together they are wrong less often than either.
func (l *FeatureSum) DefinitionWeight() float64 {
	return (l.definitions.weight() + l.AnswerWeight()) / 2
}

// FeatureHash is a text as what a feature is of.
func FeatureHash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// IsUnspacedScript reports whether a letter is of a script that has no spaces between words.
func IsUnspacedScript(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}
