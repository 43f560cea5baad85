package ledger

import (
	"fmt"
	"iter"
)

// DamageKind is what is wrong with a record.
type DamageKind string

// The kinds of damage.
const (
	// DamageMissing: there is a record after it, or the journal remembers one, and it is not there.
	DamageMissing DamageKind = "missing"
	// DamageTorn: it is there and was not wholly written, or cannot be read as a record.
	DamageTorn DamageKind = "torn"
	// DamageReordered: it comes after one with the same or a higher Seq.
	DamageReordered DamageKind = "reordered"
	// DamageEdited: it is not what its hash was made of.
	DamageEdited DamageKind = "edited"
)

// A ChainError is the first place where a chain does not hold.
type ChainError struct {
	Stream string
	Seq    uint64
	Damage DamageKind
}

// Error names stream and record and says what is wrong.
func (b *ChainError) Error() string {
	return fmt.Sprintf("record %d of %s: %s", b.Seq, b.Stream, b.Damage)
}

// VerifyChains goes through records and checks their chains, from the first record of each stream on. The error is a
// *Break for the first record that is missing, torn, out of order or edited, or else what the records themselves gave
// as an error.
func VerifyChains(records iter.Seq2[Record, error]) error {
	return VerifyChainsAfter(Record{}, records)
}

// VerifyChainsAfter is Verify where the chain of one stream begins after a record that is not there any more, of which
// Stream, Seq and Hash are known.
func VerifyChainsAfter(before Record, records iter.Seq2[Record, error]) error {
	type link struct {
		seq  uint64
		hash [32]byte
	}
	ends := map[string]link{before.Stream: {before.Seq, before.Hash}}
	var gap *ChainError
	for r, err := range records {
		if gap != nil {
			// What is missing may come later; nothing else is looked for.
			if err != nil {
				break
			}
			if r.Stream == gap.Stream && r.Seq == gap.Seq {
				gap.Damage = DamageReordered
				break
			}
			continue
		}
		if err != nil {
			return err
		}
		end := ends[r.Stream]
		hash := ChainHash(end.hash, r)
		switch {
		case r.Seq <= end.seq:
			return &ChainError{r.Stream, r.Seq, DamageReordered}
		case r.Seq > end.seq+1:
			gap = &ChainError{r.Stream, end.seq + 1, DamageMissing}
		case r.Hash == [32]byte{}:
			return &ChainError{r.Stream, r.Seq, DamageTorn}
		case r.Prev != end.hash || r.Hash != hash:
			return &ChainError{r.Stream, r.Seq, DamageEdited}
		}
		ends[r.Stream] = link{r.Seq, hash}
	}
	if gap != nil {
		return gap
	}
	return nil
}
