package shield

// A wordFact contains the properties of a single word. kind is its kind for the scorer, and part its role in naming an
// addressee. cipher is the cipher in which the word is a common word. mangled marks words that are frequent in attacks,
// reversed or in ROT13. One map contains all properties, so that each word of a text is looked up once.
type wordFact struct {
	kind    uint8
	part    addressRole
	cipher  uint8
	mangled bool
	// phraseStart reports whether a phrase of notedPhrases may begin with the word.
	phraseStart bool
}
