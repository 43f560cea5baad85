package workspace

import (
	"encoding/json"
	"fmt"
	"iter"
)

// A Why says what an entity or a source is, who wrote it, and from what it was made. Its sources form a tree.
type Why struct {
	// Kind is the kind of an entity, or one of the kinds below.
	Kind string `json:"kind"`
	// ID is the ID of an entity; empty for what is outside of the workspace.
	ID ID `json:"id,omitempty"`
	// Name is the title of a page, the slots of blocks, the name of another entity, a path, a URL, or the name of a
	// tool. Page is the slug of the page that the entity belongs to. Server is the server that returned a result.
	Name   string `json:"name"`
	Page   string `json:"page,omitempty"`
	Server string `json:"server,omitempty"`
	// Digest is the SHA-256 of the content in hexadecimal digits; empty if it is not known.
	Digest string `json:"digest,omitempty"`
	// Call is the ID of the audit record of the call that read a source outside of the workspace.
	Call string `json:"call,omitempty"`
	// Written says who wrote the content; nil for what is outside of the workspace.
	Written *Written `json:"written,omitempty"`
	// State is that of the revision; see Revision.
	State string `json:"state,omitempty"`
	// Deleted reports that the entity is a page which is deleted now.
	Deleted bool `json:"deleted,omitempty"`
	// Shown reports that the sources are listed at another place of the tree.
	Shown bool `json:"shown,omitempty"`
	// LeftOut is the number of sources that are not in the tree, because it would be too large.
	LeftOut int    `json:"left_out,omitempty"`
	Sources []*Why `json:"sources,omitempty"`
}

// The kinds of a Why beside those of entities.
const (
	FileSource   = "file"
	WebSource    = "web page"
	ResultSource = "result"
	// MoreSources stands for sources that a run had read and that were not noted.
	MoreSources = "more"
	// Statement has what the export of a workspace said about an imported page. Nothing proves it.
	Statement = "statement"
	// Withheld is an item of memory that the reader may not see.
	Withheld = "withheld"
)

// A Written says who wrote content, and with which call.
type Written struct {
	Stamp
	// Actor is the kind of actor: author, agent, client or import. Script reports that a script of the actor wrote.
	Actor  string `json:"actor,omitempty"`
	Script bool   `json:"script,omitempty"`
	// Tool is the called tool, and Call the ID of the audit record of the call. Earlier releases did not store them.
	Tool string `json:"tool,omitempty"`
	Call string `json:"call,omitempty"`
	// Prompt is the first line of the person's last prompt before the write; empty if it is not known.
	Prompt string `json:"prompt,omitempty"`
}

// A CallWrite is a write of a call.
type CallWrite struct {
	Revision ID `json:"revision"`
	// Change is the kind of the change, such as CreatePage. Entity is what was written, and Page the slug of its page.
	Change string `json:"change"`
	Entity ID     `json:"entity,omitempty"`
	Page   string `json:"page,omitempty"`
}

// Title returns the kind and the name of the entity or source of a node, such as "page Frogs (frogs)" or "block b2 of
// frogs". The text comes from users and servers: make it printable before you show it.
func (w *Why) Title() string {
	switch {
	case w.Kind == string(PageKind):
		return fmt.Sprintf("%s %s (%s)", w.Kind, w.Name, w.Page)
	case w.Page != "":
		return w.Kind + " " + w.Name + " of " + w.Page
	}
	return w.Kind + " " + w.Name
}

// All returns the node and all nodes below it, each before its sources.
func (w *Why) All() iter.Seq[*Why] {
	return func(yield func(*Why) bool) { w.walk(yield) }
}

func (w *Why) walk(yield func(*Why) bool) bool {
	if !yield(w) {
		return false
	}
	for _, source := range w.Sources {
		if !source.walk(yield) {
			return false
		}
	}
	return true
}

// MaxStated is the maximum size in bytes of what an export states about a page.
const MaxStated = 256 << 10

// maxStatedDepth is the maximum depth of a tree that an export states.
const maxStatedDepth = 100

// ParseStated decodes the tree that an export states about a page.
func ParseStated(text []byte) (*Why, error) {
	if len(text) > MaxStated {
		return nil, refuse(Invalid, fmt.Sprintf("the statement about the sources has more than %d bytes", MaxStated))
	}
	var w Why
	if err := json.Unmarshal(text, &w); err != nil || w.depth() > maxStatedDepth {
		return nil, refuse(Invalid, "the statement about the sources is not a tree of sources")
	}
	return &w, nil
}

// depth returns the number of levels of the tree. A source that is null makes it too deep.
func (w *Why) depth() int {
	deepest := 0
	for _, source := range w.Sources {
		if source == nil {
			return maxStatedDepth + 1
		}
		deepest = max(deepest, source.depth())
	}
	return deepest + 1
}

// WhyOptions bound a tree of sources. With the zero value the bounds are DefaultWhyDepth, DefaultWhyWidth and
// maxWhyNodes.
type WhyOptions struct {
	// Depth is the number of levels below the root, and Width the number of sources of a node.
	Depth, Width int
	// MayRead reports whether the reader may see the memory of a place; nil allows all.
	MayRead func(MemoryPlace) bool
}

// The bounds of a tree of sources.
const (
	DefaultWhyDepth = 10
	DefaultWhyWidth = 50
	maxWhyNodes     = 2000
)

// Bounds returns the bounds of a tree: its levels below the root, the sources of a node, and all nodes.
func (o WhyOptions) Bounds() (depth, width, nodes int) {
	depth, width = o.Depth, o.Width
	if depth <= 0 {
		depth = DefaultWhyDepth
	}
	if width <= 0 {
		width = DefaultWhyWidth
	}
	return depth, width, maxWhyNodes
}
