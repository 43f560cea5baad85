package injection

// A wordFact holds the properties of a single word. These are its kind for the scorer, its role in naming an addressee,
// and the cipher in which it may be a common word. mangled marks words that are frequent in attacks, reversed or in
// ROT13. One map holds all properties, so that each word of a text is looked up once.
type wordFact struct {
	kind    uint8
	part    addressRole
	cipher  uint8
	mangled bool
	// phraseStart reports whether a phrase of notedPhrases may begin with the word.
	phraseStart bool
}
