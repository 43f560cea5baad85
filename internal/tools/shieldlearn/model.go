package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A model contains a weight for each slot of a weight table.
type model struct {
	weights [shield.AnswerSlots]float64
}

func (m *model) weight(slots []uint32) float64 {
	sum := 0.0
	for _, n := range slots {
		sum += m.weights[n]
	}
	return sum / math.Sqrt(float64(len(slots))+1)
}

// table returns the weights of the first slots slots, in the format of the shield's weight tables.
func (m *model) table(slots int) []byte {
	out := make([]byte, slots)
	for i, w := range m.weights[:slots] {
		out[i] = byte(int8(math.Round(max(-127, min(127, w*shield.WeightStepsPerUnit)))))
	}
	return out
}

// readModel reads a model from a file in the format of the shield's weight tables.
func readModel(file string) (*model, error) {
	table, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(table) > shield.AnswerSlots {
		return nil, fmt.Errorf("read %s: %d weights, want %d at most", file, len(table), shield.AnswerSlots)
	}
	m := &model{}
	for i, w := range table {
		m.weights[i] = float64(int8(w)) / shield.WeightStepsPerUnit
	}
	return m, nil
}

// meanWith returns the mean of two models.
func (m *model) meanWith(other *model) *model {
	mean := &model{}
	for i := range mean.weights {
		mean.weights[i] = (m.weights[i] + other.weights[i]) / 2
	}
	return mean
}

// turns is the number of models that are learned from the same sentences, each from another sequence of them. The
// result is the mean of these models, which depends less on the sequence.
const turns = 3

// few is the number of sentences of an honest text that are always used for training. A further sentence is used only
// if its weight is at least heavy.
const (
	few   = 12
	heavy = -2.5
)

// learn returns a model that is learned from the texts for which leave returns false. It learns in two rounds. The
// first round uses all sentences of texts with an instruction, and the first few sentences of each honest text. From a
// text with an instruction, the second round uses only sentences with a weight of at least zero, and the sentence with
// the largest weight. From an honest text, it also uses further sentences whose weight is at least heavy.
func learn(texts []*text, leave func(*text) bool) *model {
	var m *model
	for range 2 {
		var all []*sentence
		for _, t := range texts {
			if leave(t) {
				continue
			}
			least := math.Inf(-1)
			if m != nil && t.order {
				least = min(m.heaviest(t), 0) - 1e-9
			}
			for i, s := range t.sentences {
				if i >= few && !t.order && (m == nil || m.weight(s.slots) < heavy) {
					continue
				}
				if m == nil || !t.order || m.weight(s.slots) >= least {
					all = append(all, &sentence{slots: s.slots, order: t.order, counts: t.counts})
				}
			}
		}
		m = &model{}
		for turn := range turns {
			for i, w := range descend(all, turn).weights {
				m.weights[i] += w / turns
			}
		}
	}
	return m
}

// descend learns a model by logistic regression, with a step size that shrinks separately for each weight (AdaGrad).
// turn selects the pseudo-random sequence in which the sentences are used.
func descend(all []*sentence, turn int) *model {
	const (
		rounds = 6
		step   = 0.2
		shrink = 3e-5
	)
	m := &model{}
	var moved [shield.AnswerSlots]float64
	order := rand.New(rand.NewPCG(1, uint64(2+turn)))
	for range rounds {
		for _, i := range order.Perm(len(all)) {
			s := all[i]
			want := 0.0
			if s.order {
				want = 1
			}
			off := (1/(1+math.Exp(-m.weight(s.slots))) - want) * s.counts
			if math.Abs(off) < 1e-4 {
				continue
			}
			off /= math.Sqrt(float64(len(s.slots)) + 1)
			for _, n := range s.slots {
				g := off + shrink*m.weights[n]
				moved[n] += g * g
				m.weights[n] -= step * g / math.Sqrt(1e-4+moved[n])
			}
		}
	}
	return m
}
