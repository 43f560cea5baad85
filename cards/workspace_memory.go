package cards

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

type memoryReadInput struct {
	Tier string `json:"tier" jsonschema:"conversation, channel, workspace or account."`
	Key  string `json:"key,omitempty" jsonschema:"The name of the channel. The other tiers need none: they are yours."`
}

type memoryReadOutput struct {
	Items []workspace.MemoryItem `json:"items"`
}

type memoryWriteInput struct {
	Tier   string `json:"tier" jsonschema:"conversation, channel, workspace or account."`
	Key    string `json:"key,omitempty" jsonschema:"The name of the channel. The other tiers need none: they are yours."`
	Name   string `json:"name" jsonschema:"The name of the item."`
	Text   string `json:"text" jsonschema:"The text."`
	Append bool   `json:"append,omitempty" jsonschema:"Add the text to the item in place of replacing it."`
}

type memoryForgetInput struct {
	Entity string `json:"entity" jsonschema:"The ID of the item."`
}

type memorySummariseInput struct {
	memoryWriteInput
	From []string `json:"from" jsonschema:"The IDs of the items of the tier below that the text sums up."`
}

type scrubInput struct {
	Revisions []string `json:"revisions" jsonschema:"The revisions whose text is removed from everything."`
}

// memoryCards returns the cards of memory, which has four tiers.
func memoryCards(w Workspace) []drawbridge.Card {
	scopes := []drawbridge.Scope{scopeRemember}
	memory := &drawbridge.Crossing{Content: "text", ReadTrail: true, Write: "memory"}
	return []drawbridge.Card{
		newShipped(Description[memoryReadInput]{Name: "memory_read", Title: "Read memory", Scopes: scopes,
			Text: "Read the memory of a tier.\n\nThe tier conversation is for this conversation, channel for related ones, workspace for all, " +
				"and account for one person.",
			Examples: []memoryReadInput{{Tier: "workspace"}},
		}, func(ctx context.Context, call drawbridge.Call, in memoryReadInput) (answer Answer[memoryReadOutput], err error) {
			all, err := w.Memory(ctx, call, placeOf(call.Caller, in.Tier, in.Key))
			var b strings.Builder
			for _, item := range all {
				fmt.Fprintf(&b, "[%s · %s · %s]\n%s\n", item.Name, item.ID, describeStamp(item.Stamp), item.Text)
			}
			if len(all) == 0 {
				b.WriteString("This tier has no items.")
			}
			return Answer[memoryReadOutput]{Foreign: true, Text: b.String(), Value: memoryReadOutput{orEmpty(all)}}, err
		}),
		newWriting(Description[memoryWriteInput]{Name: "memory_write", Title: "Write memory", Scopes: scopes, Crossing: memory,
			Annotations: &Annotations{}, Examples: []memoryWriteInput{{Tier: "workspace", Name: "style", Text: "Short sentences."}},
			Text: "Write an item of memory, or add to it.\n\nWhat a person wrote stays in place; the new text then waits until a person accepts it.",
		}, func(_ context.Context, call drawbridge.Call, in memoryWriteInput) (prepared[receiptOutput], error) {
			return written("", in.change(call.Caller)), nil
		}),
		newWriting(Description[memoryForgetInput]{Name: "memory_forget", Title: "Forget", Scopes: scopes,
			Crossing: &drawbridge.Crossing{Write: "memory"}, Annotations: &Annotations{Destructive: true, Idempotent: true},
			Examples: []memoryForgetInput{{Entity: "bk_01K…"}}, Text: "Retire an item of memory.",
		}, func(_ context.Context, _ drawbridge.Call, in memoryForgetInput) (prepared[receiptOutput], error) {
			return written("", workspace.Forget{Entity: workspace.ID(in.Entity)}), nil
		}),
		newWriting(Description[memorySummariseInput]{Name: "memory_summarise", Title: "Summarise memory", Scopes: scopes, Crossing: memory,
			Annotations: &Annotations{},
			Examples:    []memorySummariseInput{{memoryWriteInput{Tier: "channel", Key: "release", Name: "decisions", Text: "We release on Mondays."}, []string{"bk_01K…"}}},
			Text:        "Write an item of memory that sums up items of the tier below.\n\nThe summary is never more trusted than what it sums up.",
		}, func(_ context.Context, call drawbridge.Call, in memorySummariseInput) (prepared[receiptOutput], error) {
			c := workspace.Summarise{SetMemory: in.change(call.Caller)}
			for _, id := range in.From {
				c.From = append(c.From, workspace.ID(id))
			}
			return written("", c), nil
		}),
		newWriting(Description[scrubInput]{Name: "workspace_scrub", Title: "Scrub", Scopes: []drawbridge.Scope{scopeScrub}, NotForScripts: true,
			Crossing: &drawbridge.Crossing{Write: "memory"}, Annotations: &Annotations{Destructive: true, Idempotent: true},
			Examples: []scrubInput{{Revisions: []string{"bk_01K…"}}},
			Text:     "Remove the text of revisions from pages, memory, history and search, and from kept results of scripts and earlier contents of files. The SHA-256 of each text stays. Only a person of the workspace can do this.",
		}, func(_ context.Context, _ drawbridge.Call, in scrubInput) (prepared[receiptOutput], error) {
			var c workspace.ScrubText
			for _, id := range in.Revisions {
				c.Revisions = append(c.Revisions, workspace.ID(id))
			}
			return written("", c), nil
		}),
	}
}

// newNoteCard returns the app card memory with its note in the memory of the conversation.
func newNoteCard(w Workspace) drawbridge.Card {
	d := memoryDescription()
	d.Crossing = &drawbridge.Crossing{Content: "text", ReadTrail: true, Write: "memory"}
	return newWriting(d, func(ctx context.Context, call drawbridge.Call, in memoryInput) (p prepared[memoryOutput], err error) {
		place := placeOf(call.Caller, string(workspace.ConversationTier), "")
		c := workspace.SetMemory{Tier: place.Tier, Key: place.Key, Name: cmp.Or(in.Session, "note"), Text: in.Text}
		all, err := w.Memory(ctx, call, place)
		if err != nil {
			return p, err
		}
		var note string
		for _, item := range all {
			if item.Name == c.Name {
				note = item.Text
			}
		}
		switch in.Action {
		case "read":
			p.answer = func([]workspace.Receipt) Answer[memoryOutput] {
				return Answer[memoryOutput]{Text: cmp.Or(note, "The note is empty."), Value: memoryOutput{note}}
			}
			return p, nil
		case "replace":
			note = c.Text
		case "append":
			if c.Append = true; note != "" && !strings.HasSuffix(note, "\n") {
				c.Text = "\n" + c.Text
			}
			note += c.Text
		default:
			return p, unknownAction(in.Action, "read", "replace", "append")
		}
		p.Batches = once(c)
		p.answer = func(receipts []workspace.Receipt) Answer[memoryOutput] {
			return Answer[memoryOutput]{Text: describeReceipt(receipts[0]), Value: memoryOutput{note}}
		}
		return p, nil
	})
}

func (in memoryWriteInput) change(caller drawbridge.Caller) workspace.SetMemory {
	place := placeOf(caller, in.Tier, in.Key)
	return workspace.SetMemory{Tier: place.Tier, Key: place.Key, Name: in.Name, Text: in.Text, Append: in.Append}
}

// placeOf returns the place that a caller names. Without a key, a conversation is that of the caller, and an account is
// the caller's own.
func placeOf(caller drawbridge.Caller, tier, key string) workspace.MemoryPlace {
	p := workspace.MemoryPlace{Tier: workspace.Tier(tier), Key: key}
	switch {
	case key != "":
	case p.Tier == workspace.ConversationTier:
		p.Key, _ = deck.ThreadAndRun(caller)
	case p.Tier == workspace.AccountTier:
		p.Key = caller.Principal
	}
	return p
}
