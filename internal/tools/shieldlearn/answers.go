package main

import (
	_ "embed" // for the grammars of orders and honest texts in answers
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

//go:embed answers.txt
var answers string

//go:embed letters.txt
var letters string

// Limits of the training data. mostSaid and mostLetters are the numbers of texts that are generated from answers.txt
// and letters.txt. mostSentence is the maximum number of sentences from one document.
const (
	mostSaid     = 12000
	mostLetters  = 24000
	mostSentence = 400
)

// answered contains the training data for answers (results of calls).
type answered struct {
	in    *shield.Inspector
	texts []*text
}

// read adds the training texts. These are instructions and honest texts from the two grammars and from said/, the
// labelled results of calls, and the documents.
func (a *answered) read(l *lesson, docs string) error {
	for _, of := range []struct {
		list  string
		order bool
		most  int
	}{{answers, true, mostSaid}, {letters, false, mostLetters}} {
		g, err := newGrammar(of.list)
		if err != nil {
			return err
		}
		v, err := newVariety("internal/shield/kinds.txt")
		if err != nil {
			return err
		}
		for n := range of.most {
			s := g.say()
			if n%3 == 0 {
				s = v.other(s)
			}
			a.add(&text{order: of.order, counts: 1}, s)
		}
	}
	if err := a.said(); err != nil {
		return err
	}
	for _, t := range l.texts {
		if !t.tool {
			a.texts = append(a.texts, t.asAnswer())
		}
	}
	for file := range strings.SplitSeq(docs, ",") {
		if err := each(file, a.document); err != nil {
			return err
		}
	}
	return nil
}

// document adds at most mostSentence sentences of a document. The choice of sentences is random but always the same.
func (a *answered) document(n int, line []byte) error {
	var d struct{ Source, Text string }
	if err := json.Unmarshal(line, &d); err != nil {
		return err
	}
	h := fnv.New32a()
	fmt.Fprint(h, d.Source)
	t := &text{of: fmt.Sprint(d.Source, n), catalogue: 1 + int(h.Sum32()%5), counts: 1, at: shield.PlaceAnswer,
		about: a.in.TopicOf(d.Text)}
	all := a.in.Sentences(d.Text, t.about, true)
	order := rand.New(rand.NewPCG(7, uint64(n)))
	for _, i := range order.Perm(len(all))[:min(len(all), mostSentence)] {
		t.sentences = append(t.sentences, &sentence{slots: all[i].AnswerSlots, strange: all[i].OffTopic,
			mention: all[i].Mention})
	}
	if len(t.sentences) > 0 {
		a.texts = append(a.texts, t)
	}
	return nil
}

func (a *answered) add(t *text, s string) {
	for _, of := range a.in.Sentences(s, nil, true) {
		t.sentences = append(t.sentences, &sentence{slots: of.AnswerSlots, strange: of.OffTopic, mention: of.Mention})
	}
	if len(t.sentences) > 0 {
		a.texts = append(a.texts, t)
	}
}

// learn returns the weights for answers. First it learns weights without the documents of about a fifth of the sources,
// and prints how it weighs these documents. The returned weights are learned from all texts.
func (a *answered) learn() *model {
	m := learn(a.texts, func(t *text) bool { return t.catalogue == 1 })
	var strange, whole []float64
	for _, t := range a.texts {
		if t.catalogue == 1 && !t.order {
			most, mostStrange := math.Inf(-1), math.Inf(-1)
			for _, s := range t.sentences {
				if !s.mention {
					w := m.weight(s.slots)
					most = max(most, w)
					if s.strange {
						mostStrange = max(mostStrange, w)
					}
				}
			}
			whole, strange = append(whole, most), append(strange, mostStrange)
		}
	}
	slices.Sort(whole)
	slices.Sort(strange)
	for _, share := range []float64{0.002, 0.005, 0.01, 0.02} {
		n := int((1 - share) * float64(len(whole)))
		fmt.Printf("answers: %.1f %% of %d documents have a sentence that weighs more than %5.2f, or %5.2f if none of its words stands around it\n", 100*share, len(whole), whole[n], strange[n])
	}
	return learn(a.texts, func(t *text) bool { return false })
}
