package cards

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/textfile"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

type pageReadInput struct {
	Page     string `json:"page" jsonschema:"The ID or the slug of the page."`
	Revision string `json:"revision,omitempty" jsonschema:"Show this revision of the page or of a part of it, in place of the current content."`
	// Attachment returns the file in a content block.
	Attachment string `json:"attachment,omitempty" jsonschema:"Return this attachment of the page, by its ID or name, in place of the text."`
}

type pageReadOutput struct {
	Page        *workspace.PageView    `json:"page,omitempty"`
	Attachments []workspace.Attachment `json:"attachments,omitempty"`
	// Revisions are the contents of the revision that was asked for.
	Revisions []workspace.Revision `json:"revisions,omitempty"`
}

type pageListInput struct {
	Parent string `json:"parent,omitempty" jsonschema:"The ID or the slug of a page; absent for the pages at the top."`
	Deep   bool   `json:"deep,omitempty" jsonschema:"Whether to list the pages below each page too, right after it."`
	Offset int    `json:"offset,omitempty" jsonschema:"How many pages to leave out at the beginning."`
}

type pageListOutput struct {
	Pages []workspace.Page `json:"pages"`
}

type pageSearchInput struct {
	Query string `json:"query" jsonschema:"Words that the page has. The last one may be the beginning of a word."`
	Limit int    `json:"limit,omitempty" jsonschema:"The maximum number of pages; 10 if absent."`
}

type pageSearchOutput struct {
	Hits []workspace.Hit `json:"hits"`
}

type pageInput struct {
	Page string `json:"page" jsonschema:"The ID or the slug of the page."`
}

type pageLinksInput struct {
	Page     string `json:"page,omitempty" jsonschema:"The ID or the slug of the page."`
	Revision string `json:"revision,omitempty" jsonschema:"Show the sources of this revision only, in place of a page."`
}

type pageLinksOutput struct {
	Links workspace.PageLinks `json:"links"`
}

type pageHistoryInput struct {
	Page   string `json:"page,omitempty" jsonschema:"The ID or the slug of the page, for the page and all that it has."`
	Entity string `json:"entity,omitempty" jsonschema:"The ID of one block, property, tag, attachment or item of memory."`
	Offset int    `json:"offset,omitempty" jsonschema:"How many revisions to leave out, the newest first."`
	Limit  int    `json:"limit,omitempty" jsonschema:"The maximum number of revisions; 50 if absent."`
}

type pageHistoryOutput struct {
	Revisions []workspace.Revision `json:"revisions"`
}

type pageDiffInput struct {
	Revision string `json:"revision" jsonschema:"The revision to show."`
	With     string `json:"with,omitempty" jsonschema:"The revision to compare with; absent for the one that it replaced or would replace."`
}

type pageDiffOutput struct {
	Diff string `json:"diff"`
}

// pageCards returns the cards that read pages.
func pageCards(w Workspace) []drawbridge.Card {
	scopes := []drawbridge.Scope{scopeRead}
	return []drawbridge.Card{
		newShipped(Description[pageReadInput]{Name: "page_read", Title: "Read a page", Scopes: scopes,
			Text: "Read a page of the workspace.\n\nEach block is shown with its slot, who wrote it and whether a person has accepted it. " +
				"The page is recorded as a source of what you write later in this run.",
			Examples: []pageReadInput{{Page: "plan"}},
		}, func(ctx context.Context, call drawbridge.Call, in pageReadInput) (answer Answer[pageReadOutput], err error) {
			return readPage(ctx, w, call, in)
		}),
		newShipped(Description[pageListInput]{Name: "page_list", Title: "List pages", Scopes: scopes,
			Text:     "List the pages below a page, or at the top.\n\nThe list has at most 1,000 pages, by their titles; offset shows later ones.",
			Examples: []pageListInput{{}, {Parent: "projects", Deep: true}},
		}, func(ctx context.Context, call drawbridge.Call, in pageListInput) (answer Answer[pageListOutput], err error) {
			parent, err := pageID(ctx, w, call, in.Parent)
			if err != nil {
				return answer, err
			}
			part := workspace.Window{Offset: in.Offset}
			var all []workspace.Page
			if in.Deep {
				all, err = pagesBelow(ctx, w, call, parent, part)
			} else {
				all, err = w.Children(ctx, call, parent, part)
			}
			return Answer[pageListOutput]{Text: describePages(all), Value: pageListOutput{orEmpty(all)}}, err
		}),
		newShipped(Description[pageSearchInput]{Name: "page_search", Title: "Search pages", Scopes: scopes,
			Text:     "Find pages of the workspace that have all words of a query in their title or text.",
			Examples: []pageSearchInput{{Query: "release checklist"}},
		}, func(ctx context.Context, call drawbridge.Call, in pageSearchInput) (answer Answer[pageSearchOutput], err error) {
			all, err := w.Search(ctx, call, in.Query, workspace.Window{Limit: cmp.Or(max(in.Limit, 0), 10)})
			pages := make([]workspace.Page, len(all))
			for i, h := range all {
				pages[i] = h.Page
			}
			return Answer[pageSearchOutput]{Text: describePages(pages), Value: pageSearchOutput{orEmpty(all)}}, err
		}),
		newShipped(Description[pageLinksInput]{Name: "page_links", Title: "Show links of a page", Scopes: scopes,
			Text:     "Show what leads to a page and away from it: links, and what it was derived from. Or show the sources of one revision.",
			Examples: []pageLinksInput{{Page: "plan"}},
		}, func(ctx context.Context, call drawbridge.Call, in pageLinksInput) (answer Answer[pageLinksOutput], err error) {
			l, err := linksOf(ctx, w, call, in)
			if err != nil {
				return answer, err
			}
			l.Links, l.Backlinks, l.Sources, l.Derived, l.Outside = orEmpty(l.Links), orEmpty(l.Backlinks), orEmpty(l.Sources),
				orEmpty(l.Derived), orEmpty(l.Outside)
			return Answer[pageLinksOutput]{Text: describeLinks(l), Value: pageLinksOutput{l}}, nil
		}),
		newShipped(Description[pageHistoryInput]{Name: "page_history", Title: "Show the history of a page", Scopes: scopes,
			Text:     "Show the revisions of a page or of one object, the newest first: who wrote them, and who accepted them.",
			Examples: []pageHistoryInput{{Page: "plan"}},
		}, func(ctx context.Context, call drawbridge.Call, in pageHistoryInput) (answer Answer[pageHistoryOutput], err error) {
			entity := workspace.ID(in.Entity)
			if (in.Page == "") == (in.Entity == "") {
				return answer, ToolError("Name a page or an entity.")
			}
			if in.Page != "" {
				if entity, err = pageID(ctx, w, call, in.Page); err != nil {
					return answer, err
				}
			}
			all, err := w.History(ctx, call, entity, workspace.Window{Offset: in.Offset, Limit: cmp.Or(max(in.Limit, 0), 50)})
			return Answer[pageHistoryOutput]{Text: describeRevisions(all), Value: pageHistoryOutput{orEmpty(all)}}, err
		}),
		newShipped(Description[pageDiffInput]{Name: "page_diff", Title: "Compare revisions", Scopes: scopes,
			Text:     "Show how a revision differs from the one that it replaced or would replace, or from another one, as a unified diff.",
			Examples: []pageDiffInput{{Revision: "bk_01K…"}},
		}, func(ctx context.Context, call drawbridge.Call, in pageDiffInput) (answer Answer[pageDiffOutput], err error) {
			diff, err := diffRevisions(ctx, w, call, in)
			return Answer[pageDiffOutput]{Foreign: true, Text: diff, Value: pageDiffOutput{diff}}, err
		}),
	}
}

// pageID returns the ID of a page that a caller names; "" for an empty name.
func pageID(ctx context.Context, w Workspace, call drawbridge.Call, name string) (workspace.ID, error) {
	if name == "" {
		return "", nil
	}
	return w.Resolve(ctx, call, name)
}

// pagesBelow returns a part of the pages below a page, each with those below it right after it.
func pagesBelow(ctx context.Context, w Workspace, call drawbridge.Call, parent workspace.ID, part workspace.Window) ([]workspace.Page, error) {
	limit, skip := part.Bounds()
	var all []workspace.Page
	var walk func(parent workspace.ID) error
	walk = func(parent workspace.ID) error {
		for offset := 0; len(all) < limit; {
			pages, err := w.Children(ctx, call, parent, workspace.Window{Offset: offset})
			if err != nil || len(pages) == 0 {
				return err
			}
			offset += len(pages)
			for _, p := range pages {
				if skip--; skip < 0 && len(all) < limit {
					all = append(all, p)
				}
				if err := walk(p.ID); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return all, walk(parent)
}

func readPage(ctx context.Context, w Workspace, call drawbridge.Call, in pageReadInput) (answer Answer[pageReadOutput], err error) {
	v, err := w.Page(ctx, call, in.Page)
	if err != nil {
		return answer, err
	}
	if in.Revision != "" {
		all, err := w.Revision(ctx, call, workspace.ID(in.Revision))
		all = slices.DeleteFunc(all, func(r workspace.Revision) bool { return r.Page != v.ID })
		if err == nil && len(all) == 0 {
			err = ToolError("The page has no revision " + in.Revision + ".")
		}
		return Answer[pageReadOutput]{Foreign: true, Text: describeContents(all), Value: pageReadOutput{Revisions: all}}, err
	}
	files, err := w.Attachments(ctx, call, v.ID)
	if err == nil && in.Attachment != "" {
		return readAttachment(ctx, w, call, files, in.Attachment)
	}
	v.Blocks = orEmpty(v.Blocks)
	return Answer[pageReadOutput]{Foreign: true, Text: describePage(v, files), Value: pageReadOutput{Page: &v, Attachments: files}}, err
}

// readAttachment returns one of the attachments of a page, by its ID or name: an image as an image, any other file as an
// embedded resource.
func readAttachment(ctx context.Context, w Workspace, call drawbridge.Call, files []workspace.Attachment, name string) (
	answer Answer[pageReadOutput], err error) {
	i := slices.IndexFunc(files, func(f workspace.Attachment) bool { return string(f.ID) == name || f.Name == name })
	if i < 0 {
		return answer, ToolError("The page has no attachment " + safetext.Quote(name) + ".")
	}
	f := files[i]
	data, err := w.AttachedBytes(ctx, call, f)
	if err != nil {
		return answer, err
	}
	text := base64.StdEncoding.EncodeToString(data)
	block := imageBlock(text, f.Type)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, f.Type) {
		block = rawjson.Apply(nil, rawjson.Put(rawjson.Quote("resource"), "type"),
			rawjson.Put(rawjson.Quote(workspace.PageURI(string(f.Page))+"#"+string(f.ID)), "resource", "uri"),
			rawjson.Put(rawjson.Quote(f.Type), "resource", "mimeType"), rawjson.Put(rawjson.Quote(text), "resource", "blob"))
	}
	return Answer[pageReadOutput]{Foreign: true, Text: fmt.Sprintf("%s, %s, %d bytes (%s)", f.Name, f.Type, f.Size, describeStamp(f.Stamp)),
		Value: pageReadOutput{Attachments: files[i : i+1]}, Blocks: []json.RawMessage{block}}, nil
}

// linksOf returns the links of a page, or the sources of a revision.
func linksOf(ctx context.Context, w Workspace, call drawbridge.Call, in pageLinksInput) (l workspace.PageLinks, err error) {
	if (in.Page == "") == (in.Revision == "") {
		return l, ToolError("Name a page or a revision.")
	}
	if in.Revision != "" {
		l.Sources, l.Outside, err = w.Sources(ctx, call, workspace.ID(in.Revision))
		return l, err
	}
	v, err := w.Page(ctx, call, in.Page)
	if err != nil {
		return l, err
	}
	return w.Links(ctx, call, v, workspace.Window{})
}

func diffRevisions(ctx context.Context, w Workspace, call drawbridge.Call, in pageDiffInput) (string, error) {
	after, err := w.Revision(ctx, call, workspace.ID(in.Revision))
	if err != nil {
		return "", err
	}
	if len(after) == 0 {
		return "", ToolError("The workspace has no revision " + in.Revision + ".")
	}
	var b strings.Builder
	for _, r := range after {
		var before workspace.Revision
		if with := cmp.Or(in.With, string(r.Base)); with != "" {
			all, err := w.Revision(ctx, call, workspace.ID(with))
			if err != nil {
				return "", err
			}
			for _, other := range all {
				if other.Entity == r.Entity {
					before = other
				}
			}
		}
		b.WriteString(textfile.WholeDiff(fmt.Sprintf("%s %s", r.Kind, r.Entity), before.Text, r.Text))
	}
	return b.String(), nil
}

// orEmpty returns a list that is encoded as [] if it has no members.
func orEmpty[T any](all []T) []T { return append([]T{}, all...) }

// describeStamp returns a text about who wrote content, and whether it is accepted.
func describeStamp(s workspace.Stamp) string {
	by := s.By
	if s.Run != "" {
		by += ", run " + s.Run
	}
	return fmt.Sprintf("%s, %s by %s, %s", s.Lifecycle, s.Origin, by, s.At.Format(time.RFC3339))
}

func describePages(all []workspace.Page) string {
	var b strings.Builder
	for _, p := range all {
		kind := ""
		if p.Folder {
			kind = ", folder"
		}
		fmt.Fprintf(&b, "%s  %s  (%s%s)\n", p.Slug, p.Title, p.Lifecycle, kind)
	}
	if len(all) == 0 {
		return "No pages."
	}
	return b.String()
}

// describePage returns the text of a page with its marks.
func describePage(v workspace.PageView, files []workspace.Attachment) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n%s · %s\n", v.Title, v.Slug, describeStamp(v.Stamp))
	if v.Deleted {
		b.WriteString("The page is deleted.\n")
	}
	for _, tag := range v.Tags {
		fmt.Fprintf(&b, "tag %s (%s)\n", tag.Tag, tag.Lifecycle)
	}
	for _, p := range v.Properties {
		fmt.Fprintf(&b, "%s: %s (%s)\n", p.Name, strings.Join(p.Values, ", "), p.Lifecycle)
	}
	for _, f := range files {
		fmt.Fprintf(&b, "attachment %s, %s, %d bytes (%s)\n", f.Name, f.Type, f.Size, f.Lifecycle)
	}
	for _, f := range v.Flags {
		fmt.Fprintf(&b, "%s was derived from %s, which has changed: a person should look at it again.\n", f.Entity, f.Source)
	}
	if v.Head != "" {
		fmt.Fprintf(&b, "\n%s", v.Head)
	}
	for _, block := range v.Blocks {
		fmt.Fprintf(&b, "\n[%s · %s · revision %s]\n%s", block.Slot, describeStamp(block.Stamp), block.Revision, block.Text)
	}
	return b.String()
}

func describeLinks(l workspace.PageLinks) string {
	var b strings.Builder
	for _, link := range l.Links {
		fmt.Fprintf(&b, "links to %s\n", link.Slug)
	}
	for _, p := range l.Backlinks {
		fmt.Fprintf(&b, "linked from %s  %s\n", p.Slug, p.Title)
	}
	for _, id := range l.Sources {
		fmt.Fprintf(&b, "derived from %s\n", id)
	}
	for _, id := range l.Derived {
		fmt.Fprintf(&b, "source of %s\n", id)
	}
	for _, r := range l.Outside {
		fmt.Fprintf(&b, "made from %s %s%s\n", r.Kind, r.Name, prefixed(" of ", r.Server))
	}
	if b.Len() == 0 {
		return "Nothing leads to the page or away from it."
	}
	return b.String()
}

// prefixed returns a text after a prefix, or "" if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func describeRevisions(all []workspace.Revision) string {
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "%s  %s %s  %s: %s", r.Revision, r.Kind, r.Entity, r.State, describeStamp(r.Stamp))
		if r.AcceptedBy != "" {
			fmt.Fprintf(&b, "; accepted by %s, %s", r.AcceptedBy, r.Accepted.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	if len(all) == 0 {
		return "No revisions."
	}
	return b.String()
}

// describeContents returns the texts of revisions.
func describeContents(all []workspace.Revision) string {
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "[%s %s · %s: %s]\n%s\n", r.Kind, r.Entity, r.State, describeStamp(r.Stamp), r.Text)
	}
	return b.String()
}
