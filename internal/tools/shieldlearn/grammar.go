package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// A grammar generates texts. It has several alternatives for each named part of a text and chooses among them. The
// choices are pseudo-random and the same in each run.
type grammar struct {
	ways map[string][]string
	rand *rand.Rand
}

// part matches a reference to another part, such as "{name}".
var part = regexp.MustCompile(`\{\w+\}`)

// newGrammar parses a grammar with one part per line. It returns an error if an alternative refers to a part that does
// not exist.
func newGrammar(list string) (*grammar, error) {
	g := &grammar{map[string][]string{}, rand.New(rand.NewPCG(5, 6))}
	for line := range strings.Lines(list) {
		name, ways, ok := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		if !ok || line[0] == '#' {
			continue
		}
		for way := range strings.SplitSeq(ways, "|") {
			g.ways[name] = append(g.ways[name], strings.TrimPrefix(strings.TrimSuffix(way, " "), " "))
		}
	}
	for name, ways := range g.ways {
		for _, of := range part.FindAllString(strings.Join(ways, " "), -1) {
			if g.ways[of[1:len(of)-1]] == nil {
				return nil, fmt.Errorf("read the grammar: %s: no part %s", name, of)
			}
		}
	}
	return g, nil
}

// say returns a random text of the grammar, with a capital letter at the beginning.
func (g *grammar) say() string {
	s := part.ReplaceAllStringFunc(g.one("all"), func(of string) string { return g.part(of, 0) })
	return strings.ToUpper(s[:1]) + s[1:]
}

// part returns a random text for of, a reference to a part such as "{name}". References nested deeper than five levels
// are not replaced.
func (g *grammar) part(of string, depth int) string {
	way := g.one(of[1 : len(of)-1])
	if depth > 4 {
		return way
	}
	return part.ReplaceAllStringFunc(way, func(of string) string { return g.part(of, depth+1) })
}

func (g *grammar) one(name string) string {
	ways := g.ways[name]
	return ways[g.rand.IntN(len(ways))]
}
