package index

import "strings"

// StopWords is a set of words that do not describe the wanted thing. Callers should create it once with
// NewStopWords.
type StopWords map[string]bool

// NewStopWords returns the English stop words for requests. It does not contain verbs such as "list", "get" and
// "create", because they distinguish tools.
func NewStopWords() StopWords {
	s := StopWords{}
	for _, word := range strings.Fields(stopWordList) {
		s[word] = true
	}
	return s
}

const stopWordList = `
a an the this that these those some any each both more most other such only own same so than too very just also
and or but if of to in on at by for with from as about into over under again once up out off down through during
before after between because while until then nor no not
is are was were be been being am do does did done have has had having can could would should will shall may might must
i me my mine we our us you your he him his she her it its they them their there here who whom whose which what when where why how
please want need like help let make sure give tell know look looking im d ll m re s t ve
`
