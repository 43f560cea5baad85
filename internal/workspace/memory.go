package workspace

import (
	"fmt"
	"slices"
)

// A Tier is the reach of a memory.
type Tier string

// The tiers, the narrowest first: one conversation, the conversations of one channel, the workspace, and one person.
const (
	ConversationTier Tier = "conversation"
	ChannelTier      Tier = "channel"
	WorkspaceTier    Tier = "workspace"
	AccountTier      Tier = "account"
)

func (t Tier) check(key string) error {
	switch t {
	case ConversationTier, ChannelTier:
		return checkLine("the key of the tier", key, maxTitle)
	case AccountTier:
		return checkLine("the person of the tier", key, maxTitle)
	case WorkspaceTier:
		if key != "" {
			return refuse(Invalid, fmt.Sprintf("the tier %s has no key", t))
		}
		return nil
	}
	return refuse(Invalid, fmt.Sprintf("the tier %q does not exist", t))
}

// below returns the next narrower tier, or "".
func (t Tier) below() Tier {
	return map[Tier]Tier{ChannelTier: ConversationTier, WorkspaceTier: ChannelTier, AccountTier: WorkspaceTier}[t]
}

// A MemoryPlace is where items of memory are. Key is the thread of the conversation, the name of the channel, or the
// principal of the account; the tier of the workspace has none.
type MemoryPlace struct {
	Tier Tier
	Key  string
}

// check returns an error if an actor may not use the memory of a place: that of another conversation, except for a
// person, and that of another account.
func (p MemoryPlace) check(a Actor) error {
	person := a.Kind == AuthorActor && !a.Script
	switch {
	case p.Tier == ConversationTier && p.Key != a.Thread && !person:
		return refuse(Forbidden, "the memory of a conversation belongs to its thread")
	case p.Tier == AccountTier && p.Key != a.Principal:
		return refuse(Forbidden, "the memory of an account belongs to its person")
	}
	return nil
}

// CheckRead returns an error if an actor may not read the memory of a place.
func (p MemoryPlace) CheckRead(a Actor) error {
	if err := a.Require(Remember); err != nil {
		return err
	}
	if err := p.Tier.check(p.Key); err != nil {
		return err
	}
	return p.check(a)
}

// SetMemory writes an item of memory.
type SetMemory struct {
	// Tier and Key are those of a MemoryPlace.
	Tier Tier
	Key  string
	Name string
	Text string
	// Append adds the text to the item in place of replacing it.
	Append bool
}

func (c SetMemory) rule() rule { return rule{kind: MemoryKind, needs: Remember, content: true} }

func (c SetMemory) checkActor(a Actor) error { return MemoryPlace{c.Tier, c.Key}.check(a) }

// Check returns an error if the change is not valid, as NewWrite does.
func (c SetMemory) Check() error { return c.check() }

func (c SetMemory) check() error {
	if err := c.Tier.check(c.Key); err != nil {
		return err
	}
	if err := checkLine("the name", c.Name, maxName); err != nil {
		return err
	}
	return checkText("the text", c.Text, maxMemory)
}

// Forget retires an item of memory. Only a person forgets what a person wrote or accepted.
type Forget struct{ Entity ID }

func (c Forget) rule() rule { return rule{kind: MemoryKind, needs: Remember} }

func (c Forget) check() error { return needID("the item", c.Entity) }

// Summarise writes an item of memory from items of the tier below, which become its sources. It never has more trust
// than they have: see [JoinOrigins].
type Summarise struct {
	From []ID
	SetMemory
}

func (c Summarise) clone() Change {
	c.From = slices.Clone(c.From)
	return c
}

// CheckSource returns an error if an actor may not summarise the items of a place: it has another tier than the one
// below, or the actor may not use it.
func (c Summarise) CheckSource(a Actor, from MemoryPlace) error {
	if from.Tier != c.Tier.below() {
		return refuse(Invalid, fmt.Sprintf("memory of the tier %s is summarised from the tier %s, not from %s", c.Tier, c.Tier.below(),
			from.Tier))
	}
	return from.check(a)
}

func (c Summarise) check() error {
	switch {
	case len(c.From) == 0:
		return refuse(Invalid, "the items to summarise are missing")
	case c.Tier.below() == "":
		return refuse(Invalid, fmt.Sprintf("no tier is below %q", c.Tier))
	}
	return c.SetMemory.check()
}

// ScrubText removes the text of revisions from everything that is stored. Their digests stay.
type ScrubText struct{ Revisions []ID }

func (c ScrubText) rule() rule { return rule{needs: Scrub, person: true} }

func (c ScrubText) clone() Change {
	c.Revisions = slices.Clone(c.Revisions)
	return c
}

func (c ScrubText) check() error {
	if len(c.Revisions) == 0 {
		return refuse(Invalid, "the revisions to scrub are missing")
	}
	return nil
}
