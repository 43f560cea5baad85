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

// The numbers of weights for answers and for definitions. The slot of a feature is its hash. Two features seldom share
// a slot.
const (
	AnswerSlots     = 1 << 20
	DefinitionSlots = 1 << 16
)

// WeightStepsPerUnit is the number of steps in a table that make a weight of one.
const WeightStepsPerUnit = 16

// A FeatureSum is the sum of the weights of a sentence's features.
type FeatureSum struct {
	// AnswersOnly is set if only the weights for answers are summed.
	AnswersOnly bool
	// KeepSlots is set if Slots should return the slots.
	KeepSlots bool

	definitions, answers weightSum
	// next has the slots of answers that were not looked up yet, n of them.
	next [slotsPerLookup]uint32
	n    int
}

// slotsPerLookup is the number of slots of answers that are looked up together. Their table exceeds the processor's
// cache, and loads in a row overlap.
const slotsPerLookup = 128

// A weightSum has the sum of steps of a number of features in one table, and optionally their slots.
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

// weight returns the sum divided by the root of the number of features. Without that, long sentences would be heavier.
func (s *weightSum) weight() float64 {
	return float64(s.steps) / WeightStepsPerUnit / math.Sqrt(float64(s.features)+1)
}

// The sorts of features that AddWordPieces adds. They count in answers only. All other sorts have smaller numbers.
const (
	featureWordStart = 16 + iota
	featureTwoLetters
	featureThreeLetters
)

// Add adds a feature of a sort, with one or two values.
func (l *FeatureSum) Add(sort, a, b uint32) {
	h := sort*0x9E3779B1 ^ a*0x85EBCA6B ^ b*0xC2B2AE35
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 12
	h *= 0x297A2D39
	h ^= h >> 15
	if !l.AnswersOnly && sort < featureWordStart {
		l.definitions.add(definitionWeights, []uint32{h % DefinitionSlots}, l.KeepSlots)
	}
	if l.n == slotsPerLookup {
		l.addPending()
	}
	l.next[l.n] = h % AnswerSlots
	l.n++
}

// addPending looks up the weights of the pending slots.
func (l *FeatureSum) addPending() {
	l.answers.add(answerWeights, l.next[:l.n], l.KeepSlots)
	l.n = 0
}

// Slots returns the slots of all features in both tables, if KeepSlots is set.
func (l *FeatureSum) Slots() (definitions, answers []uint32) {
	l.addPending()
	return l.definitions.slots, l.answers.slots
}

// AddWordPieces adds the beginning of a folded word without a kind, which its forms share in most languages. For a
// script without spaces, where it is several words, it adds all pairs and triples of letters.
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

// addLetterRuns adds all pairs and triples of neighbouring letters of a word.
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

// AnswerWeight returns the weight in an answer. It is above zero if the sentence resembles an order.
func (l *FeatureSum) AnswerWeight() float64 {
	l.addPending()
	return l.answers.weight()
}

// DefinitionWeight returns the weight in a definition, the mean of both tables. They were learned from different texts,
// and together they are wrong less often than each alone.
func (l *FeatureSum) DefinitionWeight() float64 {
	return (l.definitions.weight() + l.AnswerWeight()) / 2
}

// FeatureHash returns a text as a value for Add.
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
