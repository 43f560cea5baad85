// Package boundary turns calls that write to the workspace into writes, and answers calls that read it.
//
// A call is made by a caller, and a workspace knows actors. The package makes the actor from what was proven about the
// caller (see [Prove]): a caller that nobody proved counts as an outside client, whatever it says about itself. The
// provenance of a write comes from the actor, from the registration of the tool ([drawbridge.Crossing]), and from what
// the run has read before.
//
// Only this package applies writes to a workspace.
package boundary

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A Workspace is an open workspace, as callers read and write it. Its methods are safe for concurrent use. The errors
// are *drawbridge.Fault values: PolicyBlocked for a right that the caller does not hold, InvalidInput for a write that
// the rules of the workspace refuse, NotFound for what does not exist.
type Workspace struct {
	store *store.Workspace
	name  string
	trail *deck.ReadTrail
	erase Eraser
	now   func() time.Time
}

// An Eraser removes texts that are about to be scrubbed from what Drawbridge keeps outside of the workspace.
type Eraser func(ctx context.Context, texts []string) error

var _ deck.Boundary = (*Workspace)(nil)

// New returns a workspace for callers. name is what people see, and trail has what runs have read. erase is called with
// the texts of each scrub; nil does nothing.
func New(w *store.Workspace, name string, trail *deck.ReadTrail, erase Eraser) *Workspace {
	return &Workspace{store: w, name: name, trail: trail, erase: erase, now: time.Now}
}

// Cross implements [deck.Boundary].
func (w *Workspace) Cross(ctx context.Context, call drawbridge.Call, spec drawbridge.Spec, p deck.PreparedWrite,
	changes []workspace.Change) ([]workspace.Receipt, error) {
	actor, err := w.actor(ctx, call)
	if err != nil {
		return nil, err
	}
	if spec.Crossing.Imports && !actor.Script {
		actor.Kind = workspace.ImportActor
	}
	sources, references, err := w.sources(ctx, call, spec.Crossing, actor)
	if err != nil {
		return nil, err
	}
	label, origin := w.labelOfCall(call, actor)
	writes := make([]workspace.Write, len(changes))
	for i, change := range changes {
		if writes[i], err = workspace.NewWrite(actor, workspace.Proposal{Change: change, Lifecycle: p.Lifecycle, Sources: sources,
			References: references, Label: label, LabelOrigin: origin, At: w.now(), Call: audit.CallID(ctx),
			Tool: cut(string(spec.Name))}); err != nil {
			return nil, asFault("write to the workspace", err)
		}
	}
	texts, err := w.scrubbedTexts(ctx, changes)
	if err != nil {
		return nil, err
	}
	if len(texts) > 0 && w.erase != nil { // first, because the texts are not known any more afterwards
		if err := w.erase(ctx, texts); err != nil {
			return nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError,
				Step: "erase the texts outside of the workspace", Err: err, Next: "nothing was scrubbed in the workspace; try again"}
		}
	}
	return w.store.Apply(ctx, writes...)
}

// minErased is the size of the shortest text in bytes that is erased outside of the workspace.
const minErased = 4

// scrubbedTexts returns the texts that changes scrub, for an Eraser. Shorter ones than minErased are left out, since
// they would be found everywhere.
func (w *Workspace) scrubbedTexts(ctx context.Context, changes []workspace.Change) (texts []string, err error) {
	for _, c := range changes {
		scrub, ok := c.(workspace.ScrubText)
		if !ok {
			continue
		}
		for _, revision := range scrub.Revisions {
			all, err := w.store.Revision(ctx, revision)
			if err != nil {
				return nil, err
			}
			for _, r := range all {
				values := []string{r.Text}
				if r.Kind == workspace.PropertyKind && r.Text != "" {
					if err := json.Unmarshal([]byte(r.Text), &values); err != nil {
						return nil, err
					}
				}
				for _, text := range values {
					if text = strings.TrimSpace(text); len(text) >= minErased {
						texts = append(texts, text)
					}
				}
			}
		}
	}
	return texts, nil
}

// sources returns what the content of a call was made from, as the registration of its tool says.
func (w *Workspace) sources(ctx context.Context, call drawbridge.Call, c *drawbridge.Crossing, actor workspace.Actor) (
	ids []workspace.ID, references []workspace.Reference, err error) {
	if c.Sources != "" {
		if ids, err = w.named(ctx, rawjson.Get(call.Params, "arguments", c.Sources)); err != nil {
			return nil, nil, err
		}
	}
	isPerson := actor.Kind == workspace.AuthorActor && !actor.Script
	if !c.ReadTrail || isPerson || actor.Kind == workspace.ImportActor {
		return ids, nil, nil
	}
	read, dropped := w.trail.Sources(deck.RunOf(call.Caller))
	for _, s := range read {
		if s.Kind == deck.EntitySource {
			ids = append(ids, workspace.ID(s.Name))
			continue
		}
		references = append(references, workspace.Reference{Kind: s.Kind, Name: cut(s.Name), Server: cut(string(s.Server)),
			Digest: s.Digest.String(), Call: s.Call})
	}
	if dropped > 0 {
		references = append(references, workspace.Reference{Kind: "more", Name: strconv.Itoa(dropped) + " sources"})
	}
	return ids, references, nil
}

// cut returns the beginning of a name, if it is longer than a reference may be.
func cut(name string) string {
	if len(name) <= workspace.MaxReference {
		return name
	}
	end := workspace.MaxReference
	for end > 0 && name[end]&0xC0 == 0x80 {
		end--
	}
	return name[:end]
}

// named returns the entities that an argument names: by their IDs, or pages by their slugs.
func (w *Workspace) named(ctx context.Context, argument json.RawMessage) ([]workspace.ID, error) {
	var names []string
	if argument == nil {
		return nil, nil
	}
	if err := json.Unmarshal(argument, &names); err != nil {
		return nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the sources",
			Err: errors.New("the sources must be a list of IDs and slugs")}
	}
	ids := make([]workspace.ID, len(names))
	for i, name := range names {
		var err error
		if ids[i], err = w.store.Resolve(ctx, name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func asFault(step string, err error) error {
	if refusal, ok := errors.AsType[*workspace.Error](err); ok {
		return refusal.Fault(step)
	}
	return err
}

// URIs implements [deck.Boundary].
func (w *Workspace) URIs(ctx context.Context, r workspace.Receipt) []string {
	if r.Page == "" {
		item, err := w.store.MemoryItem(ctx, r.Entity)
		if err != nil { // no memory: a grant
			return nil
		}
		return []string{workspace.MemoryURI(workspace.MemoryPlace{Tier: item.Tier, Key: item.Key}), workspace.MemoryURI(workspace.MemoryPlace{Tier: item.Tier})}
	}
	uris := []string{workspace.PageURI(string(r.Page))}
	if v, err := w.store.Page(ctx, string(r.Page)); err == nil {
		uris = append(uris, workspace.PageURI(v.Slug))
	}
	return uris
}
