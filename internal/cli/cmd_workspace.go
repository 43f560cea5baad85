package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *app) workspaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Pages that you and agents write: create, import, read, export",
		Long: `The workspace has pages. For each text it keeps who wrote it, from what it was made, and
whether a person has accepted it. Agents and clients read and propose pages with tools;
"drawbridge review" shows you what they proposed. docs/workspace.md is the guide.`,
		Example: `  drawbridge workspace init
  drawbridge workspace import notes
  drawbridge workspace tree
  drawbridge workspace show plan
  drawbridge workspace why plan`,
	}
	cmd.AddCommand(a.workspaceInitCommand(), a.workspaceImportCommand(), a.workspaceExportCommand(), a.workspaceTreeCommand(),
		a.workspaceShowCommand(), a.workspaceSearchCommand(), a.workspaceHistoryCommand(), a.workspaceWhyCommand())
	return asCommandGroup(cmd)
}

func (a *app) workspaceInitCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create the workspace, unless it exists",
		Long: `Create the workspace, unless it exists: a file beside that of the store, or what [workspace]
in drawbridge.toml names. A running hub opens it at once, and tells its clients that the list
of tools has changed.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			made, err := a.adminService().InitWorkspace(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(a.Out, made)
			case made.Created:
				safetext.Fprintf(a.Out, "✓ created the workspace %s\n", a.abbreviateHome(made.Location))
			default:
				safetext.Fprintf(a.Out, "✓ the workspace exists already: %s\n", a.abbreviateHome(made.Location))
			}
			if made.Live != "" {
				safetext.Fprintln(a.Err, made.Live)
			}
			fmt.Fprintln(a.Err, `next: "drawbridge workspace import DIR" takes in a folder of Markdown files; agents and clients
propose pages with their tools, and "drawbridge review" shows you what waits for you`)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A workspaceRequest calls tools of the workspace and prints the results of one command.
type workspaceRequest struct {
	a *app
	requester
	asJSON bool
}

// workspaceSubcommand adds the flags of a command that calls tools of the workspace, and has it call run.
func (a *app) workspaceSubcommand(cmd *cobra.Command, run func(ctx context.Context, r workspaceRequest, args []string) error) *cobra.Command {
	var asJSON, own bool
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withRequests(cmd.Context(), own, func(ctx context.Context, r requester) error {
			return run(ctx, workspaceRequest{a, r, asJSON}, args)
		})
	}
	addOwnFlag(cmd, &own)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A toolArguments is the arguments of a call, without those that are empty.
type toolArguments map[string]any

// call calls a tool of the workspace and returns the structured content of its result. If the tool reports an error, that
// is the error.
func (r workspaceRequest) call(ctx context.Context, tool string, arguments toolArguments) (json.RawMessage, error) {
	for name, value := range arguments {
		if value == "" || value == 0 || value == false {
			delete(arguments, name)
		}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	result, err := r.do(ctx, mcp.MethodToolsCall,
		rawjson.Apply(nil, rawjson.Put(rawjson.Quote(tool), "name"), rawjson.Put(text, "arguments")))
	if err != nil {
		return nil, withNext(err, nextForTool(tool))
	}
	if answer := (drawbridge.Result{Raw: result}); answer.IsError() {
		return nil, fmt.Errorf("%s: %s", tool, safetext.Text(answer.Text()))
	}
	content := rawjson.Get(result, "structuredContent")
	if content == nil {
		return nil, fmt.Errorf("%s: the result was withheld (drawbridge shield results)", tool)
	}
	return content, nil
}

// nextForTool returns the next step if a tool does not find what a person has named.
func nextForTool(tool string) string {
	if strings.HasPrefix(tool, "review_") {
		return "drawbridge review list lists what waits"
	}
	return "drawbridge workspace tree lists the pages"
}

// withNext returns an error with the next step, if it is a fault with the code NotFound that has none.
func withNext(err error, next string) error {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.NotFound || f.Next != "" {
		return err
	}
	known := *f
	known.Next = next
	return &known
}

// callWorkspace calls a tool of the workspace and decodes its result.
func callWorkspace[Out any](ctx context.Context, r workspaceRequest, tool string, arguments toolArguments) (out Out, err error) {
	raw, err := r.call(ctx, tool, arguments)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// printJSON prints the structured content of a tool's result.
func (r workspaceRequest) printJSON(raw json.RawMessage) error {
	_, err := safetext.Fprintf(r.a.Out, "%s\n", safetext.Shown(safetext.JSON(raw)))
	return err
}

// show calls a tool, and prints its result as JSON, or with the given function.
func show[Out any](ctx context.Context, r workspaceRequest, tool string, arguments toolArguments, print func(Out) error) error {
	raw, err := r.call(ctx, tool, arguments)
	if err != nil {
		return err
	}
	if r.asJSON {
		return r.printJSON(raw)
	}
	var out Out
	if err := json.Unmarshal(raw, &out); err != nil {
		return fmt.Errorf("read the result of %s: %w", tool, err)
	}
	return print(out)
}

// importResult is the result of workspace_import.
type importResult struct {
	Imported, Known int
	Skipped         []string
}

func (a *app) workspaceImportCommand() *cobra.Command {
	var parent string
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "import DIR",
		Short: "Import a folder of Markdown files as pages",
		Long: `Import the Markdown files of a folder as pages. They are drafts; each folder becomes a page.
Hidden files and those that .gitignore excludes are left out. Ctrl-C stops the import, and
the same command goes on with it: a file that was imported before is left out. A file whose
text has changed since is named, and its page stays.`,
		Example: "  drawbridge workspace import notes\n  drawbridge workspace import notes --parent archive",
		Args:    exactArgs(1, "one folder"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		r.bar = true
		err := show(ctx, r, "workspace_import", toolArguments{"path": args[0], "parent": parent}, func(done importResult) error {
			safetext.Fprintf(a.Out, "✓ imported %s", formatCount(done.Imported, "file"))
			if done.Known > 0 {
				safetext.Fprintf(a.Out, "; %s imported before", formatCount(done.Known, "file"))
			}
			fmt.Fprintln(a.Out)
			for _, s := range done.Skipped {
				safetext.Fprintf(a.Err, "not imported: %s\n", s)
			}
			return nil
		})
		if err != nil && ctx.Err() != nil {
			fmt.Fprintln(a.Err, "the files that were imported stay; the same command goes on with the others")
		}
		return err
	})
	cmd.Flags().StringVar(&parent, "parent", "", "put the pages below this `PAGE`")
	return cmd
}

func (a *app) workspaceExportCommand() *cobra.Command {
	var parent string
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "export DIR",
		Short: "Write the pages as Markdown files into a folder",
		Long: `Write the pages as Markdown files into a folder; files that exist are replaced. An imported
file is written under its name, byte for byte if nothing was changed. Of an accepted page,
only the texts are written that a person has accepted.`,
		Example: "  drawbridge workspace export out",
		Args:    exactArgs(1, "one folder"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		return show(ctx, r, "workspace_export", toolArguments{"path": args[0], "parent": parent}, func(done struct{ Exported int }) error {
			_, err := safetext.Fprintf(a.Out, "✓ wrote %s to %s\n", formatCount(done.Exported, "file"), args[0])
			return err
		})
	})
	cmd.Flags().StringVar(&parent, "parent", "", "write only the pages below this `PAGE`")
	return cmd
}

// fullPart is how many rows a list of the workspace returns at most; there are more if it returns that many.
const fullPart = 1000

// A pageList is the result of page_list.
type pageList struct {
	Pages []workspace.Page `json:"pages"`
}

// maxOnePage checks that a command has at most one argument, which is a page.
func maxOnePage(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return admin.UserError(fmt.Sprintf("%s takes one page at most (see %q)", cmd.CommandPath(), cmd.CommandPath()+" --help"))
	}
	return nil
}

func (a *app) workspaceTreeCommand() *cobra.Command {
	return a.workspaceSubcommand(&cobra.Command{
		Use:   "tree [PAGE]",
		Short: "Show the pages, each with those below it",
		Long:  "Show the pages, each with those below it: all of them, or those below one page.",
		Args:  maxOnePage,
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		all, err := r.pages(ctx, strings.Join(args, ""))
		switch {
		case err != nil:
			return err
		case r.asJSON:
			return PrintJSON(a.Out, all)
		case len(all.Pages) == 0:
			fmt.Fprintln(a.Err, "No pages.")
			return nil
		}
		return r.printTree(all.Pages)
	})
}

// pages returns the pages below a page, in the order of the tree.
func (r workspaceRequest) pages(ctx context.Context, parent string) (pageList, error) {
	all := pageList{Pages: []workspace.Page{}}
	for {
		part, err := callWorkspace[pageList](ctx, r, "page_list",
			toolArguments{"parent": parent, "deep": true, "offset": len(all.Pages)})
		all.Pages = append(all.Pages, part.Pages...)
		if err != nil || len(part.Pages) < fullPart {
			return all, err
		}
	}
}

func (r workspaceRequest) printTree(all []workspace.Page) error {
	depth := map[workspace.ID]int{} // of the pages below a page
	table := NewTable(r.a.Out)
	fmt.Fprintln(table, "TITLE\tPAGE\tSTATE\tORIGIN")
	for _, p := range all {
		level := depth[p.Parent]
		depth[p.ID] = level + 1
		title := p.Title
		if p.Folder {
			title += "/"
		}
		safetext.Fprintf(table, strings.Repeat("  ", level)+"%s\t%s\t%s\t%s\n", truncateLine(title, 80), p.Slug, p.Lifecycle, p.Origin)
	}
	return table.Flush()
}

func (a *app) workspaceSearchCommand() *cobra.Command {
	var limit int
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:     "search QUERY...",
		Short:   "Find pages that have all words of a query",
		Long:    "Find pages that have all words of a query, the best first. The last word may be the beginning of a word.",
		Example: "  drawbridge workspace search release check",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return admin.UserError(fmt.Sprintf("%s takes words to search for", cmd.CommandPath()))
			}
			return nil
		},
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		type hits struct{ Hits []workspace.Hit }
		return show(ctx, r, "page_search", toolArguments{"query": strings.Join(args, " "), "limit": limit}, func(found hits) error {
			return listPrinter[workspace.Hit]{Header: "PAGE\tTITLE\tSTATE\tORIGIN", EmptyText: "No page has these words.",
				Columns: func(h workspace.Hit) string {
					return safetext.Sprintf("%s\t%s\t%s\t%s", h.Slug, truncateLine(h.Title, 80), h.Lifecycle, h.Origin)
				}}.print(a.Out, a.Err, found.Hits, false)
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 10, "how many pages to show at most")
	return cmd
}

// revisionList is the result of page_history.
type revisionList struct {
	Revisions []workspace.Revision `json:"revisions"`
}

func (a *app) workspaceHistoryCommand() *cobra.Command {
	var limit int
	cmd := a.workspaceSubcommand(&cobra.Command{
		Use:   "history PAGE",
		Short: "Show the revisions of a page: who wrote and who accepted them",
		Long:  "Show the revisions of a page and of all that it has, the newest first: who wrote them, and who accepted them.",
		Args:  exactArgs(1, "the ID or the slug of a page"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		return show(ctx, r, "page_history", toolArguments{"page": args[0], "limit": limit}, func(found revisionList) error {
			slots, err := r.slotsOf(ctx, args[0])
			if err != nil {
				return err
			}
			return listPrinter[workspace.Revision]{Header: "REVISION\tOF\tNOW\tSTATE\tORIGIN\tBY\tWHEN\tACCEPTED",
				EmptyText: "No revisions.", Columns: func(v workspace.Revision) string {
					accepted := "-"
					if v.AcceptedBy != "" {
						accepted = v.AcceptedBy + ", " + formatLocalTime(v.Accepted)
					}
					return safetext.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", v.Revision,
						strings.TrimSpace(string(v.Kind)+" "+slots[v.Entity]), v.State, v.Lifecycle, v.Origin,
						truncateLine(v.By, 30), formatLocalTime(v.At), truncateLine(accepted, 60))
				}}.print(a.Out, a.Err, found.Revisions, false)
		})
	})
	cmd.Flags().IntVar(&limit, "limit", 50, "how many revisions to show at most")
	return cmd
}

// slotsOf returns the slots of the blocks of a page.
func (r workspaceRequest) slotsOf(ctx context.Context, page string) (map[workspace.ID]string, error) {
	p, err := callWorkspace[pageResult](ctx, r, "page_read", toolArguments{"page": page})
	if err != nil || p.Page == nil {
		return nil, err
	}
	slots := map[workspace.ID]string{}
	for _, b := range p.Page.Blocks {
		slots[b.ID] = b.Slot
	}
	return slots, nil
}

// completePages returns the slugs of the pages.
func (a *app) completePages(ctx context.Context, _ []string) (slugs []string, err error) {
	err = a.withRequests(ctx, false, func(ctx context.Context, r requester) error {
		all, err := workspaceRequest{a, r, false}.pages(ctx, "")
		for _, p := range all.Pages {
			slugs = append(slugs, p.Slug)
		}
		return err
	})
	return slugs, err
}

// isNotFound reports whether an error says that something does not exist.
func isNotFound(err error) bool {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	return ok && f.Code == drawbridge.NotFound
}
