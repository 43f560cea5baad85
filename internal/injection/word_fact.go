package injection

// A wordFact has the properties of a single word: its kind for the scorer, its role in naming the addressee of a text,
// the cipher of a small word in disguise, and whether it is a mangled word of orders. One map holds all of them, so
// that each word of a text is looked up once.
type wordFact struct {
	kind    uint8
	part    addressRole
	cipher  uint8
	mangled bool
	// phraseStart reports that a phrase which is noted may begin with the word.
	phraseStart bool
}
