package cards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A Workspace reads the open workspace for the caller of a call. It checks the caller's rights, and notes what the
// caller's run has read. The cards that write prepare changes only, see [deck.WritingCard].
type Workspace interface {
	PageReader
	ReviewReader
	ItemReader
	FileReader
}

// A PageReader reads pages.
type PageReader interface {
	// Page returns a page by its ID or its slug.
	Page(ctx context.Context, call drawbridge.Call, name string) (workspace.PageView, error)
	// Children returns the pages below a page, or at the top.
	Children(ctx context.Context, call drawbridge.Call, parent workspace.ID, part workspace.Window) ([]workspace.Page, error)
	// Search returns the pages with all words of a query, the best first.
	Search(ctx context.Context, call drawbridge.Call, query string, part workspace.Window) ([]workspace.Hit, error)
	// Links returns what leads to a page and away from it.
	Links(ctx context.Context, call drawbridge.Call, page workspace.PageView, part workspace.Window) (workspace.PageLinks, error)
	// History returns the revisions of an entity, or of a page and all that it has, the newest first.
	History(ctx context.Context, call drawbridge.Call, entity workspace.ID, part workspace.Window) ([]workspace.Revision, error)
}

// A ReviewReader reads what a person has to decide about.
type ReviewReader interface {
	// Revision returns the contents of a write.
	Revision(ctx context.Context, call drawbridge.Call, revision workspace.ID) ([]workspace.Revision, error)
	// Candidates returns the contents that no person has decided about, the oldest first.
	Candidates(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Revision, error)
	// Deviations returns the open deviations, the oldest first.
	Deviations(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Deviation, error)
	// Flags returns the entities whose sources have changed.
	Flags(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Flag, error)
	// Grants returns the capabilities to which principals were narrowed.
	Grants(ctx context.Context, call drawbridge.Call) (map[string][]workspace.Capability, error)
}

// An ItemReader reads memory, sources and names.
type ItemReader interface {
	// Access returns the name of the workspace, and who the caller is in it.
	Access(ctx context.Context, call drawbridge.Call) (name string, actor workspace.Actor, err error)
	// Resolve returns the ID of an entity: name is an ID, or the slug of a page.
	Resolve(ctx context.Context, call drawbridge.Call, name string) (workspace.ID, error)
	// Sources returns the sources of a revision: entities, and what is outside of the workspace.
	Sources(ctx context.Context, call drawbridge.Call, revision workspace.ID) ([]workspace.ID, []workspace.Reference, error)
	// Why returns who wrote an entity and from what it was made.
	Why(ctx context.Context, call drawbridge.Call, name string, o workspace.WhyOptions) (*workspace.Why, error)
	// Memory returns the items of a tier.
	Memory(ctx context.Context, call drawbridge.Call, place workspace.MemoryPlace) ([]workspace.MemoryItem, error)
}

// A FileReader reads attachments, and finds pages that were made from files.
type FileReader interface {
	// ImportedPage returns the page below parent that was imported from a file, and whether there is one.
	ImportedPage(ctx context.Context, call drawbridge.Call, file string, parent workspace.ID) (workspace.PageView, bool, error)
	// Attachments returns the files of a page.
	Attachments(ctx context.Context, call drawbridge.Call, page workspace.ID) ([]workspace.Attachment, error)
	// AttachedBytes returns the bytes of an attachment.
	AttachedBytes(ctx context.Context, call drawbridge.Call, a workspace.Attachment) ([]byte, error)
}

// WorkspaceCards returns the cards that read and write a workspace, in listed order.
func WorkspaceCards(w Workspace, c deck.Context) ([]drawbridge.Card, error) {
	files, err := newFileBackend(c)
	if err != nil {
		return nil, err
	}
	return slices.Concat(pageCards(w), pageWritingCards(w), reviewCards(w), memoryCards(w), folderCards(w, files)), nil
}

// The scopes of the cards of the workspace.
const (
	scopeRead     = drawbridge.Scope(workspace.Read)
	scopePropose  = drawbridge.Scope(workspace.Propose)
	scopeAuthor   = drawbridge.Scope(workspace.Author)
	scopeImport   = drawbridge.Scope(workspace.Import)
	scopeRemember = drawbridge.Scope(workspace.Remember)
	scopeManage   = drawbridge.Scope(workspace.Manage)
	scopeScrub    = drawbridge.Scope(workspace.Scrub)
)

// workspaceInput is empty: the card has no arguments.
type workspaceInput struct{}

// workspaceOutput contains the open workspace, or nil.
type workspaceOutput struct {
	Workspace *openWorkspace `json:"workspace"`
}

type openWorkspace struct {
	Name string `json:"name"`
	// Scopes are all scopes of a workspace, and Held those that the caller holds in it.
	Scopes []workspace.Capability `json:"scopes"`
	Held   []workspace.Capability `json:"held"`
	// Actor is what the caller is in the workspace: author, agent, client or unknown.
	Actor string `json:"actor"`
}

// WorkspaceName is the name of the card that names the open workspace.
const WorkspaceName = "drawbridge_workspace"

// newWorkspaceCard returns the card that names the open workspace. w is nil if none is open.
func newWorkspaceCard(w Workspace) drawbridge.Card {
	return newShipped(Description[workspaceInput]{
		Name: WorkspaceName, Title: "Show the workspace",
		Text: "Show which workspace is open.\n\nA workspace holds pages, their properties and memory. `held` are the scopes that you hold in it. " +
			"If none is open, `workspace` is null and no tool can read or write pages.",
		Examples: []workspaceInput{{}},
	}, func(ctx context.Context, call drawbridge.Call, _ workspaceInput) (answer Answer[workspaceOutput], err error) {
		if w == nil {
			return Answer[workspaceOutput]{Text: "No workspace is open."}, nil
		}
		name, actor, err := w.Access(ctx, call)
		if err != nil {
			return answer, err
		}
		answer.Value.Workspace = &openWorkspace{name, workspace.Capabilities(), orEmpty(actor.Capabilities), actor.Kind.String()}
		answer.Text = fmt.Sprintf("The workspace %s is open. You act as %s and hold %s.", name, actor.Kind, join(actor.Capabilities))
		return answer, nil
	})
}

// A writingCard is a card that prepares changes of the workspace.
type writingCard struct {
	shippedCard
	prepare func(ctx context.Context, call drawbridge.Call) (deck.PreparedWrite, error)
}

var _ deck.WritingCard = writingCard{}

// Prepare implements [deck.WritingCard].
func (c writingCard) Prepare(ctx context.Context, call drawbridge.Call) (deck.PreparedWrite, error) {
	return c.prepare(ctx, call)
}

// registrationKey is the member of the "_meta" of a tool that writes to the workspace. Its value is a registration.
const registrationKey = "drawbridge/workspace"

// A registration says how the calls of a tool cross the boundary of the workspace, see [drawbridge.Crossing].
type registration struct {
	Content   string             `json:"content,omitempty"`
	Sources   string             `json:"sources,omitempty"`
	ReadTrail bool               `json:"readTrail"`
	Write     string             `json:"write"`
	Scopes    []drawbridge.Scope `json:"scopes"`
	Sandbox   bool               `json:"sandbox"`
}

// A prepared is what a card asks to write, and its answer for the receipts.
type prepared[Out any] struct {
	deck.PreparedWrite
	answer func(receipts []workspace.Receipt) Answer[Out]
}

// newWriting returns a card that writes to the workspace; d has a Crossing. A ToolError of prepare is shown to the model,
// and nothing is written then.
func newWriting[In, Out any](d Description[In],
	prepare func(ctx context.Context, call drawbridge.Call, in In) (prepared[Out], error)) drawbridge.Card {
	card := newShipped(d, func(context.Context, drawbridge.Call, In) (answer Answer[Out], err error) {
		return answer, errors.New("the deck has to write what the card prepares")
	}).(shippedCard)
	decode := newDecoder(d)
	return writingCard{card, func(ctx context.Context, call drawbridge.Call) (deck.PreparedWrite, error) {
		in, err := decode(call)
		var p prepared[Out]
		if err == nil {
			p, err = prepare(ctx, call, in)
		}
		if text, ok := errors.AsType[ToolError](err); ok {
			return deck.PreparedWrite{Result: func([]workspace.Receipt) (drawbridge.Result, error) {
				return newToolError(string(text)), nil
			}}, nil
		}
		p.Result = func(receipts []workspace.Receipt) (drawbridge.Result, error) { return newResult(p.answer(receipts)) }
		return p.PreparedWrite, err
	}}
}

// once returns changes that are written together.
func once(changes ...workspace.Change) iter.Seq2[[]workspace.Change, error] {
	return func(yield func([]workspace.Change, error) bool) { yield(changes, nil) }
}

// A receiptOutput is the result of a card that writes.
type receiptOutput struct {
	Receipt workspace.Receipt `json:"receipt"`
}

// written returns a write of one change, whose answer says what became of it.
func written(lifecycle string, c workspace.Change) prepared[receiptOutput] {
	return prepared[receiptOutput]{
		PreparedWrite: deck.PreparedWrite{Batches: once(c), Lifecycle: workspace.Lifecycle(lifecycle)},
		answer: func(receipts []workspace.Receipt) Answer[receiptOutput] {
			return Answer[receiptOutput]{Text: describeReceipt(receipts[0]), Value: receiptOutput{receipts[0]}}
		},
	}
}

// describeReceipt returns a text about a write.
func describeReceipt(r workspace.Receipt) string {
	var b strings.Builder
	switch {
	case r.Waiting:
		fmt.Fprintf(&b, "The content waits for a person: the revision %s.", r.Revision)
		if r.Deviation != "" {
			b.WriteString(" It disagrees with canonical content.")
		}
	case r.Lifecycle != "":
		fmt.Fprintf(&b, "Written as %s (%s): the revision %s.", r.Lifecycle, r.Origin, r.Revision)
	default:
		fmt.Fprintf(&b, "Done: the revision %s.", r.Revision)
	}
	if r.Slug != "" {
		fmt.Fprintf(&b, " The page is %s.", r.Slug)
	}
	if r.Flagged > 0 {
		fmt.Fprintf(&b, " %d derived object(s) should be looked at again.", r.Flagged)
	}
	return b.String()
}

// IsWorkspaceTool reports whether a card of [WorkspaceCards] has the name.
func IsWorkspaceTool(name string) bool {
	group, _, found := strings.Cut(name, "_")
	_, err := fs.Stat(definitions, "definitions/"+name+".json")
	return found && err == nil && slices.Contains([]string{"page", "review", "memory", "workspace"}, group)
}

// PersonTools returns the names of the cards that only a person of the workspace may call.
func PersonTools() []string {
	return []string{"review_promote", "review_reject", "review_revalidate", "workspace_grant", "workspace_scrub"}
}

// FolderTools returns the names of the cards of the workspace that read and write files.
func FolderTools() []string { return []string{"workspace_import", "workspace_export"} }
