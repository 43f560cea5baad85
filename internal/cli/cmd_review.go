package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *app) reviewCommand() *cobra.Command {
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "review",
		Short: "Decide about what agents and clients wrote in the workspace",
		Long: `Decide about what agents and clients wrote in the workspace. At a terminal it shows what waits
for you, one entry after the other, with the change and who wrote it, and asks:

  a  accept: the text becomes canonical
  r  reject: the text is retired
  e  edit: opens $EDITOR, and writes your version in its place
  v  looked at: for a text whose sources have changed
  s  skip
  q  quit

Elsewhere it lists what waits. docs/workspace.md is the guide. "review endorsements" needs no
workspace: it lists values that you have endorsed.`,
		Example: `  drawbridge review
  drawbridge review list --json
  drawbridge review accept bk_01M8HQ37TXC4TMT6G34GNMQ2VD
  drawbridge review done bk_01M8HQ37TXC4TMT6G34GNMQ2VD`,
		Args: rejectUnknownCommand,
	}, func(ctx context.Context, r workspaceRequest, _ []string) error {
		if r.asJSON || !a.isInteractive() {
			return r.listWaiting(ctx)
		}
		return newReviewer(r).reviewAll(ctx)
	})
	cmd.AddCommand(a.reviewListCommand(), a.reviewAcceptCommand(), a.reviewRejectCommand(), a.reviewDoneCommand(),
		a.reviewEndorsementsCommand())
	return cmd
}

func (a *app) reviewListCommand() *cobra.Command {
	return a.workspaceSubcommand(&cobra.Command{
		Use:   "list",
		Short: "List what waits for you",
		Long: `List what waits for you: texts that no person has accepted (candidates), those of them that
disagree with an accepted text (deviations), and texts whose sources have changed (flags).`,
		Args: exactArgs(0, "no arguments"),
	}, func(ctx context.Context, r workspaceRequest, _ []string) error { return r.listWaiting(ctx) })
}

// A waitingList is what waits for a person, as review_list returns it.
type waitingList struct {
	Candidates []workspace.Revision  `json:"candidates"`
	Deviations []workspace.Deviation `json:"deviations"`
	Flags      []workspace.Flag      `json:"flags"`
}

// waiting returns all that waits for a person.
func (r workspaceRequest) waiting(ctx context.Context) (waitingList, error) {
	all := waitingList{[]workspace.Revision{}, []workspace.Deviation{}, []workspace.Flag{}}
	for _, kind := range []string{"candidates", "deviations", "flags"} {
		for offset := 0; ; {
			part, err := callWorkspace[waitingList](ctx, r, "review_list", toolArguments{"kind": kind, "offset": offset})
			n := len(part.Candidates) + len(part.Deviations) + len(part.Flags)
			if err != nil {
				return all, err
			}
			offset += n
			all.Candidates = append(all.Candidates, part.Candidates...)
			all.Deviations = append(all.Deviations, part.Deviations...)
			all.Flags = append(all.Flags, part.Flags...)
			if n < fullPart {
				break
			}
		}
	}
	return all, nil
}

func (r workspaceRequest) listWaiting(ctx context.Context) error {
	all, err := r.waiting(ctx)
	if err != nil {
		return err
	}
	if r.asJSON {
		return PrintJSON(r.a.Out, all)
	}
	v := newReviewer(r)
	entries := reviewEntries(all)
	if len(entries) == 0 {
		fmt.Fprintln(r.a.Err, "Nothing waits for you.")
		return nil
	}
	table := NewTable(r.a.Out)
	fmt.Fprintln(table, "WAITS\tID\tPAGE\tORIGIN\tBY\tWHEN")
	for _, e := range entries {
		name, err := v.nameOf(ctx, e)
		if err != nil {
			return err
		}
		if e.flag != nil {
			safetext.Fprintf(table, "flag\t%s\t%s\t-\t-\t%s\n", e.flag.Entity, truncateLine(name, 60), formatLocalTime(e.flag.At))
			continue
		}
		s := e.contents[0].Stamp
		safetext.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", e.kind(), e.revision, truncateLine(name, 60), s.Origin, truncateLine(s.By, 30),
			formatLocalTime(s.At))
	}
	return table.Flush()
}

// A reviewEntry is what a person decides about: the contents of a write, or a flag.
type reviewEntry struct {
	revision workspace.ID
	// contents are those of the write that wait; none if it is not among the candidates.
	contents []workspace.Revision
	deviates bool
	flag     *workspace.Flag
}

// reviewEntries returns an entry for each write and for each flag.
func reviewEntries(all waitingList) (entries []reviewEntry) {
	places := map[workspace.ID]int{}
	for _, c := range all.Candidates {
		at, ok := places[c.Revision]
		if !ok {
			at, places[c.Revision] = len(entries), len(entries)
			entries = append(entries, reviewEntry{revision: c.Revision})
		}
		entries[at].contents = append(entries[at].contents, c)
	}
	for _, d := range all.Deviations {
		if at, ok := places[d.Revision]; ok {
			entries[at].deviates = true
		}
	}
	for _, f := range all.Flags {
		entries = append(entries, reviewEntry{flag: &f})
	}
	return entries
}

func (e reviewEntry) kind() string {
	switch {
	case e.flag != nil:
		return "flag"
	case e.deviates:
		return "deviation"
	}
	return "candidate"
}

// subject returns what the entry is about: the page that a write made, or its first content.
func (e reviewEntry) subject() workspace.Revision {
	for _, c := range e.contents {
		if c.Kind == workspace.PageKind {
			return c
		}
	}
	return e.contents[0]
}

func (a *app) reviewAcceptCommand() *cobra.Command {
	var yes bool
	var over string
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "accept REVISION",
		Short: "Accept a text after you have seen the change",
		Long: `Accept a text after you have seen the change: it becomes canonical. If the text that it would
replace has changed since, the command shows that change; --over names the revision that you
have seen there. At a terminal it asks; --yes is for scripts.`,
		Example: "  drawbridge review accept bk_01M8HQ37TXC4TMT6G34GNMQ2VD --yes",
		Args:    exactArgs(1, "one revision (drawbridge review list)"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		v := newReviewer(r)
		e, err := v.confirmed(ctx, "accept", args[0], yes)
		if err != nil {
			return err
		}
		raw, err := v.accept(ctx, e, workspace.ID(over), yes)
		return v.printDecision("accepted", e.revision, raw, err)
	})
	cmd.Flags().StringVar(&over, "over", "", "the `REVISION` that is there now, if it has changed and you have seen it")
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	return cmd
}

func (a *app) reviewRejectCommand() *cobra.Command {
	var yes bool
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "reject REVISION",
		Short: "Reject a text: it is retired",
		Long: `Reject a text that is not canonical: it is retired, and stays in the history. A page that it
made is deleted; the tool page_restore takes it back. At a terminal it asks; --yes is for
scripts.`,
		Example: "  drawbridge review reject bk_01M8HQ37TXC4TMT6G34GNMQ2VD",
		Args:    exactArgs(1, "one revision (drawbridge review list)"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		v := newReviewer(r)
		e, err := v.confirmed(ctx, "reject", args[0], yes)
		if err != nil {
			return err
		}
		raw, err := v.call(ctx, "review_reject", toolArguments{"revision": args[0]})
		return v.printDecision("rejected", e.revision, raw, err)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "reject without asking")
	return cmd
}

func (a *app) reviewDoneCommand() *cobra.Command {
	return a.workspaceSubcommand(&cobra.Command{
		Use:   "done ID",
		Short: "Say that you have looked at a text whose sources have changed",
		Long:  "Say that you have looked at a text whose sources have changed: its flag is removed. The text stays as it is.",
		Args:  exactArgs(1, "the ID of a flag (drawbridge review list)"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		raw, err := r.call(ctx, "review_revalidate", toolArguments{"entity": args[0]})
		return newReviewer(r).printDecision("looked at", workspace.ID(args[0]), raw, err)
	})
}

// entry returns the entry of a revision. If it is not among the candidates, the entry has no contents.
func (v *reviewer) entry(ctx context.Context, revision workspace.ID) (reviewEntry, error) {
	all, err := v.waiting(ctx)
	for _, e := range reviewEntries(all) {
		if e.flag == nil && e.revision == revision {
			return e, err
		}
	}
	return reviewEntry{revision: revision}, err
}

// confirmed returns the entry of a revision after confirm.
func (v *reviewer) confirmed(ctx context.Context, what, revision string, yes bool) (reviewEntry, error) {
	e, err := v.entry(ctx, workspace.ID(revision))
	if err == nil {
		err = v.confirm(ctx, e, what, yes)
	}
	if err != nil && len(e.contents) == 0 && !errors.Is(err, errDeclined) {
		err = fmt.Errorf("%w (%s)", err, nextForTool("review_list"))
	}
	return e, err
}

// confirm shows an entry, and asks whether to accept or reject it, unless yes is set. It returns an error if the person
// does not agree, or if there is no terminal to ask at.
func (v *reviewer) confirm(ctx context.Context, e reviewEntry, what string, yes bool) error {
	text, err := v.describe(ctx, e)
	if err != nil {
		return err
	}
	fmt.Fprint(v.a.Err, text)
	switch {
	case yes:
		return nil
	case !v.a.isInteractive():
		return admin.UserError(fmt.Sprintf("nothing was %sed: no terminal to ask at (--yes %ss what is shown)", what, what))
	case !v.a.confirmDefaultNo(ctx, strings.ToUpper(what[:1])+what[1:]+" it?"):
		return fmt.Errorf("nothing was %sed", what)
	}
	return nil
}

// printDecision prints what was done with a revision or a flag.
func (v *reviewer) printDecision(did string, id workspace.ID, receipt json.RawMessage, err error) error {
	switch {
	case errors.Is(err, errDeclined):
		return errors.New("nothing was accepted")
	case err != nil:
		return err
	case v.asJSON:
		return v.printJSON(receipt)
	}
	_, err = safetext.Fprintf(v.a.Out, "✓ %s %s\n", did, id)
	return err
}

func (a *app) completeCandidates(ctx context.Context, _ []string) (ids []string, err error) {
	err = a.withRequests(ctx, false, func(ctx context.Context, r requester) error {
		all, err := workspaceRequest{a, r, false}.waiting(ctx)
		for _, e := range reviewEntries(waitingList{Candidates: all.Candidates}) {
			ids = append(ids, string(e.revision))
		}
		return err
	})
	return ids, err
}

func (a *app) completeFlagged(ctx context.Context, _ []string) (ids []string, err error) {
	err = a.withRequests(ctx, false, func(ctx context.Context, r requester) error {
		all, err := workspaceRequest{a, r, false}.waiting(ctx)
		for _, f := range all.Flags {
			ids = append(ids, string(f.Entity))
		}
		return err
	})
	return ids, err
}
