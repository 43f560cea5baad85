package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *app) workspaceWhyCommand() *cobra.Command {
	var o workspace.WhyOptions
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why PAGE[#BLOCK]",
		Short: "Show from what a page was made: pages, memory, web pages, results, files",
		Long: `Show who wrote a page, a block or an item of memory, with which tool, and from what: other
pages and memory, with their own sources, and results of servers, web pages and files, with the
SHA-256 of what was read and the audit record of the call that read it. A source is shown with the
text that it had at that time. docs/why.md says what is stored, and what is not known.`,
		Example: `  drawbridge workspace why plan
  drawbridge workspace why plan#b2 --depth 1
  drawbridge workspace why plan --format prov-json`,
		Args: exactArgs(1, "the ID or the slug of a page, and the slot of a block if you want: plan#b2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "tree" && format != "prov-json" || asJSON && format != "tree" {
				return admin.UserError("--format is tree or prov-json, and not both with --json")
			}
			if strings.HasPrefix(args[0], "#") {
				return admin.UserError("the page is missing before " + safetext.Line(args[0]) + ": write PAGE" + safetext.Line(args[0]))
			}
			if o.Depth < 1 || o.Width < 1 {
				return admin.UserError("--depth and --width are 1 or more")
			}
			why, err := a.adminService().WorkspaceWhy(cmd.Context(), args[0], o)
			switch {
			case err != nil:
				return withNext(err, "drawbridge workspace tree lists the pages")
			case asJSON:
				return PrintJSON(a.Out, why)
			case format == "prov-json":
				return PrintJSON(a.Out, admin.WorkspaceProv(why))
			}
			return printTree(a.Out, whyTree(why))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Depth, "depth", workspace.DefaultWhyDepth, "show at most `N` levels of sources")
	flags.IntVar(&o.Width, "width", workspace.DefaultWhyWidth, "show at most `N` sources of each content")
	flags.StringVar(&format, "format", "tree", "the output `FORMAT`: tree or prov-json (W3C PROV-JSON)")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// whyTree returns the printed form of a tree of sources.
func whyTree(w *workspace.Why) treeNode {
	n := treeNode{line: whyLine(w)}
	if w.Deleted {
		n.addDetail("the page is deleted")
	}
	if w.Written != nil {
		addWritten(&n, w.Written)
	}
	n.addDetail(digestDetail(w.Digest, w.Call))
	if w.Shown {
		n.addDetail("its sources are shown at another place")
	}
	for _, source := range w.Sources {
		n.below = append(n.below, whyTree(source))
	}
	if w.LeftOut > 0 {
		n.below = append(n.below, treeNode{line: fmt.Sprintf("… %s left out (--depth, --width)", formatCount(w.LeftOut, "source"))})
	}
	return n
}

// whyLine returns the first line of a node.
func whyLine(w *workspace.Why) string {
	switch w.Kind {
	case workspace.Statement:
		return "said by " + w.Name + ", and not proven"
	case workspace.Withheld:
		return "memory that you may not read"
	case workspace.MoreSources:
		return "before that: " + w.Name + " that were not noted"
	case workspace.ResultSource:
		return fmt.Sprintf("result of %s, server %s", w.Name, w.Server)
	case string(workspace.PageKind):
		return fmt.Sprintf("page %s (%s)", truncateLine(w.Name, 80), w.Page)
	}
	line := w.Title()
	if w.State != "" && w.State != "current" {
		line += " (" + w.State + ")"
	}
	return line
}

// addWritten adds who wrote a content.
func addWritten(n *treeNode, w *workspace.Written) {
	by := fmt.Sprintf("%s, %s by %s", w.Lifecycle, w.Origin, w.By)
	if w.Script {
		by += " in a script"
	}
	if w.Tool != "" {
		by += " with " + w.Tool
	}
	n.addDetail(by + ", " + formatLocalTime(w.At))
	place := []string{"revision " + string(w.Revision)}
	if w.Call != "" {
		place = append(place, "call "+w.Call)
	}
	n.addDetail(strings.Join(append(place, runWords(w.Thread, w.Run)...), ", "))
	if w.Prompt != "" {
		n.addDetail("prompt: " + truncateLine(w.Prompt, maxPromptLine))
	}
}

// maxPromptLine is the number of characters of a prompt that are shown.
const maxPromptLine = 120

// runWords returns the words for a run and its thread.
func runWords(thread, run string) (words []string) {
	if run != "" {
		words = append(words, "run "+run)
	}
	if thread != "" && thread != run {
		words = append(words, "thread "+thread)
	}
	return words
}

// digestDetail returns the words for a digest, and for the call that read the content.
func digestDetail(digest, call string) string {
	var words []string
	if digest != "" {
		words = append(words, "sha256 "+digest)
	}
	if call != "" {
		words = append(words, "read by call "+call)
	}
	return strings.Join(words, ", ")
}
