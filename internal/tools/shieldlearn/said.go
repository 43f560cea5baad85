package main

import (
	"embed" // for the directory said
	"io/fs"
	"path"
	"strings"
)

// said contains instructions to models and honest sentences as they occur in results of calls (said/README.md).
//
//go:embed said
var said embed.FS

// saidCounts is the weight of a sentence from said/ in the training. saidWays is the number of variations that are
// added to the training for each English sentence.
const (
	saidCounts = 3
	saidWays   = 4
)

// eachSaid calls take for each sentence in said/. order reports whether the sentence is an instruction to a model, and
// english whether it is in English.
func eachSaid(take func(s string, order, english bool)) error {
	names, err := fs.Glob(said, "said/*.t[sx][tv]")
	if err != nil {
		return err
	}
	for _, name := range names {
		list, err := said.ReadFile(name)
		if err != nil {
			return err
		}
		english := path.Ext(name) == ".txt"
		for line := range strings.Lines(string(list)) {
			s := strings.TrimSpace(line)
			if !english {
				_, s, _ = strings.Cut(s, "\t")
			}
			take(s, strings.Contains(name, ".orders."), english)
		}
	}
	return nil
}

// said adds the sentences in said/ to the training data.
func (a *answered) said() error {
	v, err := newVariety("internal/shield/kinds.txt")
	if err != nil {
		return err
	}
	return eachSaid(func(s string, order, english bool) {
		a.add(&text{order: order, counts: saidCounts}, s)
		for n := 0; english && n < saidWays; n++ {
			a.add(&text{order: order, counts: 1}, v.other(s))
		}
	})
}
