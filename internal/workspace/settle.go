package workspace

// A Settlement says what becomes of new content for an entity that has content already.
type Settlement struct {
	// Current reports that the new revision becomes the content. Otherwise it waits until a person promotes or rejects
	// it.
	Current bool
	// Deviates reports that the new content disagrees with canonical content: a deviation is recorded.
	Deviates bool
}

// Settle decides about new content. Canonical content is replaced by canonical content only. Other content that a person
// wrote is also replaced by what a person writes. Everything else is replaced by whatever comes later. Content that is
// not current waits; it deviates if it disagrees with canonical content.
func Settle(old, fresh Stamp, sameText bool) Settlement {
	switch {
	case fresh.Lifecycle == Canonical:
		return Settlement{Current: true}
	case old.Lifecycle == Canonical:
		return Settlement{Deviates: !sameText}
	case old.Lifecycle != Retired && old.Origin == Authored:
		return Settlement{Current: fresh.Origin == Authored}
	}
	return Settlement{Current: true}
}

// trust orders origins: content with a higher number may have been shaped by more.
var trust = map[Origin]int{Authored: 0, AgentProduced: 1, Imported: 2, Observed: 3}

// JoinOrigins returns the origin that content made from all of the given origins has at best: the least trusted one.
// Without origins it is Authored.
func JoinOrigins(all ...Origin) Origin {
	worst := Authored
	for _, o := range all {
		n, known := trust[o]
		if !known {
			return Observed
		}
		if n > trust[worst] {
			worst = o
		}
	}
	return worst
}
