package injection

// A wordFact holds what is known about a single word: its kind for the scorer, its role in naming an addressee, the
// cipher that it may be a common word in, and whether it is a mangled word of attacks. A single map holds all facts,
// so that each word of a text is looked up once.
type wordFact struct {
	kind    uint8
	part    addressRole
	cipher  uint8
	mangled bool
	// phraseStart reports that a noted phrase may begin with the word.
	phraseStart bool
}
