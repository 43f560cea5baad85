// Package scale has what the features of a sentence weigh: how much each is like what gives a model orders, and how little like what
// honest texts say.
//
// A feature is a number for its sort and one or two for what it is of: a word, a kind of words, two that stand side by side. What each
// weighs was learned from orders and honest texts (internal/shieldlearn), in definitions and in answers, each by itself.
package scale

import (
	_ "embed" // what features weigh
	"math"
	"unicode"
)

//go:embed definitions.bin
var definitions string

//go:embed answers.bin
var answers string

// How many weights there are for answers, and for definitions. A feature's slot is its hash: that two share one matters as seldom as it happens.
const (
	AnswerSlots     = 1 << 20
	DefinitionSlots = 1 << 16
)

// PerUnit is how many steps of a weight in a table are one.
const PerUnit = 16

// A Load is what a sentence has on the scale.
type Load struct {
	// Short says that only what counts in answers is weighed.
	Short bool
	// Keep says that slots are kept.
	Keep bool

	definitions, answers sum
	// next has the slots of answers that were not looked up yet, n of them.
	next [together]uint32
	n    int
}

// together is how many slots of answers are looked up one right after the other. Their table is more than a processor has at hand: what it
// is asked for at once, it waits for once.
const together = 128

// A sum is how many steps of a table so many features come to, and their slots in it, where they are kept.
type sum struct {
	steps, features int
	slots           []uint32
}

func (s *sum) add(table string, slots []uint32, keep bool) {
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
func (s *sum) weight() float64 { return float64(s.steps) / PerUnit / math.Sqrt(float64(s.features)+1) }

// The sorts of features that Pieces adds, which only answers are weighed by. Those of others are below.
const (
	start = 16 + iota
	two
	three
)

// Add adds a feature of a sort, of one thing or two.
func (l *Load) Add(sort, a, b uint32) {
	h := sort*0x9E3779B1 ^ a*0x85EBCA6B ^ b*0xC2B2AE35
	h ^= h >> 15
	h *= 0x2C1B3C6D
	h ^= h >> 12
	h *= 0x297A2D39
	h ^= h >> 15
	if !l.Short && sort < start {
		l.definitions.add(definitions, []uint32{h % DefinitionSlots}, l.Keep)
	}
	if l.n == together {
		l.settle()
	}
	l.next[l.n] = h % AnswerSlots
	l.n++
}

// settle looks up what was added.
func (l *Load) settle() {
	l.answers.add(answers, l.next[:l.n], l.Keep)
	l.n = 0
}

// Slots gives the slots of what was added in either table, if Keep.
func (l *Load) Slots() (definitions, answers []uint32) {
	l.settle()
	return l.definitions.slots, l.answers.slots
}

// Pieces adds how a folded word begins that is of no kind: in most languages that is what its forms share. Of one in a script without
// spaces, which is several words, each two and three letters are added.
func (l *Load) Pieces(word string) {
	const letters = 5
	n := 0
	for i, r := range word {
		switch n {
		case 0:
			if Unspaced(r) {
				l.runs(word)
				return
			}
		case letters:
			l.Add(start, Hash(word[:i]), 0)
			return
		}
		n++
	}
}

// runs adds each two and each three letters of a word that stand side by side.
func (l *Load) runs(word string) {
	var at [3]int // where the last letters begin
	n := 0
	edge := func(i int) {
		if n >= 2 {
			l.Add(two, Hash(word[at[(n-2)%3]:i]), 0)
		}
		if n >= 3 {
			l.Add(three, Hash(word[at[n%3]:i]), 0)
		}
		at[n%3] = i
		n++
	}
	for i := range word {
		edge(i)
	}
	edge(len(word))
}

// Answers is what the load comes to in an answer: above zero for what is more like an order.
func (l *Load) Answers() float64 {
	l.settle()
	return l.answers.weight()
}

// Definitions is what it comes to in a definition. There both tables count: each was learned from what the other has not seen, and
// together they are wrong less often than either.
func (l *Load) Definitions() float64 { return (l.definitions.weight() + l.Answers()) / 2 }

// Hash is a text as what a feature is of.
func Hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// Unspaced says whether a letter is of a script that has no spaces between words.
func Unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}
