package words

import "strings"

// Stops has the words that say little of what is looked for. Make it once, with NewStops.
type Stops map[string]bool

// NewStops gives the English words that stand in every request. Verbs such as list, get and create are none: tools differ
// by them.
func NewStops() Stops {
	s := Stops{}
	for _, word := range strings.Fields(stopWords) {
		s[word] = true
	}
	return s
}

const stopWords = `
a an the this that these those some any each both more most other such only own same so than too very just also
and or but if of to in on at by for with from as about into over under again once up out off down through during
before after between because while until then nor no not
is are was were be been being am do does did done have has had having can could would should will shall may might must
i me my mine we our us you your he him his she her it its they them their there here who whom whose which what when where why how
please want need like help let make sure give tell know look looking im d ll m re s t ve
`

// Keep gives the words of a text without those that say little, unless fewer than least were left: then every word counts.
// What is part of a name, as in MySQL, is none that says little.
func (s Stops) Keep(text string, least int) []string {
	var all, kept []string
	names := []bool{} // which of all are parts of a name
	each(text, func(word string, joined bool) {
		if n := len(names); n > 0 && joined {
			names[n-1] = true
		}
		all, names = append(all, word), append(names, joined)
	})
	for i, word := range all {
		if names[i] || !s[word] {
			kept = append(kept, word)
		}
	}
	if len(kept) < least {
		return all
	}
	return kept
}
