package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	dims      = 128
	pieceRows = 8192
	// batch is the number of pairs in a batch. together is the number of neighbouring entries that are in the same
	// batch. They are similar, and so harder to distinguish.
	batch    = 256
	together = 16
	rounds   = 2
	pace     = 0.03
	// warmth is the temperature of the softmax. The smaller it is, the more the nearest wrong answers count.
	warmth = 0.05
	// hidden is the share of known words that are treated as unknown.
	hidden = 0.05
)

// A model contains a row of numbers for each word and each slot of word pieces.
type model struct {
	rows  []float32
	moved []float32 // for each number, the sum of its squared gradients (AdaGrad)
}

func newModel(n int) *model {
	m := &model{rows: make([]float32, n*dims), moved: make([]float32, n*dims)}
	for i := range m.moved {
		m.moved[i] = 1e-3
	}
	return m
}

func row(all []float32, i int32) []float32 {
	return all[int(i)*dims : (int(i)+1)*dims : (int(i)+1)*dims]
}

// learn trains the model on batches of entries. It moves the vector of a question nearer to its own answer than to
// the other answers in the batch. It does the same for each answer and the questions.
func (l *lesson) learn(m *model) {
	r := rand.New(rand.NewPCG(1, 2))
	p := newPairs()
	runs := len(l.entries) / together
	total := rounds * (runs / (batch / together))
	done, loss := 0, 0.0
	for range rounds {
		order := r.Perm(runs)
		for at := 0; at+batch/together <= runs; at += batch / together {
			for i, run := range order[at : at+batch/together] {
				for k := range together {
					p.put(i*together+k, l, &l.entries[run*together+k], r)
				}
			}
			p.asked.fill(m)
			p.offered.fill(m)
			loss += p.contrast()
			slower := float32(pace * (1 - 0.9*float64(done)/float64(total)))
			p.asked.step(m, slower)
			p.offered.step(m, slower)
			if done++; done%200 == 0 {
				fmt.Printf("%d of %d: %.3f\n", done, total, loss/200)
				loss = 0
			}
		}
	}
}

// pairs is a batch of questions and answers.
type pairs struct {
	asked, offered *side
	titles         []string
	near, pull     []float32 // for each question and answer: their scaled similarity, and its gradient
}

func newPairs() *pairs {
	return &pairs{newSide(), newSide(), make([]string, batch), make([]float32, batch*batch),
		make([]float32, batch*batch)}
}

func (p *pairs) put(i int, l *lesson, c *cut, r *rand.Rand) {
	asked, offered := l.pair(c, r)
	p.asked.bags[i], p.offered.bags[i], p.titles[i] = l.bag(asked, r), l.bag(offered, r), c.title
}

// contrast computes the gradients of both sides and returns the loss (InfoNCE; van den Oord, Li, Vinyals 2018). An
// answer with the same name as the right answer does not count as a wrong answer.
func (p *pairs) contrast() (loss float64) {
	for i := range batch {
		v := row(p.asked.vector, int32(i))
		for j := range batch {
			p.near[i*batch+j] = dot(v, row(p.offered.vector, int32(j))) / warmth
			if i != j && p.titles[i] == p.titles[j] {
				p.near[i*batch+j] = -1e9
			}
		}
	}
	clear(p.pull)
	for i := range batch {
		loss += p.soften(i*batch, 1, i) + p.soften(i, batch, i)
	}
	for i := range batch {
		want, v := row(p.asked.want, int32(i)), row(p.asked.vector, int32(i))
		for j := range batch {
			if pull := p.pull[i*batch+j]; pull > 1e-4 || pull < -1e-4 {
				add(want, row(p.offered.vector, int32(j)), pull)
				add(row(p.offered.want, int32(j)), v, pull)
			}
		}
	}
	return loss / (2 * batch)
}

// soften adds the softmax gradients of one row or column of near to pull, and returns its loss. The row or column
// begins at index from, and its elements are apart indexes apart. The element number own is the right answer.
func (p *pairs) soften(from, apart, own int) float64 {
	most := float32(-1e9)
	for k := range batch {
		most = max(most, p.near[from+k*apart])
	}
	var sum float64
	var shares [batch]float64
	for k := range shares {
		shares[k] = math.Exp(float64(p.near[from+k*apart] - most))
		sum += shares[k]
	}
	for k, share := range shares {
		share /= sum
		if k == own {
			share--
		}
		p.pull[from+k*apart] += float32(share / 2)
	}
	return -math.Log(shares[own]/sum + 1e-12)
}
