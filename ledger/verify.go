package ledger

import (
	"fmt"
	"iter"
)

// Damage is what is wrong with a record.
type Damage string

// The kinds of damage.
const (
	// Missing: there is a record after it, or the journal remembers one, and it is not there.
	Missing Damage = "missing"
	// Torn: it is there and was not wholly written, or cannot be read as a record.
	Torn Damage = "torn"
	// Reordered: it comes after one with the same or a higher Seq.
	Reordered Damage = "reordered"
	// Edited: it is not what its hash was made of.
	Edited Damage = "edited"
)

// A Break is the first place where a chain does not hold.
type Break struct {
	Stream string
	Seq    uint64
	What   Damage
}

// Error names stream and record and says what is wrong.
func (b *Break) Error() string { return fmt.Sprintf("record %d of %s: %s", b.Seq, b.Stream, b.What) }

// Verify goes through records and checks their chains, from the first record of each stream on. The error is a *Break for
// the first record that is missing, torn, out of order or edited, or else what the records themselves gave as an error.
func Verify(records iter.Seq2[Record, error]) error { return VerifyAfter(Record{}, records) }

// VerifyAfter is Verify where the chain of one stream begins after a record that is not there any more, of which Stream, Seq and
// Hash are known.
func VerifyAfter(before Record, records iter.Seq2[Record, error]) error {
	type link struct {
		seq  uint64
		hash [32]byte
	}
	ends := map[string]link{before.Stream: {before.Seq, before.Hash}}
	var gap *Break
	for r, err := range records {
		if gap != nil {
			// What is missing may come later; nothing else is looked for.
			if err != nil {
				break
			}
			if r.Stream == gap.Stream && r.Seq == gap.Seq {
				gap.What = Reordered
				break
			}
			continue
		}
		if err != nil {
			return err
		}
		end := ends[r.Stream]
		hash := Chain(end.hash, r)
		switch {
		case r.Seq <= end.seq:
			return &Break{r.Stream, r.Seq, Reordered}
		case r.Seq > end.seq+1:
			gap = &Break{r.Stream, end.seq + 1, Missing}
		case r.Hash == [32]byte{}:
			return &Break{r.Stream, r.Seq, Torn}
		case r.Prev != end.hash || r.Hash != hash:
			return &Break{r.Stream, r.Seq, Edited}
		}
		ends[r.Stream] = link{r.Seq, hash}
	}
	if gap != nil {
		return gap
	}
	return nil
}
