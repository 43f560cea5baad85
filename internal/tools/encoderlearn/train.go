package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	dims      = 128
	pieceRows = 8192
	// batch is the number of pairs of a question and an answer in a batch. together is the number of consecutive
	// entries that are put into the same batch. Consecutive entries are similar, so it is harder, and more useful, to
	// distinguish their answers.
	batch    = 256
	together = 16
	rounds   = 2
	pace     = 0.03
	// warmth is the temperature of the softmax. With a smaller value, the wrong answers that are nearest to the
	// question have more influence.
	warmth = 0.05
	// hidden is the share of words with a row that are replaced by their pieces during training, see lesson.bag.
	hidden = 0.05
)

// A model contains a row of dims numbers for each word, followed by a row for each slot of word pieces (see
// index.WordPieces).
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

// learn trains the model on batches of entries. Each step moves the vector of a question nearer to its own answer,
// and away from the other answers in the batch. It also moves the vector of each answer nearer to its own question,
// and away from the other questions.
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

// contrast computes the gradients of the loss for all questions and answers of the batch. It returns the loss
// (InfoNCE; van den Oord, Li, Vinyals 2018). If the names of two entries are equal, the answer of one is not a wrong
// answer for the other.
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

// soften computes the softmax loss of one row or column of near and returns it. It adds the gradients of that loss to
// pull. The first element of the row or column has the index from, and the following elements are apart indexes
// apart. The element with the number own is the right answer.
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
