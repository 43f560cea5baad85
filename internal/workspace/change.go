package workspace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Change is what a write does. The types of this file are all changes.
type Change interface {
	// check returns an error if the change is not valid, whoever makes it.
	check() error
	// rule returns what the change needs and writes.
	rule() rule
}

// A cloner is a Change that has slices. Its clone shares no memory with it.
type cloner interface{ clone() Change }

// An actorChecker is a Change that depends on who makes it, beside the capability that it needs.
type actorChecker interface{ checkActor(a Actor) error }

// A rule says what a kind of change needs.
type rule struct {
	kind Kind
	// needs is the capability. For content, an actor that holds Author or Import in place of Propose may write too.
	needs Capability
	// content reports that the change brings content, which has an origin, a lifecycle and sources.
	content bool
	// person reports that only a person may make the change: not an agent, a script, a client or an import.
	person bool
	// adds reports that the change adds an entity, and touches no other one. An import only adds.
	adds bool
}

// CreatePage makes a page with its blocks.
type CreatePage struct {
	// Slug is made from the title if it is empty.
	Slug, Title string
	Parent      ID
	Folder      bool
	Head        string
	// File is the path of the file that is imported; empty for other pages.
	File   string
	Blocks []NewBlock
	// Stated is what the export of a workspace said about the page, as the JSON of a Why; empty for other pages.
	Stated string
}

// A NewBlock is the content of a block that a change makes. An empty Slot gets a name from the store.
type NewBlock struct {
	Slot, Type, Text string
}

func (c CreatePage) rule() rule {
	return rule{kind: PageKind, needs: Propose, content: true, adds: true}
}

func (c CreatePage) clone() Change {
	c.Blocks = slices.Clone(c.Blocks)
	return c
}

func (c CreatePage) check() error {
	if err := checkLine("the title", c.Title, maxTitle); err != nil {
		return err
	}
	if c.Slug != "" {
		if err := checkSlug(c.Slug); err != nil {
			return err
		}
	}
	if err := checkText("the path of the file", c.File, maxValue); err != nil {
		return err
	}
	if err := checkText("the text before the first block", c.Head, maxBlockText); err != nil {
		return err
	}
	if c.Stated != "" {
		if _, err := ParseStated([]byte(c.Stated)); err != nil {
			return err
		}
		if c.File == "" {
			return refuse(Invalid, "only an imported page has a statement about its sources")
		}
	}
	seen := map[string]bool{}
	for i, b := range c.Blocks {
		if err := b.check(); err != nil {
			return fmt.Errorf("block %d: %w", i+1, err)
		}
		if b.Slot != "" && seen[b.Slot] {
			return refuse(Invalid, fmt.Sprintf("the slot %q is there twice", b.Slot))
		}
		seen[b.Slot] = true
	}
	return nil
}

func (b NewBlock) check() error {
	if b.Type != "markdown" && b.Type != "image" {
		return refuse(Invalid, fmt.Sprintf("the type %q is neither markdown nor image", b.Type))
	}
	if b.Slot != "" {
		if err := checkLine("the slot", b.Slot, maxName); err != nil {
			return err
		}
	}
	return checkText("the text", b.Text, maxBlockText)
}

// SetTitle gives a page another title. The slug stays, so that links hold.
type SetTitle struct {
	Page  ID
	Title string
}

func (c SetTitle) rule() rule { return rule{kind: PageKind, needs: Propose, content: true} }

func (c SetTitle) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	return checkLine("the title", c.Title, maxTitle)
}

// MovePage gives a page another parent. An empty Parent is the top.
type MovePage struct{ Page, Parent ID }

func (c MovePage) rule() rule { return rule{kind: PageKind, needs: Author} }

func (c MovePage) check() error {
	if c.Page == c.Parent {
		return refuse(Invalid, "a page cannot be its own parent")
	}
	return needID("the page", c.Page)
}

// DeletePage takes a page out of lists and searches. RestorePage takes it back.
type DeletePage struct{ Page ID }

func (c DeletePage) rule() rule { return rule{kind: PageKind, needs: Author} }

func (c DeletePage) check() error { return needID("the page", c.Page) }

// RestorePage takes a deleted page back.
type RestorePage struct{ Page ID }

func (c RestorePage) rule() rule { return rule{kind: PageKind, needs: Author} }

func (c RestorePage) check() error { return needID("the page", c.Page) }

// AddBlock adds a block after another one; an empty After puts it at the beginning of the page.
type AddBlock struct {
	Page  ID
	After string // slot
	Block NewBlock
}

func (c AddBlock) rule() rule {
	return rule{kind: BlockKind, needs: Propose, content: true, adds: true}
}

func (c AddBlock) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	return c.Block.check()
}

// SetBlock gives a block another text. Base is the revision that the actor has read; the change is refused with
// Conflict if the block has another one. An empty Base is not compared.
type SetBlock struct {
	Page ID
	Slot string
	Text string
	Base ID
}

func (c SetBlock) rule() rule { return rule{kind: BlockKind, needs: Propose, content: true} }

func (c SetBlock) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	if err := checkLine("the slot", c.Slot, maxName); err != nil {
		return err
	}
	return checkText("the text", c.Text, maxBlockText)
}

// MoveBlock gives a block another place in its page.
type MoveBlock struct {
	Page        ID
	Slot, After string
}

func (c MoveBlock) rule() rule { return rule{kind: BlockKind, needs: Author} }

func (c MoveBlock) check() error {
	if c.Slot == c.After {
		return refuse(Invalid, "a block cannot follow itself")
	}
	return needID("the page", c.Page)
}

// A PropertyType is the type of the values of a property. The first write of a property fixes it.
type PropertyType string

// The types of properties. A date has the form 2006-01-02, a relation is the slug of a page.
const (
	TextProperty        PropertyType = "text"
	NumberProperty      PropertyType = "number"
	YesNoProperty       PropertyType = "yes_no"
	DateProperty        PropertyType = "date"
	SelectProperty      PropertyType = "select"
	MultiSelectProperty PropertyType = "multi_select"
	RelationProperty    PropertyType = "relation"
)

// SetProperty gives a property of a page values. Only a MultiSelectProperty and a RelationProperty may have several;
// no values remove the property from the page.
type SetProperty struct {
	Page   ID
	Name   string
	Type   PropertyType
	Values []string
}

func (c SetProperty) rule() rule { return rule{kind: PropertyKind, needs: Propose, content: true} }

func (c SetProperty) clone() Change {
	c.Values = slices.Clone(c.Values)
	return c
}

func (c SetProperty) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	if err := checkLine("the name", c.Name, maxName); err != nil {
		return err
	}
	several := c.Type == MultiSelectProperty || c.Type == RelationProperty
	if len(c.Values) > 1 && !several {
		return refuse(Invalid, fmt.Sprintf("a property of the type %s has one value", c.Type))
	}
	for _, v := range c.Values {
		if err := checkText("the value", v, maxValue); err != nil {
			return err
		}
		if err := c.Type.checkValue(v); err != nil {
			return err
		}
	}
	return c.Type.checkValue("")
}

// checkValue returns an error if a value is not of the type. The empty value is of every type that exists.
func (t PropertyType) checkValue(v string) error {
	var err error
	switch t {
	case TextProperty, SelectProperty, MultiSelectProperty:
	case NumberProperty:
		if strings.Trim(v, "0123456789+-.eE") != "" {
			err = refuse(Invalid, "")
		} else if v != "" {
			_, err = strconv.ParseFloat(v, 64)
		}
	case YesNoProperty:
		if !slices.Contains([]string{"", "yes", "no"}, v) {
			err = refuse(Invalid, "")
		}
	case DateProperty:
		if v != "" {
			_, err = time.Parse(time.DateOnly, v)
		}
	case RelationProperty:
		if v != "" {
			err = checkSlug(v)
		}
	default:
		return refuse(Invalid, fmt.Sprintf("the type %q does not exist", t))
	}
	if err != nil {
		return refuse(Invalid, fmt.Sprintf("%q is not a value of the type %s", v, t))
	}
	return nil
}

// SetTag adds a tag to a page, or removes it.
type SetTag struct {
	Page   ID
	Tag    string
	Remove bool
}

func (c SetTag) rule() rule { return rule{kind: TagKind, needs: Propose, content: true} }

func (c SetTag) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	return checkLine("the tag", c.Tag, maxName)
}

// Attach adds a file to a page. The same bytes are kept once.
type Attach struct {
	Page       ID
	Name, Type string
	Data       []byte
}

// attachmentTypes are the media types of attachments.
var attachmentTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "application/pdf",
	"application/msword", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "text/csv"}

func (c Attach) rule() rule {
	return rule{kind: AttachmentKind, needs: Propose, content: true, adds: true}
}

func (c Attach) clone() Change {
	c.Data = slices.Clone(c.Data)
	return c
}

func (c Attach) check() error {
	if err := needID("the page", c.Page); err != nil {
		return err
	}
	if err := checkLine("the name", c.Name, maxTitle); err != nil {
		return err
	}
	if !slices.Contains(attachmentTypes, c.Type) {
		return refuse(Invalid, fmt.Sprintf("files of the type %q cannot be attached", c.Type))
	}
	if len(c.Data) == 0 || len(c.Data) > MaxAttachment {
		return refuse(Invalid, fmt.Sprintf("an attachment has 1 to %d bytes", MaxAttachment))
	}
	return nil
}

// Derive adds derivation links from an entity to the sources of the write.
type Derive struct{ Entity ID }

func (c Derive) rule() rule { return rule{needs: Propose} }

func (c Derive) check() error { return needID("the entity", c.Entity) }

// Promote makes a revision canonical. The revision becomes the current one, and its deviation is resolved. If the content
// has changed since the revision was written, Over has to be the current revision, which the person has seen.
type Promote struct{ Revision, Over ID }

func (c Promote) rule() rule { return rule{needs: Author, person: true} }

func (c Promote) check() error { return needID("the revision", c.Revision) }

// Reject retires a revision that waits. Its deviation is resolved.
type Reject struct{ Revision ID }

func (c Reject) rule() rule { return rule{needs: Author, person: true} }

func (c Reject) check() error { return needID("the revision", c.Revision) }

// Retire says that the current content of an entity is no longer valid. It stays readable. Only a person retires what a
// person wrote or accepted.
type Retire struct{ Entity ID }

func (c Retire) rule() rule { return rule{needs: Author} }

func (c Retire) check() error { return needID("the entity", c.Entity) }

// Revalidate says that a person has looked at an entity whose sources have changed.
type Revalidate struct{ Entity ID }

func (c Revalidate) rule() rule { return rule{needs: Author, person: true} }

func (c Revalidate) check() error { return needID("the entity", c.Entity) }

// SetGrant narrows a principal to capabilities in the workspace, in place of an earlier grant. None take all away. The
// principals "kind:agent" and "kind:client" stand for all agents and all outside clients.
type SetGrant struct {
	Principal    string
	Capabilities []Capability
}

func (c SetGrant) rule() rule { return rule{kind: GrantKind, needs: Manage, person: true} }

func (c SetGrant) clone() Change {
	c.Capabilities = slices.Clone(c.Capabilities)
	return c
}

// checkActor refuses to grant what the actor does not hold.
func (c SetGrant) checkActor(a Actor) error {
	for _, held := range c.Capabilities {
		if err := a.Require(held); err != nil {
			return err
		}
	}
	return nil
}

func (c SetGrant) check() error {
	for _, held := range c.Capabilities {
		if !slices.Contains(Capabilities(), held) {
			return refuse(Invalid, fmt.Sprintf("the capability %q does not exist", held))
		}
	}
	return checkLine("the principal", c.Principal, maxTitle)
}

func needID(what string, id ID) error {
	if id == "" {
		return refuse(Invalid, what+" is missing")
	}
	return nil
}
