package main

import (
	"embed" // what was written to learn from
	"io/fs"
	"path"
	"strings"
)

// said has orders and honest sentences as they stand in what calls answer (said/README.md).
//
//go:embed said
var said embed.FS

// How much a sentence counts that was written to learn from, and in how many other words an English one is said as
// well.
const (
	saidCounts = 3
	saidWays   = 4
)

// eachSaid passes the sentences of the lists to take, and whether each is an order and in English.
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

// said takes them in.
func (a *answered) said() error {
	v, err := newVariety("internal/injection/kinds.txt")
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
