package ledger

import (
	"fmt"
	"iter"
)

// A DamageKind is the kind of damage to a record.
type DamageKind string

// The kinds of damage.
const (
	// DamageMissing means that the record does not exist. It should exist, because a later record exists or because the
	// journal stored its number.
	DamageMissing DamageKind = "missing"
	// DamageTorn means that the record was written incompletely or cannot be decoded.
	DamageTorn DamageKind = "torn"
	// DamageReordered means that the record follows a record with the same or a higher Seq.
	DamageReordered DamageKind = "reordered"
	// DamageEdited means that the record does not match its hash.
	DamageEdited DamageKind = "edited"
)

// A ChainError reports the first damaged record of a chain.
type ChainError struct {
	Stream string
	Seq    uint64
	Damage DamageKind
}

// Error returns a message with the stream, the record's number and the damage.
func (b *ChainError) Error() string {
	return fmt.Sprintf("record %d of %s: %s", b.Seq, b.Stream, b.Damage)
}

// VerifyChains verifies the hash chains of all streams from their first records. It returns a *ChainError for the first
// record that is missing, torn, out of order or edited. If records yields an error before such a record, VerifyChains
// returns that error.
func VerifyChains(records iter.Seq2[Record, error]) error {
	return VerifyChainsAfter(Record{}, records)
}

// VerifyChainsAfter is like [VerifyChains], but the first records of one stream were removed. before contains the
// Stream, Seq and Hash of the last removed record.
func VerifyChainsAfter(before Record, records iter.Seq2[Record, error]) error {
	type link struct {
		seq  uint64
		hash [32]byte
	}
	ends := map[string]link{before.Stream: {before.Seq, before.Hash}}
	var gap *ChainError
	for r, err := range records {
		if gap != nil {
			// A record is missing. The following records are read only to decide whether the missing record comes
			// later, out of order.
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
