package main

import (
	"fmt"
	"slices"
)

// A limit is one measured value of the code's shape, and the maximum or minimum that the project allows for it.
type limit struct {
	name    string
	value   float64
	bound   float64
	least   bool // bound is the minimum, not the maximum
	percent bool
	where   string
}

func (l limit) holds() bool {
	if l.least {
		return l.value >= l.bound
	}
	return l.value <= l.bound
}

func (l limit) show(v float64) string {
	if l.percent {
		return fmt.Sprintf("%.1f %%", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func (l limit) bar() string {
	if l.least {
		return "≥ " + l.show(l.bound)
	}
	return "≤ " + l.show(l.bound)
}

// The maximum numbers of banned phrases and of calls of context.Background.
const (
	maxShownPhrases  = 0
	maxInsidePhrases = 17
	maxBackgrounds   = 2 // a request of a command to the hub; the main function of a worker of the sandbox
)

// facts returns texts with the measured values that have no limit.
func (s *shape) facts() []string {
	return []string{
		fmt.Sprintf("lines of code of the program: %d", s.programLines()),
		fmt.Sprintf("names of one word: %.0f %% of functions, %.0f %% of methods",
			share(s.plainFuncs.one, s.plainFuncs.all), share(s.methods.one, s.methods.all)),
		fmt.Sprintf("packages over 6,000 lines: %v", s.largestPackages(6000)),
	}
}

// limits returns the measured values together with the project's limits for them.
func (s *shape) limits() []limit {
	long := slices.DeleteFunc(slices.Clone(s.functions), func(p point) bool { return p.size <= 60 })
	function, file, wide := largest(s.functions), largest(s.files), largest(s.interfaces)
	libraries, once := s.libraries()
	return []limit{
		{name: "packages of the program", value: float64(len(s.programPackages())), bound: 55},
		{name: "library packages with one importer", value: share(len(once), len(libraries)), bound: 50, percent: true,
			where: some(once)},
		{name: "packages importable from outside", value: float64(len(s.importable())), bound: 12,
			where: some(s.importable())},
		{name: "banned phrases in public packages and in texts for people", value: float64(len(s.phrases.shown)),
			bound: maxShownPhrases, where: some(s.phrases.shown)},
		{name: "banned phrases in comments of internal packages", value: float64(len(s.phrases.inside)),
			bound: maxInsidePhrases, where: some(s.phrases.inside)},
		{name: "lines over 120 columns", value: share(s.overlong, s.lines), bound: 1, percent: true},
		{name: "context.Background below main", value: float64(len(s.backgrounds)), bound: maxBackgrounds,
			where: some(s.backgrounds)},
		{name: "longest function, lines", value: float64(function.size), bound: 80, where: function.where},
		{name: "functions over 60 lines", value: share(len(long), len(s.functions)), bound: 2, percent: true,
			where: some(places(long))},
		{name: "longest file, lines", value: float64(file.size), bound: 600, where: file.where},
		{name: "90th percentile of files, lines", value: float64(percentile(s.files, 90)), bound: 400},
		{name: "widest interface, methods", value: float64(wide.size), bound: 5, where: wide.where},
		{name: "init functions", value: float64(len(s.inits)), where: some(s.inits)},
		{name: "sleeps in tests", value: float64(len(s.sleeps)), where: some(s.sleeps)},
		{name: "packages documented", value: 100 - share(len(s.silent()), len(s.byDir)), bound: 100, least: true,
			percent: true, where: some(s.silent())},
		{name: "exported names documented", value: 100 - share(len(s.undocumented), s.exported), bound: 98, least: true,
			percent: true, where: some(s.undocumented)},
		{name: "error strings that begin with failed, error, unable, could not", value: share(len(s.badErrors),
			s.errors), bound: 5, percent: true, where: some(s.badErrors)},
		{name: "lint suppressions", value: float64(len(s.suppressions)), bound: 5, where: some(s.suppressions)},
		{name: "lint suppressions without a reason", value: float64(len(s.unreasoned)), where: some(s.unreasoned)},
	}
}

// largest returns the point with the largest size, the first of several, or the zero point if points is empty.
func largest(points []point) point {
	var most point
	for _, p := range points {
		if p.size > most.size {
			most = p
		}
	}
	return most
}

// percentile returns the n-th percentile of the sizes: the smallest size for which at least n percent of the points are
// not larger.
func percentile(points []point, n int) int {
	if len(points) == 0 {
		return 0
	}
	sizes := make([]int, len(points))
	for i, p := range points {
		sizes[i] = p.size
	}
	slices.Sort(sizes)
	return sizes[(len(sizes)*n+99)/100-1]
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

func places(points []point) []string {
	var all []string
	for _, p := range points {
		all = append(all, p.where)
	}
	return all
}

// some returns a text with the first four places and the number of further places; "" if there are none.
func some(places []string) string {
	const few = 4
	switch {
	case len(places) == 0:
		return ""
	case len(places) > few:
		return fmt.Sprint(places[:few], " and ", len(places)-few, " more")
	}
	return fmt.Sprint(places)
}
