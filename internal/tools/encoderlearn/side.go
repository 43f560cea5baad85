package main

import "math"

// A side contains all questions or all answers of a batch. vector contains their vectors, scaled to length 1. length
// contains the lengths of the vectors before scaling. want contains the gradients of the loss with respect to vector.
type side struct {
	bags                 []bag
	vector, length, want []float32
}

func newSide() *side {
	return &side{make([]bag, batch), make([]float32, batch*dims), make([]float32, batch), make([]float32, batch*dims)}
}

func (s *side) fill(m *model) {
	clear(s.vector)
	clear(s.want)
	for i, b := range s.bags {
		v := row(s.vector, int32(i))
		for j, r := range b.rows {
			add(v, row(m.rows, r), b.count[j])
		}
		n := float32(math.Sqrt(float64(dot(v, v)))) + 1e-6
		s.length[i] = n
		for d := range v {
			v[d] /= n
		}
	}
}

// step changes the rows of each bag so that the loss decreases: it moves them against the gradient (AdaGrad). pace is
// the learning rate.
func (s *side) step(m *model, pace float32) {
	var g [dims]float32
	for i, b := range s.bags {
		v, want := row(s.vector, int32(i)), row(s.want, int32(i))
		along := dot(v, want)
		for d := range g {
			g[d] = (want[d] - float32(along*v[d])) / s.length[i]
		}
		for j, r := range b.rows {
			rows, moved, count := row(m.rows, r), row(m.moved, r), b.count[j]
			for d, x := range g {
				x *= count
				moved[d] += float32(x * x)
				rows[d] -= float32(pace*x) / float32(math.Sqrt(float64(moved[d])))
			}
		}
	}
}

// dot returns the dot product of two vectors. Each product is rounded before it is added. Otherwise a machine with a
// fused multiply-add instruction would compute another result.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for i := 0; i+4 <= len(a); i += 4 {
		s0 += float32(a[i] * b[i])
		s1 += float32(a[i+1] * b[i+1])
		s2 += float32(a[i+2] * b[i+2])
		s3 += float32(a[i+3] * b[i+3])
	}
	return (s0 + s1) + (s2 + s3)
}

func add(to, from []float32, times float32) {
	from = from[:len(to)]
	for i := range to {
		to[i] += float32(from[i] * times)
	}
}
