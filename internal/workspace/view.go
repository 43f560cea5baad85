package workspace

import (
	"net/url"
	"strings"
	"time"
)

// A PageView is a page with what it has. What was removed is left out.
type PageView struct {
	Page
	Blocks     []Block        `json:"blocks"`
	Tags       []TagView      `json:"tags,omitempty"`
	Properties []PropertyView `json:"properties,omitempty"`
	// Flags are those of the page and of its blocks.
	Flags []Flag `json:"flags,omitempty"`
	// Weight is the number of pages with a link to this one, and Standing the number of entities that are derived from
	// the page. They are counted at each read.
	Weight   int `json:"weight"`
	Standing int `json:"standing"`
}

// Text returns the text of the page, byte for byte as it was imported if nothing was changed. Retired blocks are left
// out, and on a canonical page those that no person has accepted.
func (p PageView) Text() string {
	return p.text(func(l Lifecycle) bool {
		return p.Lifecycle != Canonical || l == Canonical
	})
}

// ProposedText returns the text of the page with the blocks that no person has accepted.
func (p PageView) ProposedText() string {
	return p.text(func(Lifecycle) bool { return true })
}

func (p PageView) text(with func(Lifecycle) bool) string {
	var b strings.Builder
	b.WriteString(p.Head)
	for _, block := range p.Blocks {
		if block.Lifecycle != Retired && with(block.Lifecycle) {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// A TagView is a tag of a page.
type TagView struct {
	ID  ID     `json:"id"`
	Tag string `json:"tag"`
	Stamp
}

// A PropertyView is a property of a page.
type PropertyView struct {
	ID     ID           `json:"id"`
	Name   string       `json:"name"`
	Type   PropertyType `json:"type"`
	Values []string     `json:"values"`
	Stamp
}

// A Flag says that an entity is derived from content that has changed since.
type Flag struct {
	Entity ID        `json:"entity"`
	Page   ID        `json:"page,omitempty"`
	Source ID        `json:"source"`
	At     time.Time `json:"at"`
	// Standing is the number of entities that are derived from the flagged one.
	Standing int `json:"standing"`
}

// A Revision is content that an entity has, had, or may get. The contents of one write have the same revision ID.
type Revision struct {
	Entity ID     `json:"entity"`
	Kind   Kind   `json:"kind"`
	Page   ID     `json:"page,omitempty"`
	Text   string `json:"text"`
	Digest string `json:"digest"`
	// State is current, past, waiting, rejected or scrubbed.
	State string `json:"state"`
	// Base is the revision that was current when this one was written; empty for the first one.
	Base       ID        `json:"base,omitempty"`
	AcceptedBy string    `json:"accepted_by,omitempty"`
	Accepted   time.Time `json:"accepted,omitzero"`
	Stamp
}

// A Deviation says that content disagrees with canonical content.
type Deviation struct {
	ID         ID        `json:"id"`
	Entity     ID        `json:"entity"`
	Revision   ID        `json:"revision"`
	Canonical  ID        `json:"canonical"`
	At         time.Time `json:"at"`
	Resolved   time.Time `json:"resolved,omitzero"`
	Resolution string    `json:"resolution,omitempty"`
}

// The URIs of pages and of memory as resources.
const (
	pageURI   = "drawbridge://page/"
	memoryURI = "drawbridge://memory/"
)

// PageURI returns the URI of a page as a resource. name is its ID or its slug.
func PageURI(name string) string { return pageURI + strings.ReplaceAll(name, "/", "%2F") }

// MemoryURI returns the URI of the memory of a place as a resource. Without a key it stands for the caller's own.
func MemoryURI(p MemoryPlace) string {
	if p.Key == "" {
		return memoryURI + string(p.Tier)
	}
	return memoryURI + string(p.Tier) + "/" + url.PathEscape(p.Key)
}

// ParseURI returns the name of a page, or the place of memory, that a URI stands for.
func ParseURI(uri string) (page string, place MemoryPlace, ok bool) {
	if rest, found := strings.CutPrefix(uri, pageURI); found {
		name, err := url.PathUnescape(rest)
		return name, place, err == nil && name != ""
	}
	rest, found := strings.CutPrefix(uri, memoryURI)
	tier, key, _ := strings.Cut(rest, "/")
	key, err := url.PathUnescape(key)
	return "", MemoryPlace{Tier(tier), key}, found && err == nil
}

// PageLinks is what leads to a page and away from it.
type PageLinks struct {
	// Links are those in the text of the page, and Backlinks the pages with a link to it.
	Links     []Link `json:"links"`
	Backlinks []Page `json:"backlinks"`
	// Sources are the entities from which the page is derived, and Derived those derived from it. Outside are the sources
	// of the page outside of the workspace.
	Sources []ID        `json:"sources"`
	Derived []ID        `json:"derived"`
	Outside []Reference `json:"outside"`
}

// maxListed is the maximum number of rows that a list returns.
const maxListed = 1000

// A Window is a part of a list: Limit rows after the first Offset ones. A Limit of 0, or above 1,000, is 1,000.
type Window struct{ Offset, Limit int }

// Bounds returns the limit and the offset in their bounds.
func (w Window) Bounds() (limit, offset int) {
	if w.Limit <= 0 || w.Limit > maxListed {
		w.Limit = maxListed
	}
	return w.Limit, max(w.Offset, 0)
}

// A Hit is a page that a search has found.
type Hit struct {
	Page
	// Score orders the hits: higher is better. Scores of two searches cannot be compared.
	Score float64 `json:"score"`
}

// A MemoryItem is an item of memory.
type MemoryItem struct {
	ID   ID     `json:"id"`
	Tier Tier   `json:"tier"`
	Key  string `json:"key,omitempty"`
	Name string `json:"name"`
	Text string `json:"text"`
	Stamp
}

// An Attachment is a file of a page.
type Attachment struct {
	ID   ID     `json:"id"`
	Page ID     `json:"page"`
	Name string `json:"name"`
	Type string `json:"type"`
	// Digest is the SHA-256 of the bytes, in hexadecimal digits.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	Stamp
}

// A Receipt says what a write has done.
type Receipt struct {
	// Entity is what was written, and Page the page that it belongs to.
	Entity ID `json:"entity"`
	Page   ID `json:"page,omitempty"`
	// Slug is the slug of a page that was made.
	Slug string `json:"slug,omitempty"`
	// Origin and Lifecycle are those of the written content.
	Origin    Origin    `json:"origin,omitempty"`
	Lifecycle Lifecycle `json:"lifecycle,omitempty"`
	// Revision identifies the write. If the entity has this content already, it is the revision of that content, and
	// nothing was written.
	Revision ID `json:"revision"`
	// Waiting reports that content of a person stays in place until one accepts the new content. Deviation is the record
	// of a disagreement with canonical content; empty without one.
	Waiting   bool `json:"waiting,omitempty"`
	Deviation ID   `json:"deviation,omitempty"`
	// Flagged is the number of entities derived from the changed content, which a person should look at again.
	Flagged int `json:"flagged,omitempty"`
}
