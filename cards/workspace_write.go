package cards

import (
	"context"
	"encoding/base64"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

type pageCreateInput struct {
	Title     string   `json:"title" jsonschema:"The title."`
	Text      string   `json:"text,omitempty" jsonschema:"The text as Markdown. Paragraphs become blocks."`
	Slug      string   `json:"slug,omitempty" jsonschema:"The name of the page in links; made from the title if absent."`
	Parent    string   `json:"parent,omitempty" jsonschema:"The page above: its ID or slug; absent for the top."`
	Folder    bool     `json:"folder,omitempty" jsonschema:"Whether the page is a folder."`
	Sources   []string `json:"sources,omitempty" jsonschema:"The pages and other objects from which the text was made: IDs or slugs. What was read in this run counts in any case."`
	Lifecycle string   `json:"lifecycle,omitempty" jsonschema:"draft, candidate or canonical; absent for what is usual for you."`
}

type pageUpdateInput struct {
	Page      string   `json:"page" jsonschema:"The ID or the slug of the page."`
	Slot      string   `json:"slot,omitempty" jsonschema:"The block to change. Without it, a new block is added."`
	Text      string   `json:"text" jsonschema:"The text of the block, as Markdown."`
	After     string   `json:"after,omitempty" jsonschema:"For a new block: the slot of the block before it; absent for the beginning."`
	Base      string   `json:"base,omitempty" jsonschema:"The revision of the block that you have read; the call is refused if it has changed."`
	Sources   []string `json:"sources,omitempty" jsonschema:"The objects from which the text was made, beside what was read in this run."`
	Lifecycle string   `json:"lifecycle,omitempty" jsonschema:"draft, candidate or canonical; absent for what is usual for you."`
}

type pageRenameInput struct {
	Page  string `json:"page" jsonschema:"The ID or the slug of the page."`
	Title string `json:"title" jsonschema:"The new title. The slug stays."`
}

type pageMoveInput struct {
	Page   string `json:"page" jsonschema:"The ID or the slug of the page."`
	Parent string `json:"parent,omitempty" jsonschema:"The page above; absent for the top."`
	Slot   string `json:"slot,omitempty" jsonschema:"Move this block of the page in place of the page."`
	After  string `json:"after,omitempty" jsonschema:"For a block: the slot of the block before it; absent for the beginning."`
}

type retireInput struct {
	Entity string `json:"entity" jsonschema:"The ID of the page, block, property, tag or attachment."`
}

type pageTagInput struct {
	Page   string `json:"page" jsonschema:"The ID or the slug of the page."`
	Tag    string `json:"tag" jsonschema:"The tag."`
	Remove bool   `json:"remove,omitempty" jsonschema:"Remove the tag in place of adding it."`
}

type pagePropertyInput struct {
	Page   string   `json:"page" jsonschema:"The ID or the slug of the page."`
	Name   string   `json:"name" jsonschema:"The name of the property."`
	Type   string   `json:"type" jsonschema:"text, number, yes_no, date, select, multi_select or relation. The first write of a name fixes its type."`
	Values []string `json:"values,omitempty" jsonschema:"The values; absent to remove the property from the page."`
}

type pageAttachInput struct {
	Page string `json:"page" jsonschema:"The ID or the slug of the page."`
	Name string `json:"name" jsonschema:"The name of the file."`
	Type string `json:"type" jsonschema:"The media type, such as image/png."`
	Data string `json:"data" jsonschema:"The bytes, in base64; at most 10 MB."`
}

type pageDeriveInput struct {
	Entity  string   `json:"entity" jsonschema:"The ID of the page or block that was derived."`
	Sources []string `json:"sources" jsonschema:"The objects from which it was derived: IDs or slugs."`
}

// pageWritingCards returns the cards that write pages.
func pageWritingCards(w Workspace) []drawbridge.Card {
	return slices.Concat(textCards(w), placeCards(w), detailCards(w))
}

// crossingWith returns the registration of a card whose content is an argument, and whose sources are what the run has
// read.
func crossingWith(write, argument string) *drawbridge.Crossing {
	return &drawbridge.Crossing{Content: argument, ReadTrail: true, Write: write}
}

// textCards returns the cards that write titles and texts.
func textCards(w Workspace) []drawbridge.Card {
	propose := []drawbridge.Scope{scopePropose}
	content, block := crossingWith("page", "text"), crossingWith("block", "text")
	content.Sources, block.Sources = "sources", "sources"
	return []drawbridge.Card{
		newWriting(Description[pageCreateInput]{Name: "page_create", Title: "Create a page", Scopes: propose, Crossing: content,
			Annotations: &Annotations{}, Examples: []pageCreateInput{{Title: "Release plan", Text: "# Release plan\n\nFirst the tests.\n"}},
			Text: "Create a page in the workspace.\n\nWhat an agent writes is a candidate until a person accepts it. The pages that were read in this run are recorded as its sources.",
		}, func(ctx context.Context, call drawbridge.Call, in pageCreateInput) (p prepared[receiptOutput], err error) {
			c := workspace.CreatePage{Title: in.Title, Slug: in.Slug, Folder: in.Folder}
			if c.Parent, err = pageID(ctx, w, call, in.Parent); err != nil {
				return p, err
			}
			head, blocks := workspace.SplitMarkdown(in.Text)
			c.Head = head
			for _, text := range blocks {
				c.Blocks = append(c.Blocks, workspace.NewBlock{Type: "markdown", Text: text})
			}
			return written(in.Lifecycle, c), nil
		}),
		newWriting(Description[pageUpdateInput]{Name: "page_update", Title: "Change a page", Scopes: propose, Crossing: block,
			Annotations: &Annotations{Idempotent: true}, Examples: []pageUpdateInput{{Page: "release-plan", Slot: "b2", Text: "First the tests.\n"}},
			Text: "Change a block of a page, or add one.\n\nWhat a person wrote or accepted stays in place; the new text then waits until a person accepts it.",
		}, func(ctx context.Context, call drawbridge.Call, in pageUpdateInput) (p prepared[receiptOutput], err error) {
			id, err := pageID(ctx, w, call, in.Page)
			if err != nil {
				return p, err
			}
			if in.Slot == "" {
				return written(in.Lifecycle, workspace.AddBlock{Page: id, After: in.After,
					Block: workspace.NewBlock{Type: "markdown", Text: in.Text}}), nil
			}
			return written(in.Lifecycle, workspace.SetBlock{Page: id, Slot: in.Slot, Text: in.Text, Base: workspace.ID(in.Base)}), nil
		}),
		onePage(w, Description[pageRenameInput]{Name: "page_rename", Title: "Rename a page", Scopes: propose, Crossing: crossingWith("page", "title"),
			Annotations: &Annotations{Idempotent: true}, Examples: []pageRenameInput{{Page: "plan", Title: "The plan"}},
			Text: "Give a page another title. Its slug stays, so that links hold.",
		}, func(in pageRenameInput) string { return in.Page },
			func(id workspace.ID, in pageRenameInput) (workspace.Change, error) {
				return workspace.SetTitle{Page: id, Title: in.Title}, nil
			}),
	}
}

// placeCards returns the cards that move, delete and retire.
func placeCards(w Workspace) []drawbridge.Card {
	author := []drawbridge.Scope{scopeAuthor}
	crossing := &drawbridge.Crossing{Write: "page"}
	return []drawbridge.Card{
		newWriting(Description[pageMoveInput]{Name: "page_move", Title: "Move a page", Scopes: author, Crossing: crossing,
			Annotations: &Annotations{Idempotent: true}, Examples: []pageMoveInput{{Page: "plan", Parent: "projects"}},
			Text: "Put a page below another one, or a block of a page to another place in it.",
		}, func(ctx context.Context, call drawbridge.Call, in pageMoveInput) (p prepared[receiptOutput], err error) {
			id, err := pageID(ctx, w, call, in.Page)
			if err != nil {
				return p, err
			}
			if in.Slot != "" {
				return written("", workspace.MoveBlock{Page: id, Slot: in.Slot, After: in.After}), nil
			}
			parent, err := pageID(ctx, w, call, in.Parent)
			return written("", workspace.MovePage{Page: id, Parent: parent}), err
		}),
		onePage(w, Description[pageInput]{Name: "page_delete", Title: "Delete a page", Scopes: author, Crossing: crossing,
			Annotations: &Annotations{Destructive: true, Idempotent: true}, Examples: []pageInput{{Page: "plan"}},
			Text: "Take a page out of lists and searches. page_restore takes it back.",
		}, func(in pageInput) string { return in.Page },
			func(id workspace.ID, _ pageInput) (workspace.Change, error) {
				return workspace.DeletePage{Page: id}, nil
			}),
		onePage(w, Description[pageInput]{Name: "page_restore", Title: "Restore a page", Scopes: author, Crossing: crossing,
			Annotations: &Annotations{Idempotent: true}, Examples: []pageInput{{Page: "plan"}},
			Text: "Take a deleted page back.",
		}, func(in pageInput) string { return in.Page },
			func(id workspace.ID, _ pageInput) (workspace.Change, error) {
				return workspace.RestorePage{Page: id}, nil
			}),
		newWriting(Description[retireInput]{Name: "page_retire", Title: "Retire content", Scopes: author, Crossing: crossing,
			Annotations: &Annotations{Destructive: true, Idempotent: true}, Examples: []retireInput{{Entity: "bk_01K…"}},
			Text: "Mark a page, a block or another object as no longer valid.\n\nIts text stays in the history. What a person wrote or accepted, only a person can retire.",
		}, func(_ context.Context, _ drawbridge.Call, in retireInput) (prepared[receiptOutput], error) {
			return written("", workspace.Retire{Entity: workspace.ID(in.Entity)}), nil
		}),
	}
}

// detailCards returns the cards that write what a page has beside its text.
func detailCards(w Workspace) []drawbridge.Card {
	propose := []drawbridge.Scope{scopePropose}
	return []drawbridge.Card{
		onePage(w, Description[pageTagInput]{Name: "page_tag", Title: "Tag a page", Scopes: propose, Crossing: crossingWith("tag", "tag"),
			Annotations: &Annotations{Idempotent: true}, Examples: []pageTagInput{{Page: "plan", Tag: "release"}},
			Text: "Add a tag to a page, or remove it.",
		}, func(in pageTagInput) string { return in.Page },
			func(id workspace.ID, in pageTagInput) (workspace.Change, error) {
				return workspace.SetTag{Page: id, Tag: in.Tag, Remove: in.Remove}, nil
			}),
		onePage(w, Description[pagePropertyInput]{Name: "page_property", Title: "Set a property", Scopes: propose, Crossing: crossingWith("property", "values"),
			Annotations: &Annotations{Idempotent: true},
			Examples:    []pagePropertyInput{{Page: "plan", Name: "due", Type: "date", Values: []string{"2027-01-31"}}},
			Text:        "Give a property of a page values, or remove it.",
		}, func(in pagePropertyInput) string { return in.Page },
			func(id workspace.ID, in pagePropertyInput) (workspace.Change, error) {
				return workspace.SetProperty{Page: id, Name: in.Name, Type: workspace.PropertyType(in.Type), Values: in.Values}, nil
			}),
		onePage(w, Description[pageAttachInput]{Name: "page_attach", Title: "Attach a file", Scopes: propose, Crossing: crossingWith("attachment", "data"),
			Annotations: &Annotations{}, Examples: []pageAttachInput{{Page: "plan", Name: "chart.png", Type: "image/png", Data: "iVBORw0KGgo="}},
			Text: "Attach a file to a page: PNG, JPEG, GIF, WebP, SVG, PDF, DOC, DOCX or CSV. The same bytes are kept once.",
		}, func(in pageAttachInput) string { return in.Page },
			func(id workspace.ID, in pageAttachInput) (workspace.Change, error) {
				data, err := base64.StdEncoding.DecodeString(in.Data)
				if err != nil {
					return nil, ToolError("The data is not base64.")
				}
				return workspace.Attach{Page: id, Name: in.Name, Type: in.Type, Data: data}, nil
			}),
		newWriting(Description[pageDeriveInput]{Name: "page_derive", Title: "Record sources", Scopes: propose,
			Crossing: &drawbridge.Crossing{Sources: "sources", Write: "page"}, Annotations: &Annotations{Idempotent: true},
			Examples: []pageDeriveInput{{Entity: "bk_01K…", Sources: []string{"plan"}}},
			Text:     "Record that a page or a block was derived from others. When one of these changes, a person is asked to look at it again.",
		}, func(_ context.Context, _ drawbridge.Call, in pageDeriveInput) (prepared[receiptOutput], error) {
			return written("", workspace.Derive{Entity: workspace.ID(in.Entity)}), nil
		}),
	}
}

// onePage returns a card that changes one page. name returns the page that the arguments name.
func onePage[In any](w Workspace, d Description[In], name func(In) string,
	change func(id workspace.ID, in In) (workspace.Change, error)) drawbridge.Card {
	return newWriting(d, func(ctx context.Context, call drawbridge.Call, in In) (p prepared[receiptOutput], err error) {
		id, err := pageID(ctx, w, call, name(in))
		if err != nil {
			return p, err
		}
		c, err := change(id, in)
		if err != nil {
			return p, err
		}
		return written("", c), nil
	})
}
