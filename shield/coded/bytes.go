package coded

// Bytes are the bytes that stand in a text, a bit for each.
type Bytes [4]uint64

// BytesIn gives those of a text.
func BytesIn(text string) (all Bytes) {
	for i := range len(text) {
		all[text[i]>>6] |= 1 << (text[i] & 63)
	}
	return all
}

// Has says whether a byte is among them.
func (b *Bytes) Has(c byte) bool { return b[c>>6]>>(c&63)&1 != 0 }

// Beyond says whether one of them is beyond ASCII.
func (b *Bytes) Beyond() bool { return b[2]|b[3] != 0 }

// any says whether one of others is among them.
func (b *Bytes) any(others *Bytes) bool {
	return b[0]&others[0]|b[1]&others[1]|b[2]&others[2]|b[3]&others[3] != 0
}
