package workspace

import "fmt"

// A Tier is the reach of a memory.
type Tier string

// The tiers: one conversation, the conversations of one channel, the workspace, and the person in all workspaces.
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
	case WorkspaceTier, AccountTier:
		if key != "" {
			return refuse(Invalid, fmt.Sprintf("the tier %s has no key", t))
		}
		return nil
	}
	return refuse(Invalid, fmt.Sprintf("the tier %q does not exist", t))
}

// SetMemory writes an item of memory. Key is the conversation or the channel; the other tiers have none.
type SetMemory struct {
	Tier Tier
	Key  string
	Name string
	Text string
	// Append adds the text to the item in place of replacing it.
	Append bool
}

func (c SetMemory) rule() rule { return rule{kind: MemoryKind, needs: Remember, content: true} }

// Check returns an error if the change is not valid, as NewWrite does.
func (c SetMemory) Check() error { return c.check() }

func (c SetMemory) check() error {
	if err := c.Tier.check(c.Key); err != nil {
		return err
	}
	if err := checkLine("the name", c.Name, maxName); err != nil {
		return err
	}
	return checkText("the text", c.Text, maxValue)
}

// Forget retires an item of memory.
type Forget struct{ Entity ID }

func (c Forget) rule() rule { return rule{kind: MemoryKind, needs: Remember} }

func (c Forget) check() error { return needID("the item", c.Entity) }

// Summarise writes an item of memory from items of the tier below, which become its sources. It never has more trust
// than they have: see [JoinOrigins].
type Summarise struct {
	From []ID
	SetMemory
}

func (c Summarise) check() error {
	if len(c.From) == 0 {
		return refuse(Invalid, "the items to summarise are missing")
	}
	return c.SetMemory.check()
}

// ScrubText removes the text of revisions from everything that is stored. Their digests stay.
type ScrubText struct{ Revisions []ID }

func (c ScrubText) rule() rule { return rule{needs: Scrub, person: true} }

func (c ScrubText) check() error {
	if len(c.Revisions) == 0 {
		return refuse(Invalid, "the revisions to scrub are missing")
	}
	return nil
}
