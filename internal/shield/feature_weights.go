package shield

import (
	_ "embed" // the weights of features
	"math"
	"unicode"
)

//go:embed definitions.bin
var definitionWeights string

//go:embed answers.bin
var answerWeights string

// The sizes of the two weight tables. A feature's slot in a table is its hash modulo the size. Collisions are rare
// enough to be ignored.
const (
	AnswerSlots     = 1 << 20
	DefinitionSlots = 1 << 16
)

// WeightStepsPerUnit is the number of steps in a weight of 1. The tables store weights as whole steps.
const WeightStepsPerUnit = 16

// A FeatureSum adds the weights of a sentence's features. A feature is a property such as "has the word send" or "a
// verb follows a negation".
type FeatureSum struct {
	// AnswersOnly reports that only the weights for answers (results of calls) are added, and not the weights for
	// definitions.
	AnswersOnly bool
	// KeepSlots reports that the slot of each feature is stored, so that Slots can return it.
	KeepSlots bool

	// table contains the weights for definitions.
	table                string
	definitions, answers weightSum
	// next contains n slots of the answer table whose weights were not looked up yet.
	next [slotsPerLookup]uint32
	n    int
}

// slotsPerLookup is the number of slots that are looked up in a group. The answer table does not fit in the processor
// cache. The lookups of a group can wait for memory at the same time.
const slotsPerLookup = 128

// A weightSum is the sum of the weights of the features that were looked up in one table, in steps. The slots are
// stored only if KeepSlots is set.
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

// weight returns the sum divided by the square root of the number of features. Without this division, long sentences
// would always have the largest weights.
func (s *weightSum) weight() float64 {
	return float64(s.steps) / WeightStepsPerUnit / math.Sqrt(float64(s.features)+1)
}

// The sorts of features that AddWordPieces adds. They are used only in the table for answers. Sorts with lower numbers
// are used in the tables for definitions and for answers.
const (
	featureWordStart = 16 + iota
	featureTwoLetters
	featureThreeLetters
)

// Add adds the feature of the given sort with the values a and b. For a feature with only one value, pass 0 for b.
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

// addPending looks up the weights of the slots in next, adds the weights to the sum, and empties next.
func (l *FeatureSum) addPending() {
	l.answers.add(answerWeights, l.next[:l.n], l.KeepSlots)
	l.n = 0
}

// Slots returns the slots of the features in the two tables. They are nil unless KeepSlots is set.
func (l *FeatureSum) Slots() (definitions, answers []uint32) {
	l.addPending()
	return l.definitions.slots, l.answers.slots
}

// AddWordPieces adds features for a folded word that has no kind in kinds.txt. It adds the word's first five letters as
// one feature, because the forms of a word share them in most languages. In a script without spaces, it adds each
// sequence of two and three letters instead.
func (l *FeatureSum) AddWordPieces(word string) {
	const letters = 5
	n := 0
	for i, r := range word {
		switch n {
		case 0:
			if isUnspacedScript(r) {
				l.addLetterRuns(word)
				return
			}
		case letters:
			l.Add(featureWordStart, featureHash(word[:i]), 0)
			return
		}
		n++
	}
}

// addLetterRuns adds a feature for each sequence of two and three neighbouring letters of a word.
func (l *FeatureSum) addLetterRuns(word string) {
	var at [3]int // start offsets of the last three letters
	n := 0
	edge := func(i int) {
		if n >= 2 {
			l.Add(featureTwoLetters, featureHash(word[at[(n-2)%3]:i]), 0)
		}
		if n >= 3 {
			l.Add(featureThreeLetters, featureHash(word[at[n%3]:i]), 0)
		}
		at[n%3] = i
		n++
	}
	for i := range word {
		edge(i)
	}
	edge(len(word))
}

// AnswerWeight returns the weight of the features as a sentence of an answer (the result of a call). A weight above
// zero means that the sentence is more similar to an instruction to a model than to honest text.
func (l *FeatureSum) AnswerWeight() float64 {
	l.addPending()
	return l.answers.weight()
}

// DefinitionWeight returns the weight of the features as a sentence of a definition. It is the mean of the weights from
// both tables. The tables were learned from different texts, and their mean makes fewer errors than either table alone.
func (l *FeatureSum) DefinitionWeight() float64 {
	return (l.definitions.weight() + l.AnswerWeight()) / 2
}

// featureHash returns the hash of a text (32-bit FNV-1a), for use as a value of a feature.
func featureHash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// isUnspacedScript reports whether a letter belongs to a script that is written without spaces between words.
func isUnspacedScript(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}
