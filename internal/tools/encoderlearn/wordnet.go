package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// readWordNet returns an entry for each set of synonyms in WordNet, except sets that contain only proper names. The
// name of the entry is the words of the set. The server is the words of the hypernym, which is the more general set.
// The text is the gloss, and the hints are the examples.
func readWordNet(dir string) ([]entry, error) {
	var out []entry
	for _, part := range []string{"noun", "verb", "adj"} {
		lines, err := synsets(filepath.Join(dir, "dict", "data."+part))
		if err != nil {
			return nil, err
		}
		named := map[string]string{}
		for _, l := range lines {
			named[l.at] = l.words
		}
		for _, l := range lines {
			if l.proper {
				continue
			}
			out = append(out, entry{Server: named[l.above], Name: l.words, Text: l.gloss, Hints: l.examples})
		}
	}
	return out, nil
}

type synset struct {
	at, words, above, gloss string
	examples                []string
	proper                  bool // all words are proper names
}

// synsets returns the sets of synonyms in a data file of WordNet. The manual page wndb(5WN) describes the format.
func synsets(path string) ([]synset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []synset
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), " ") {
			continue // a line of the licence text
		}
		set, err := parseSynset(s.Text())
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, s.Err()
}

func parseSynset(line string) (synset, error) {
	data, gloss, _ := strings.Cut(line, " | ")
	fields := strings.Fields(data)
	if len(fields) < 6 {
		return synset{}, fmt.Errorf("read a set of synonyms: %q", line)
	}
	n, err := strconv.ParseInt(fields[3], 16, 32)
	if err != nil || len(fields) < 5+2*int(n) {
		return synset{}, fmt.Errorf("read a set of synonyms: %q", line)
	}
	set := synset{at: fields[0], proper: true}
	var names []string
	for i := range int(n) {
		word, _, _ := strings.Cut(fields[4+2*i], "(")
		if word == strings.ToLower(word) {
			set.proper = false
		}
		names = append(names, strings.ReplaceAll(word, "_", " "))
	}
	set.words = strings.Join(names, " ")
	for i := 5 + 2*int(n); i+3 < len(fields); i += 4 {
		if fields[i] == "@" {
			set.above = fields[i+1]
			break
		}
	}
	for _, part := range strings.Split(gloss, ";") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, `"`) {
			set.examples = append(set.examples, strings.Trim(part, `"`))
		} else if set.gloss == "" {
			set.gloss = part
		} else {
			set.gloss += " " + part
		}
	}
	return set, nil
}
