package words

import binary "math/bits"

// A fact is what is known of a word by itself: its kind on the scale, its part in saying whom a text is for, how its letters were
// moved if it is a small word in disguise, and whether it is a mangled word of orders.
type fact struct {
	kind    uint8
	part    part
	way     uint8
	mangled bool
}

// A vocabulary has the facts of all words that something is known of, each in the first free slot from its hash on. Every word of every
// text is looked up here, and most are not in it: a map for each fact would be asked several times over.
type vocabulary struct {
	slots   []term // at least twice as many as words
	longest int
}

type term struct {
	word string
	hash uint32
	fact
}

func newVocabulary(all map[string]fact) *vocabulary {
	v := &vocabulary{slots: make([]term, 1<<binary.Len(uint(2*len(all))))}
	for word, known := range all {
		h := hashed(word)
		*v.slot(word, "", h) = term{word, h, known}
		v.longest = max(v.longest, len(word))
	}
	return v
}

// of gives what is known of a word.
func (v *vocabulary) of(word string) fact {
	if len(word) > v.longest {
		return fact{}
	}
	return v.slot(word, "", hashed(word)).fact
}

// kind gives the kind of a word with an end put to it.
func (v *vocabulary) kind(word, end string) uint8 {
	return v.slot(word, end, hashedOn(hashed(word), end)).kind
}

// slot gives where a word with an end put to it is, or would be.
func (v *vocabulary) slot(word, end string, hash uint32) *term {
	for i := hash; ; i++ {
		t := &v.slots[i&uint32(len(v.slots)-1)]
		if t.word == "" || t.hash == hash && len(t.word) == len(word)+len(end) && t.word[:len(word)] == word && t.word[len(word):] == end {
			return t
		}
	}
}

func hashed(s string) uint32 { return hashedOn(2166136261, s) }

// hashedOn goes on from the hash of what stands before.
func hashedOn(h uint32, s string) uint32 {
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
