package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// A Write is a change that an actor may make, with its provenance. Only NewWrite makes one: the zero value is refused
// by every store.
type Write struct {
	change     Change
	actor      Actor
	origin     Origin
	lifecycle  Lifecycle
	sources    []ID
	references []Reference
	at         time.Time
	// label is nil for content of a person.
	label       *flow.Label
	labelOrigin string
	call, tool  string
}

// A Proposal is what a caller asks for.
type Proposal struct {
	Change Change
	// Lifecycle is empty for the default of the actor.
	Lifecycle Lifecycle
	// Sources are the entities from which the content was made, and References its sources outside of the workspace.
	Sources    []ID
	References []Reference
	// Label is what is known of where the content comes from, and LabelOrigin a source that explains it. A nil label is
	// for content of a person.
	Label       *flow.Label
	LabelOrigin string
	// At is the time of the write.
	At time.Time
	// Call is the ID of the audit record of the call that makes the write, and Tool the name of the called tool; both
	// are empty if they are not known.
	Call, Tool string
}

// maxSources is the maximum number of sources of one write, and of its references.
const maxSources = 10_001 // those of a read trail, and a reference for those that were left out

// NewWrite returns the write for a proposal of an actor. The error is an *Error: the actor lacks a right, or the change
// is not valid. Whether the change fits to what is stored is for the store to check.
func NewWrite(a Actor, p Proposal) (Write, error) {
	if p.Change == nil {
		return Write{}, refuse(Invalid, "the change is missing")
	}
	r := p.Change.rule()
	if err := r.permits(a); err != nil {
		return Write{}, err
	}
	if (a.Kind == AgentActor || a.Script) && a.Run == "" {
		return Write{}, refuse(Forbidden, "a write of an agent or a script belongs to a run, and this one names none")
	}
	if c, ok := p.Change.(cloner); ok {
		p.Change = c.clone() // the caller keeps its own
	}
	if err := p.Change.check(); err != nil {
		return Write{}, err
	}
	if c, ok := p.Change.(actorChecker); ok {
		if err := c.checkActor(a); err != nil {
			return Write{}, err
		}
	}
	if err := p.checkReferences(); err != nil {
		return Write{}, err
	}
	_, derives := p.Change.(Derive)
	if !r.content && !derives && len(p.Sources)+len(p.References) > 0 {
		return Write{}, refuse(Invalid, "this change has no content, and so no sources")
	}
	if len(p.Sources) > maxSources || len(p.References) > maxSources {
		return Write{}, refuse(Invalid, fmt.Sprintf("a write has at most %d sources", maxSources))
	}
	w := Write{change: p.Change, actor: a, at: p.At.UTC().Round(0), sources: distinct(p.Sources),
		references: distinct(p.References), call: p.Call, tool: p.Tool}
	if year := p.At.UTC().Year(); year < 1970 || year > 9999 {
		return Write{}, refuse(Invalid, "the time of the write is missing, or is not between 1970 and 9999")
	}
	if !r.content {
		if p.Lifecycle != "" {
			return Write{}, refuse(Invalid, "this change has no content, and so no lifecycle")
		}
		return w, nil
	}
	var err error
	if w.origin, err = defaultOrigin(a); err != nil {
		return Write{}, err
	}
	if w.lifecycle, err = chooseLifecycle(a, w.origin, p.Lifecycle); err != nil {
		return Write{}, err
	}
	w.label, w.labelOrigin = p.Label, p.LabelOrigin
	return w, nil
}

// Label returns the label of the content, and a source that explains it. A nil label is for content of a person.
func (w Write) Label() (*flow.Label, string) { return w.label, w.labelOrigin }

// MaxReference is the maximum size of the name of a reference in bytes.
const MaxReference = 2000

// maxCall is the maximum size of the ID of a call in bytes.
const maxCall = 100

func (p Proposal) checkReferences() error {
	for _, r := range p.References {
		if r.Kind != "file" && r.Kind != "page" && r.Kind != "result" && r.Kind != "more" {
			return refuse(Invalid, fmt.Sprintf("%q is not a kind of reference", r.Kind))
		}
		if err := checkText("the name of a reference", r.Name, MaxReference); err != nil {
			return err
		}
		if err := checkText("the server of a reference", r.Server, MaxReference); err != nil {
			return err
		}
		if err := checkText("the call of a reference", r.Call, maxCall); err != nil {
			return err
		}
		if digest, err := hex.DecodeString(r.Digest); err != nil || len(digest) != 0 && len(digest) != sha256.Size {
			return refuse(Invalid, "the digest of a reference is not a SHA-256 in hexadecimal digits")
		}
	}
	if err := checkText("the call of the write", p.Call, maxCall); err != nil {
		return err
	}
	return checkText("the tool of the write", p.Tool, MaxReference)
}

// permits returns an error if an actor may not make changes with this rule.
func (r rule) permits(a Actor) error {
	if r.person && (a.Kind != AuthorActor || a.Script) {
		return refuse(Forbidden, "only a person of the workspace can do this")
	}
	if a.Kind == ImportActor && !r.adds {
		return refuse(Forbidden, "an import only adds content")
	}
	if r.needs == Propose && (a.May(Author) || a.Kind == ImportActor && a.May(Import)) {
		return nil
	}
	return a.Require(r.needs)
}

func distinct[T comparable](all []T) []T {
	seen := make(map[T]bool, len(all))
	out := make([]T, 0, len(all))
	for _, v := range all {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// Change returns the change. It is nil for a Write that NewWrite did not make.
func (w Write) Change() Change { return w.change }

// Actor returns who makes the write.
func (w Write) Actor() Actor {
	a := w.actor
	a.Capabilities = slices.Clone(a.Capabilities)
	return a
}

// Stamp returns the provenance of the written content, for a revision of the store.
func (w Write) Stamp(revision ID) Stamp {
	return Stamp{Revision: revision, Origin: w.origin, Lifecycle: w.lifecycle, By: w.actor.Principal,
		Thread: w.actor.Thread, Run: w.actor.Run, At: w.at}
}

// Sources returns the entities from which the content was made.
func (w Write) Sources() []ID { return slices.Clone(w.sources) }

// References returns the sources outside of the workspace.
func (w Write) References() []Reference { return slices.Clone(w.references) }

// Call returns the ID of the audit record of the call that makes the write, and the name of the called tool; both are
// empty if they are not known.
func (w Write) Call() (id, tool string) { return w.call, w.tool }

// At returns the time of the write.
func (w Write) At() time.Time { return w.at }

// Derived returns w with the least trusted origin of w and of the sources, for content that sums them up. Such content
// is canonical only after a person has promoted it.
func (w Write) Derived(sources ...Origin) Write {
	if joined := JoinOrigins(append(sources, w.origin)...); joined != w.origin {
		w.origin = joined
		if allowed := allowedLifecycles(w.actor, joined); !slices.Contains(allowed, w.lifecycle) {
			w.lifecycle = allowed[0]
		}
	}
	return w
}

// Digest returns the SHA-256 of a text, in hexadecimal digits. It stays when the text is scrubbed.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
