// Command shieldlearn learns the weights by which the shield judges sentences: go run ./internal/tools/shieldlearn
// -data DIR -tools FILE,FILE.
//
// It learns from orders.txt, which contains instructions of attacks, and honest.txt in this directory, with several
// variations of each sentence. It also learns from the labelled rows in DIR (internal/tools/shieldscore describes their
// form) and from catalogues of honest tools, with one definition per line. For each place in a definition, it prints
// weight limits that few honest tools exceed. For this, each catalogue is weighed with weights that were learned
// without it. It also prints how many instructions of the sample in internal/shield/testdata exceed these limits. These
// instructions are not used for training.
//
// With -folds, it checks the labelled definitions of each source with weights that were learned without that source,
// and writes no file. With -docs FILE,FILE it also learns the weights for results. For this it uses these documents,
// the grammars answers.txt (instructions) and letters.txt (honest texts), and the directory said/. The directory
// contains instructions and honest sentences in English and other languages. The documents should be in the same
// languages. With -out it writes the weights to a file. With -mean it writes the mean of these weights and the weights
// in another file. The same input always results in the same weights.
package main

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/shield"
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
	in, err := shield.NewInspector()
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
			if err := os.WriteFile(filepath.Join(filepath.Dir(out), "answers.bin"), m.table(shield.AnswerSlots),
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
	return os.WriteFile(out, all.table(shield.DefinitionSlots), 0o644)
}

// known is the additional weight that is allowed for a sentence that shares a topic word with its document.
const known = 2

// print prints, for each place in a definition, weight limits that few of the honest tools in left exceed. For each
// limit it also prints how many instructions in unseen exceed it.
func print(left []*text, m *model, unseen []*text) {
	for at := shield.PlaceDescription; at <= shield.PlaceMember; at++ {
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

// heaviest returns the largest weight of a sentence of the text.
func (m *model) heaviest(t *text) float64 {
	most := math.Inf(-1)
	for _, s := range t.sentences {
		most = max(most, m.weight(s.slots))
	}
	return most
}

// stands returns the largest weight of a sentence of the text, for comparison with a limit. The weight of a sentence
// that shares a topic word with its document is reduced by known. A sentence about an attack is ignored.
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
