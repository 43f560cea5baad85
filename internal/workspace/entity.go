package workspace

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An ID identifies an entity or a revision. It is unique in all workspaces, and later ones of a workspace are greater.
type ID string

// A Kind is the kind of an entity.
type Kind string

// The kinds of entities.
const (
	PageKind       Kind = "page"
	BlockKind      Kind = "block"
	PropertyKind   Kind = "property"
	TagKind        Kind = "tag"
	AttachmentKind Kind = "attachment"
	GrantKind      Kind = "permission"
	MemoryKind     Kind = "memory"
)

// A Page is a place in the tree of pages. A folder is a page too. Its text is in its blocks, in their order.
type Page struct {
	ID ID `json:"id"`
	// Slug is the name of the page in links: lower case, unique in the workspace.
	Slug  string `json:"slug"`
	Title string `json:"title"`
	// Parent is empty for a page at the top.
	Parent ID   `json:"parent,omitempty"`
	Folder bool `json:"folder,omitempty"`
	// Head is the text before the first block, with its separators: the front matter of an imported file.
	Head    string `json:"head,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
	// File is the path of the file from which the page was imported, in the imported folder.
	File    string    `json:"file,omitempty"`
	Created time.Time `json:"created"`
	Stamp
}

// A Block is a part of a page's text. Slot is its name in the page, which stays when the block moves.
type Block struct {
	ID   ID     `json:"id"`
	Page ID     `json:"page"`
	Slot string `json:"slot"`
	// Type is "markdown" or "image".
	Type string `json:"type"`
	// Text is the content with its line breaks. The texts of all blocks, joined, are the text of the page.
	Text string `json:"text"`
	Stamp
}

// A Stamp is the provenance of the current content of an entity.
type Stamp struct {
	// Revision identifies the current content.
	Revision  ID        `json:"revision"`
	Origin    Origin    `json:"origin"`
	Lifecycle Lifecycle `json:"lifecycle"`
	// By, Thread and Run are those of the actor.
	By     string    `json:"by"`
	Thread string    `json:"thread,omitempty"`
	Run    string    `json:"run,omitempty"`
	At     time.Time `json:"at"`
}

// The limits of names and texts.
const (
	maxTitle      = 300      // characters
	maxSlug       = 200      // characters
	maxName       = 100      // characters of the name of a property or a tag
	maxValue      = 10_000   // bytes of the value of a property
	maxMemory     = 64 << 10 // bytes of an item of memory
	maxBlockText  = 1 << 20  // bytes
	MaxAttachment = 10_000_000
)

// SlugOf returns the slug for a title: lower-case letters and digits of any script, with "-" for everything else. It
// returns "page" for a title without letters and digits.
func SlugOf(title string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(title) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = true
			continue
		}
		if b.Len()+utf8.RuneLen(r)+1 > maxSlug {
			break
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "page"
	}
	return b.String()
}

// checkSlug returns an error if a slug is not what SlugOf would leave as it is. Slugs may have "/" between parts.
func checkSlug(slug string) error {
	if len(slug) > maxSlug {
		return refuse(Invalid, fmt.Sprintf("a slug has at most %d bytes", maxSlug))
	}
	for part := range strings.SplitSeq(slug, "/") {
		if part != SlugOf(part) {
			return refuse(Invalid, fmt.Sprintf("%q is not a slug; try %q", slug, SlugOf(slug)))
		}
	}
	return nil
}

// checkLine returns an error if a text is empty, too long, not UTF-8, or has control characters.
func checkLine(what, text string, limit int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return refuse(Invalid, what+" is empty")
	case !utf8.ValidString(text):
		return refuse(Invalid, what+" is not UTF-8")
	case utf8.RuneCountInString(text) > limit:
		return refuse(Invalid, fmt.Sprintf("%s has more than %d characters", what, limit))
	case strings.ContainsFunc(text, unicode.IsControl):
		return refuse(Invalid, what+" has control characters")
	}
	return nil
}

// checkText returns an error if a text is too long or not UTF-8.
func checkText(what, text string, limit int) error {
	switch {
	case !utf8.ValidString(text):
		return refuse(Invalid, what+" is not UTF-8")
	case strings.ContainsRune(text, 0):
		return refuse(Invalid, what+" has a NUL character")
	case len(text) > limit:
		return refuse(Invalid, fmt.Sprintf("%s has more than %d bytes", what, limit))
	}
	return nil
}
