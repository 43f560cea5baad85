package workspace

// A Settlement says what becomes of new content for an entity that has content already.
type Settlement struct {
	// Current reports that the new revision becomes the content. Otherwise it waits until a person promotes or rejects
	// it.
	Current bool
	// Deviates reports that the new content disagrees with canonical content: a deviation is recorded.
	Deviates bool
}

// Settle decides about new content whose text is not that of the old content. Canonical content is replaced by canonical
// content only. What a person wrote or imported, and what was retired, is replaced by what a person writes. Other
// content is replaced by content that is at least as trusted. Content that is not current waits; it deviates if it
// disagrees with canonical content.
func Settle(old, fresh Stamp) Settlement {
	switch {
	case fresh.Lifecycle == Canonical, fresh.Origin == Authored && old.Lifecycle != Canonical:
		return Settlement{Current: true}
	case old.Lifecycle == Canonical:
		return Settlement{Deviates: true}
	case old.Lifecycle == Retired, old.Origin == Authored, old.Origin == Imported:
		return Settlement{}
	}
	return Settlement{Current: trust[fresh.Origin] <= trust[old.Origin]}
}

// Removable reports whether an actor may remove or retire content: a person may remove all content, and others may remove
// what they could replace.
func Removable(old Stamp, a Actor) bool {
	if a.Kind == AuthorActor && !a.Script {
		return true
	}
	origin, err := defaultOrigin(a)
	return err == nil && Settle(old, Stamp{Origin: origin, Lifecycle: Candidate}).Current
}

// trust orders origins, the most trusted first.
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
