package limits

// Size counts the runs that a breaker remembers.
func (b *Breaker) Size() (n int) {
	for _, minute := range []map[Site]map[uint64]*run{b.now, b.before} {
		for _, runs := range minute {
			n += len(runs)
		}
	}
	return n
}

// Texts is how many texts a Once remembers in one Life.
const Texts = texts
