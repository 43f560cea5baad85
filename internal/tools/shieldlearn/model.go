package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

// A model has a weight for each slot.
type model struct {
	weights [injection.AnswerSlots]float64
}

func (m *model) weight(slots []uint32) float64 {
	sum := 0.0
	for _, n := range slots {
		sum += m.weights[n]
	}
	return sum / math.Sqrt(float64(len(slots))+1)
}

// table has the weights of so many slots as the shield keeps them.
func (m *model) table(slots int) []byte {
	out := make([]byte, slots)
	for i, w := range m.weights[:slots] {
		out[i] = byte(int8(math.Round(max(-127, min(127, w*injection.WeightStepsPerUnit)))))
	}
	return out
}

// readModel returns the model of a table as the shield keeps it.
func readModel(file string) (*model, error) {
	table, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(table) > injection.AnswerSlots {
		return nil, fmt.Errorf("read %s: %d weights, want %d at most", file, len(table), injection.AnswerSlots)
	}
	m := &model{}
	for i, w := range table {
		m.weights[i] = float64(int8(w)) / injection.WeightStepsPerUnit
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

// turns is how often it is learned, each time from the same sentences in another order: what the order has made of the
// weights is less in their mean.
const turns = 3

// few is how many sentences of an honest text count whatever they weigh, and heavy what others weigh that count.
const (
	few   = 12
	heavy = -2.5
)

// learn makes a model of the texts that are not left out, in two rounds: in the second, of a text with an order only
// those sentences count that the first found heavy, or the heaviest; and of a long honest one also those that are like
// orders.
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

// descend is logistic regression by steps that grow smaller for each weight by itself (AdaGrad), from the sentences in
// the order of a turn.
func descend(all []*sentence, turn int) *model {
	const (
		rounds = 6
		step   = 0.2
		shrink = 3e-5
	)
	m := &model{}
	var moved [injection.AnswerSlots]float64
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
