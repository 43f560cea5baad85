package coded

// Bytes are the bytes that stand in a text, a bit for each.
type Bytes [4]uint64

// Has says whether a byte is among them.
func (b *Bytes) Has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }

// Beyond says whether one of them is beyond ASCII.
func (b *Bytes) Beyond() bool { return b[2]|b[3] != 0 }

func bytesIn(text string) (all Bytes) {
	for i := range len(text) {
		all[text[i]>>6] |= 1 << (text[i] & 63)
	}
	return all
}

// any says whether one of others is among them.
func (b *Bytes) any(others *Bytes) bool {
	return b[0]&others[0]|b[1]&others[1]|b[2]&others[2]|b[3]&others[3] != 0
}

// Signs are what one look at a text shows: its bytes, and whether there may be something in it in a form that takes more than one of
// them. Most texts have nothing of the kind, and are not read again for it.
type Signs struct {
	Bytes
	run     bool // a run of letters and digits as long as a code
	numbers bool // a stretch of digits and gaps as long as one
	pieces  bool // several words one after the other that may be pieces of one
	token   bool // a word as long as one in Base85
}

// SignsOf gives those of a text.
func SignsOf(text string) (s Signs) {
	run, stretch := 0, 0 // where the run of a code began, and the stretch of numbers
	longestRun, longestStretch, longestToken := 0, 0, 0
	n, odd := 0, 0 // pieces so far, and those with capitals or digits within
	for i := 0; i < len(text); i++ {
		token, all := i, uint8(0)
		within := uint8(0) // what stands behind the first byte
		for ; i < len(text); i++ {
			c := text[i]
			s.Bytes[c>>6] |= 1 << (c & 63)
			is := signs[c]
			if is&codeSign == 0 {
				longestRun, run = max(longestRun, i-run), i+1
			}
			if is&(digitSign|gapSign) == 0 {
				longestStretch, stretch = max(longestStretch, i-stretch), i+1
			}
			if is&whiteSign != 0 {
				break
			}
			if i > token {
				within |= is
			}
			all |= is
		}
		size := i - token
		if size == 0 {
			continue
		}
		longestToken = max(longestToken, size)
		// More is taken for a piece here than chunks does, so that none is missed.
		if size < fewestInPiece && text[i-1] != '=' || size >= fewestInPiece && all&otherSign != 0 && (size > fewestInPiece || text[i-1] != '=') {
			n, odd = 0, 0
			continue
		}
		if n++; within&oddSign != 0 {
			odd++
		}
		s.pieces = s.pieces || n >= fewestPieces && odd*2 >= fewestPieces
	}
	s.run = max(longestRun, len(text)-run) >= fewestCode
	s.numbers = max(longestStretch, len(text)-stretch) >= 2*fewestCode
	s.token = longestToken >= fewest85
	s.pieces = s.pieces || s.Beyond() // where there are more kinds of white space
	return s
}
