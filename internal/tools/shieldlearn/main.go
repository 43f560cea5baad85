// Command shieldlearn learns the weights by which the shield judges sentences: go run ./internal/tools/shieldlearn -data
// DIR -tools FILE,FILE.
//
// It learns from the orders and the honest sentences beside it, each in several variations, from the labelled rows in
// DIR (internal/tools/shieldscore has their form) and from catalogues of honest tools, a definition a line. For each
// place of a definition it prints the weight of honest tools whose catalogue was left out while it learned, and how
// many orders of the sample weigh more. No rule knew these orders.
//
// With -folds it judges the labelled definitions of each source with weights that were learned without that source, and
// writes nothing. With -docs FILE,FILE it also learns the weights for results: from these documents, from answers.txt
// and letters.txt, which are grammars of orders and of honest texts, and from said/, which has both in English and other
// languages. The documents should be in these languages too. With -out it writes the weights, and with -mean the mean of
// these and of others. The same input gets the same weights.
package main

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/injection"
)

func main() {
	data := flag.String("data", "internal/shield/testdata", "the directory of labelled rows")
	tools := flag.String("tools", "", "files with honest tools, with commas between")
	docs := flag.String("docs", "",
		"files with honest documents, with commas between: a line of JSON each, with source and text")
	out := flag.String("out", "",
		"where the weights are written to, for definitions; those for answers are put beside it, as answers.bin")
	mean := flag.String("mean", "",
		"weights of definitions that were learned from other honest tools: the mean with them is written")
	folds := flag.Bool("folds", false,
		"judge the definitions of each source with weights that were learned without it, and write nothing")
	flag.Parse()
	if err := run(*data, *tools, *docs, *out, *mean, *folds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, tools, docs, out, mean string, folds bool) error {
	in, err := injection.NewInspector()
	if err != nil {
		return err
	}
	l := &lesson{in: in, honest: map[string]bool{}}
	if err := l.read(dir, tools); err != nil {
		return err
	}
	if folds {
		return l.leaveOneOut()
	}
	if docs != "" {
		a := &answered{in: in}
		if err := a.read(l, docs); err != nil {
			return err
		}
		if m := a.learn(); out != "" {
			if err := os.WriteFile(filepath.Join(filepath.Dir(out), "answers.bin"), m.table(injection.AnswerSlots),
				0o644); err != nil {
				return err
			}
		}
	}
	if tools == "" {
		return nil
	}
	var left []*text
	for catalogue := range l.catalogues {
		m := learn(l.texts, func(t *text) bool { return !t.order && t.catalogue == catalogue })
		for _, t := range l.texts {
			if t.tool && !t.order && !t.met && t.catalogue == catalogue {
				t.score = m.stands(t)
				left = append(left, t)
			}
		}
	}
	all := learn(l.texts, func(t *text) bool { return false })
	print(left, all, l.unseen)
	if out == "" {
		return nil
	}
	if mean != "" {
		other, err := readModel(mean)
		if err != nil {
			return err
		}
		all = all.meanWith(other)
	}
	return os.WriteFile(out, all.table(injection.DefinitionSlots), 0o644)
}

// known is the additional weight allowed for a sentence that shares a word with its document.
const known = 2

// print prints the heaviest honest texts that were held out, and the share of unseen orders that are heavier.
func print(left []*text, m *model, unseen []*text) {
	for at := injection.PlaceDescription; at <= injection.PlaceMember; at++ {
		most := map[string]float64{}
		for _, t := range left {
			if _, ok := most[t.of]; !ok {
				most[t.of] = math.Inf(-1)
			}
			if t.at == at {
				most[t.of] = max(most[t.of], t.score)
			}
		}
		scores := slices.Collect(maps.Values(most))
		slices.Sort(scores)
		slices.Reverse(scores)
		for _, share := range []float64{0.0005, 0.001, 0.002, 0.003, 0.005} {
			limit := scores[int(share*float64(len(scores)))]
			n := 0
			for _, t := range unseen {
				if m.stands(t) > limit {
					n++
				}
			}
			fmt.Printf("place %d: %.2f %% of %d honest tools weigh more than %5.2f, or %5.2f with a known word, and %d of %d orders\n", at, 100*share, len(scores), limit, limit+known, n, len(unseen))
		}
	}
}

// heaviest is what the heaviest sentence of a text weighs.
func (m *model) heaviest(t *text) float64 {
	most := math.Inf(-1)
	for _, s := range t.sentences {
		most = max(most, m.weight(s.slots))
	}
	return most
}

// stands is what the sentence weighs that stands out most: one with a known word counts as lighter, one about an
// attack not at all.
func (m *model) stands(t *text) float64 {
	most := math.Inf(-1)
	for _, s := range t.sentences {
		switch w := m.weight(s.slots); {
		case s.mention:
		case s.strange:
			most = max(most, w)
		default:
			most = max(most, w-known)
		}
	}
	return most
}
