package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A reviewer shows a person what waits in the workspace, and carries out the decisions.
type reviewer struct {
	workspaceRequest
	names map[workspace.ID]string // of entities, for people
}

func newReviewer(r workspaceRequest) *reviewer {
	return &reviewer{workspaceRequest: r, names: map[workspace.ID]string{}}
}

// errDeclined is the error of a decision that the person did not make.
var errDeclined = errors.New("declined")

// nameOf returns what people call the entity of an entry.
func (v *reviewer) nameOf(ctx context.Context, e reviewEntry) (string, error) {
	if e.flag != nil {
		return v.name(ctx, e.flag.Entity)
	}
	return v.partName(ctx, e.subject())
}

// partName returns what people call the entity of a revision.
func (v *reviewer) partName(ctx context.Context, r workspace.Revision) (string, error) {
	switch {
	case r.Kind == workspace.MemoryKind:
		return v.memoryName(ctx, r.Entity)
	case r.Page == "":
		return string(r.Kind), nil
	case r.Page == r.Entity:
		return v.name(ctx, r.Page)
	}
	page, err := v.name(ctx, r.Page)
	return fmt.Sprintf("%s of %s", r.Kind, page), err
}

// memoryName returns the tier and the name of an item of memory, such as "memory workspace/style".
func (v *reviewer) memoryName(ctx context.Context, id workspace.ID) (string, error) {
	if name, ok := v.names[id]; ok {
		return name, nil
	}
	why, err := v.a.adminService().WorkspaceWhy(ctx, string(id), workspace.WhyOptions{Depth: 1, Width: 1})
	if err != nil {
		return "", err
	}
	v.names[id] = why.Title()
	return v.names[id], nil
}

// name returns what people call an entity: the title and the slug of a page, or what it is of which page.
func (v *reviewer) name(ctx context.Context, id workspace.ID) (string, error) {
	if name, ok := v.names[id]; ok {
		return name, nil
	}
	name := string(id)
	p, err := callWorkspace[pageResult](ctx, v.workspaceRequest, "page_read", toolArguments{"page": string(id)})
	switch {
	case err == nil && p.Page != nil:
		name = fmt.Sprintf("%s (%s)", p.Page.Title, p.Page.Slug)
	case isNotFound(err):
		h, err := callWorkspace[revisionList](ctx, v.workspaceRequest, "page_history", toolArguments{"entity": string(id), "limit": 1})
		if err != nil {
			return "", err
		}
		if len(h.Revisions) > 0 && h.Revisions[0].Page != id {
			if name, err = v.partName(ctx, h.Revisions[0]); err != nil {
				return "", err
			}
		}
	case err != nil:
		return "", err
	}
	v.names[id] = name
	return name, nil
}

// maxNamedSources is how many sources of an entry are named.
const maxNamedSources = 20

// describe returns the text of an entry: what it is about, who wrote it from what, and the change.
func (v *reviewer) describe(ctx context.Context, e reviewEntry) (string, error) {
	if e.flag != nil {
		return v.describeFlag(ctx, *e.flag)
	}
	var b strings.Builder
	if len(e.contents) > 0 {
		name, err := v.nameOf(ctx, e)
		if err != nil {
			return "", err
		}
		safetext.Fprintf(&b, "%s: %s\n", e.kind(), safetext.Shown(safetext.Exact(name)))
		fmt.Fprintf(&b, "  written: %s\n", formatStamp(e.contents[0].Stamp))
	}
	fmt.Fprintf(&b, "  revision: %s\n", safetext.Exact(string(e.revision)))
	if err := v.describeSources(ctx, &b, e.revision); err != nil {
		return "", err
	}
	if e.deviates {
		b.WriteString("  It disagrees with a text that a person has accepted.\n")
	}
	if _, changed, err := v.changedSince(ctx, e, ""); err != nil {
		return "", err
	} else if changed {
		b.WriteString("  The text that it would replace has changed since.\n")
	}
	if head, err := v.head(ctx, e); err != nil || head != "" {
		b.WriteString(exactLines("+" + strings.ReplaceAll(strings.TrimSuffix(head, "\n"), "\n", "\n+") + "\n"))
		if err != nil {
			return "", err
		}
	}
	diff, err := v.diff(ctx, e.revision, "")
	if diff == "" && err == nil {
		diff = "  (the text is the same)\n"
	}
	return b.String() + diff, err
}

// describeSources writes from what a revision was made.
func (v *reviewer) describeSources(ctx context.Context, b *strings.Builder, revision workspace.ID) error {
	type links struct{ Links workspace.PageLinks }
	found, err := callWorkspace[links](ctx, v.workspaceRequest, "page_links", toolArguments{"revision": string(revision)})
	if err != nil {
		return err
	}
	for i, id := range found.Links.Sources {
		if i == maxNamedSources {
			fmt.Fprintf(b, "  made from: %d more\n", len(found.Links.Sources)-i)
			break
		}
		name, err := v.name(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  made from: %s\n", safetext.Exact(name))
	}
	for i, r := range found.Links.Outside {
		if i == maxNamedSources {
			fmt.Fprintf(b, "  made from: %d more outside of the workspace\n", len(found.Links.Outside)-i)
			break
		}
		server := ""
		if r.Server != "" {
			server = " of " + r.Server
		}
		fmt.Fprintf(b, "  made from: %s\n", safetext.Exact(r.Kind+" "+r.Name+server))
	}
	return nil
}

// head returns the text before the first block of a page that a write made; it belongs to the page, and not to a block.
func (v *reviewer) head(ctx context.Context, e reviewEntry) (string, error) {
	for _, c := range e.contents {
		if c.Kind != workspace.PageKind || c.Base != "" {
			continue
		}
		p, err := callWorkspace[pageResult](ctx, v.workspaceRequest, "page_read", toolArguments{"page": string(c.Entity)})
		if err != nil || p.Page == nil {
			return "", err
		}
		return p.Page.Head, nil
	}
	return "", nil
}

// describeFlag returns the text of a flag: the flagged text, and the last change of its source.
func (v *reviewer) describeFlag(ctx context.Context, f workspace.Flag) (string, error) {
	name, err := v.name(ctx, f.Entity)
	if err != nil {
		return "", err
	}
	source, err := v.name(ctx, f.Source)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "flag: %s\n  ID: %s\n  It was made from %s, which changed %s.\n", safetext.Exact(name), f.Entity,
		safetext.Exact(source), formatLocalTime(f.At))
	for _, part := range []struct {
		title  string
		entity workspace.ID
	}{{"The change of the source:", f.Source}, {"The text that was made from it:", f.Entity}} {
		h, err := callWorkspace[revisionList](ctx, v.workspaceRequest, "page_history", toolArguments{"entity": string(part.entity)})
		if err != nil {
			return "", err
		}
		for _, r := range h.Revisions {
			if r.State != "current" {
				continue
			}
			diff, err := v.diff(ctx, r.Revision, "")
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%s\n%s", part.title, diff)
			break
		}
	}
	return b.String(), nil
}

// diff returns how a revision differs from another one, or else from the one that it would replace, made printable.
func (v *reviewer) diff(ctx context.Context, revision, with workspace.ID) (string, error) {
	type result struct{ Diff string }
	found, err := callWorkspace[result](ctx, v.workspaceRequest, "page_diff",
		toolArguments{"revision": string(revision), "with": string(with)})
	return exactLines(found.Diff), err
}

// noNewline is the line of a diff that says that a text does not end with a line break.
const noNewline = "\\ No newline at end of file\n"

// exactLines returns a text of several lines that a person decides about: different texts have different results. The
// blanks at the beginning of a line stay, up to a limit.
func exactLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line == noNewline { // of the diff: the lines of the texts have another character before them
			b.WriteString(line)
			continue
		}
		body := strings.TrimSuffix(line, "\n")
		rest := strings.TrimLeft(body, " +-\t")
		if start := body[:len(body)-len(rest)]; len(start) <= 32 {
			b.WriteString(start)
			body = rest
		}
		b.WriteString(safetext.Exact(body) + "\n")
	}
	return b.String()
}

// changedSince returns the revision that an entry would replace now, if it is neither the one that its writer saw nor
// seen.
func (v *reviewer) changedSince(ctx context.Context, e reviewEntry, seen workspace.ID) (workspace.ID, bool, error) {
	for _, c := range e.contents {
		if c.State != "waiting" {
			continue
		}
		h, err := callWorkspace[revisionList](ctx, v.workspaceRequest, "page_history",
			toolArguments{"entity": string(c.Entity), "limit": 1000})
		if err != nil {
			return "", false, err
		}
		for _, r := range h.Revisions {
			if r.Entity == c.Entity && r.State == "current" && r.Revision != c.Base && r.Revision != seen {
				return r.Revision, true, nil
			}
		}
	}
	return "", false, nil
}

// accept accepts an entry. over is the revision that the person has seen in its place. If the text has changed since,
// accept shows the change and asks again; with noQuestion it returns an error in place of asking.
func (v *reviewer) accept(ctx context.Context, e reviewEntry, over workspace.ID, noQuestion bool) (json.RawMessage, error) {
	for {
		receipt, err := v.call(ctx, "review_promote", toolArguments{"revision": string(e.revision), "over": string(over)})
		if err == nil {
			return receipt, nil
		}
		now, changed, failure := v.changedSince(ctx, e, over)
		if failure != nil || !changed {
			return nil, err
		}
		diff, failure := v.diff(ctx, e.revision, now)
		if failure != nil {
			return nil, failure
		}
		fmt.Fprintf(v.a.Err, "The text has changed since: it is now the revision %s. Accepting would change it so:\n%s", now, diff)
		if noQuestion || !v.a.isInteractive() {
			return nil, fmt.Errorf("nothing was accepted: the text has changed (drawbridge review accept %s --over %s)", e.revision, now)
		}
		if !v.a.confirmDefaultNo(ctx, "Accept it over the changed text?") {
			return nil, errDeclined
		}
		over = now
	}
}

// reviewAll shows what waits, one entry after the other, and asks about each.
func (v *reviewer) reviewAll(ctx context.Context) error {
	all, err := v.waiting(ctx)
	if err != nil {
		return err
	}
	entries := reviewEntries(all)
	if len(entries) == 0 {
		fmt.Fprintln(v.a.Err, "Nothing waits for you.")
		return nil
	}
	done := 0
	for i, e := range entries {
		text, err := v.describe(ctx, e)
		if err != nil {
			return err
		}
		fmt.Fprintf(v.a.Err, "\n%d of %d  %s", i+1, len(entries), text)
		more, decided, err := v.decide(ctx, e)
		if err != nil {
			return err
		}
		if decided {
			done++
		}
		if !more {
			break
		}
	}
	fmt.Fprintf(v.a.Err, "%d decided, %d left\n", done, len(entries)-done)
	return nil
}

// decide asks what to do with an entry until the person has decided, and does it. more is false if the person quits. A
// refused decision is shown, and the question comes again.
func (v *reviewer) decide(ctx context.Context, e reviewEntry) (more, decided bool, err error) {
	question, keys := "a accept, r reject, s skip, q quit: ", "arsq"
	switch {
	case e.flag != nil:
		question, keys = "v looked at, s skip, q quit: ", "vsq"
	case isEditable(e):
		question, keys = "a accept, r reject, e edit, s skip, q quit: ", "aresq"
	}
	for {
		key, err := v.askKey(ctx, question, keys)
		if err != nil || key == "q" {
			return false, false, err
		}
		if key == "s" {
			return true, false, nil
		}
		did, err := v.carryOut(ctx, e, key)
		switch {
		case ctx.Err() != nil:
			return false, false, ctx.Err()
		case errors.Is(err, errDeclined):
		case err != nil:
			fmt.Fprintf(v.a.Err, "✗ %s\n", safetext.Text(err.Error()))
		default:
			fmt.Fprintf(v.a.Err, "✓ %s\n", did)
			return true, true, nil
		}
	}
}

// askKey asks until the answer is one of the keys. The end of the input counts as q.
func (v *reviewer) askKey(ctx context.Context, question, keys string) (string, error) {
	d, ok := v.a.startDialogue(ctx)
	if !ok {
		return "", errors.New("no terminal to ask at")
	}
	defer d.Close()
	for {
		line, err := d.Ask(question)
		switch key := strings.ToLower(strings.TrimSpace(line)); {
		case errors.Is(err, io.EOF):
			d.Say("")
			return "q", nil
		case err != nil:
			return "", err
		case len(key) == 1 && strings.Contains(keys, key):
			return key, nil
		}
	}
}

// carryOut does what a key stands for, and returns what was done.
func (v *reviewer) carryOut(ctx context.Context, e reviewEntry, key string) (did string, err error) {
	switch key {
	case "a":
		_, err = v.accept(ctx, e, "", false)
		return "accepted", err
	case "r":
		_, err = v.call(ctx, "review_reject", toolArguments{"revision": string(e.revision)})
		return "rejected", err
	case "v":
		_, err = v.call(ctx, "review_revalidate", toolArguments{"entity": string(e.flag.Entity)})
		return "looked at", err
	}
	return "your version is written", v.edit(ctx, e)
}
