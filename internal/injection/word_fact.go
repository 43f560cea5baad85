package injection

// A wordFact is what is known of a word by itself: its kind on the scale, its part in saying whom a text is for, how
// its letters were moved if it is a small word in disguise, and whether it is a mangled word of orders. Every word of
// every text is looked up once, and most are not there: a map for each of these would be asked several times over.
type wordFact struct {
	kind    uint8
	part    addressRole
	cipher  uint8
	mangled bool
	// phraseStart reports that a phrase which is noted may begin with the word.
	phraseStart bool
}
