package main

import (
	"bytes"
	"fmt"
	"testing"
)

// TestLearn learns from a small world in which "alpha" is asked for and "beta" answers: they come to lie near, and
// twice the same comes out.
func TestLearn(t *testing.T) {
	var all []entry
	for i := range 256 {
		word := fmt.Sprintf("%c%c", 'a'+i%16, 'a'+i/16%16)
		all = append(all, entry{From: "x", Name: "beta" + word, Text: "alpha" + word + " comes first"})
	}
	g := &general{vectors: map[string][]float32{}, rank: map[string]int{}}
	weights := func() ([]byte, *lesson, *model) {
		l := newLesson(all, g)
		m := l.begin(g)
		l.learn(m)
		return m.weights(l.names), l, m
	}
	first, l, m := weights()
	second, _, _ := weights()
	if !bytes.Equal(first, second) {
		t.Error("the same entries give other weights")
	}
	near, far := 0.0, 0.0
	for i := range 200 {
		word := fmt.Sprintf("%c%c", 'a'+i%16, 'a'+i/16%16)
		other := fmt.Sprintf("%c%c", 'a'+(i+5)%16, 'a'+(i/16+3)%16)
		a := row(m.rows, l.rows["alpha"+word])
		near += float64(dot(a, row(m.rows, l.rows["beta"+word])))
		far += float64(dot(a, row(m.rows, l.rows["beta"+other])))
	}
	if near <= far {
		t.Errorf("%f to the own, %f to others", near, far)
	}
}
