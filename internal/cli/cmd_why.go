package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/undo"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *app) whyCommand() *cobra.Command {
	var format string
	var reads int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why FILE[:LINE] | CALL",
		Short: "Show which call wrote a line of a file, and what its run had read before",
		Long: `Show which call of Drawbridge's own tools wrote a line of a file, when, in which run, and what the
run had read before, with the SHA-256 of each. Without a line, show the calls for all lines. With
the ID of a call in the audit, or the beginning of it, show the call and what its run had read.
Lines that were changed by hand, or by other programs, are not known. docs/why.md is the guide;
"drawbridge workspace why" does the same for pages.`,
		Example: `  drawbridge why main.go:12
  drawbridge why main.go --format agent-trace
  drawbridge why main.go --format trailer
  drawbridge why 01JC5Z4W8QK3E9T7N2M6R1V0XB`,
		Args: exactArgs(1, "a file, FILE:LINE, or the ID of a call"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case format != "tree" && format != "agent-trace" && format != "trailer" || asJSON && format != "tree":
				return admin.UserError("--format is tree, agent-trace or trailer, and not both with --json")
			case reads < 1:
				return admin.UserError("--reads is 1 or more")
			}
			service := a.adminService()
			answer, err := service.Why(cmd.Context(), args[0], reads)
			switch {
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(a.Out, answer)
			case format != "tree":
				return a.printTrace(service, answer, format)
			case answer.Call != nil:
				return printTree(a.Out, callTree(answer.Call, "call "+answer.Call.ID))
			}
			return printTree(a.Out, a.fileTree(answer.File))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "tree",
		"the output `FORMAT`: tree, agent-trace (a record of agent-trace 0.1) or trailer (of a Git commit)")
	flags.IntVar(&reads, "reads", 50, "show at most `N` things that the run had read")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printTrace prints an export of a file.
func (a *app) printTrace(service *admin.Service, answer admin.WhyAnswer, format string) error {
	if answer.File == nil {
		return admin.UserError("--format " + format + " is for a file")
	}
	if format == "agent-trace" {
		trace, err := service.AgentTrace(answer.File, buildVersion())
		return printJSONUnless(a.Out, trace, err)
	}
	lines := admin.RunTrailers(answer.File)
	if len(lines) == 0 {
		return admin.UserError("no run is known that wrote lines of the file")
	}
	_, err := fmt.Fprintln(a.Out, strings.Join(lines, "\n"))
	return err
}

// fileTree returns the printed form of what is known of a file or of a line.
func (a *app) fileTree(file *admin.FileWhy) treeNode {
	path := a.abbreviateHome(file.Path)
	n := treeNode{line: path}
	switch {
	case file.Digest == "":
		n.addDetail("it does not exist; the last change: " + changeWords(file.Last))
		return n
	case file.ChangedAfter != nil:
		n.addDetail("changed by hand, or by another program, after " + changeWords(file.ChangedAfter))
		n.addDetail("so the calls that wrote its lines are not known any more")
		return n
	case file.Line == 0:
		n.addDetail("sha256 " + file.Digest)
		for _, r := range file.Ranges {
			n.below = append(n.below, treeNode{line: rangeWords(r) + ": " + ownerWords(r)})
		}
		return n
	}
	n.line = fmt.Sprintf("%s:%d", path, file.Line)
	if file.Writer == nil {
		n.addDetail(rangeWords(*file.Range) + ": " + ownerWords(*file.Range))
		return n
	}
	n.addDetail("the same call wrote " + rangeWords(*file.Range))
	n.below = []treeNode{callTree(file.Writer, "written by "+callName(file.Writer))}
	return n
}

func rangeWords(r undo.Range) string {
	if r.First == r.Last {
		return fmt.Sprintf("line %d", r.First)
	}
	return fmt.Sprintf("lines %d-%d", r.First, r.Last)
}

// ownerWords returns who wrote a range.
func ownerWords(r undo.Range) string {
	switch {
	case r.By != nil:
		return changeWords(r.By)
	case r.After != nil:
		return "changed by hand, or by another program, after " + changeWords(r.After)
	}
	return "there before the first change that is known"
}

// changeWords returns the words for a change of a file.
func changeWords(w *undo.Written) string {
	words := []string{cmp.Or(w.Tool, "a change"), formatLocalTime(w.Time)}
	if w.Call != "" {
		words = append(words, "call "+w.Call)
	}
	return strings.Join(append(words, runWords(w.Thread, w.Run)...), ", ")
}

func callName(c *admin.CallWhy) string {
	if c.ID == "" {
		return c.Tool
	}
	return fmt.Sprintf("%s, call %s", c.Tool, c.ID)
}

// callTree returns the printed form of a call and of what its run had read.
func callTree(c *admin.CallWhy, line string) treeNode {
	n := treeNode{line: line}
	by := c.Caller
	if c.Client != "" {
		by += " (" + c.Client + ")"
	}
	n.addDetail(strings.Join(append([]string{formatLocalTime(c.At), "by " + by}, runWords(c.Thread, c.Run)...), ", "))
	if c.Recorded {
		n.addDetail(strings.TrimSuffix("tool "+c.Tool+", server "+c.Server, ", server "))
		addDecision(&n, c)
		if c.Label != "" {
			n.addDetail("the run was " + c.Label + ": " + strings.Join(c.Origins, ", "))
		}
		if c.Arguments != "" {
			n.addDetail("arguments: sha256 " + c.Arguments)
		}
	} else {
		n.addDetail("the audit does not have the call")
	}
	if c.Prompt != "" {
		n.addDetail("prompt: " + truncateLine(c.Prompt, maxPromptLine))
	}
	for _, f := range c.Files {
		n.below = append(n.below, treeNode{line: "wrote the file " + f.Path, details: nonEmpty(digestDetail(f.Digest, ""))})
	}
	for _, w := range c.Writes {
		n.below = append(n.below, treeNode{line: "wrote " + writtenWords(c, w)})
	}
	for _, r := range c.Reads {
		n.below = append(n.below, treeNode{line: "read before: " + readWords(c, r),
			details: nonEmpty(digestDetail(r.Digest, r.Call))})
	}
	if c.MoreReads > 0 {
		n.below = append(n.below, treeNode{line: fmt.Sprintf("… %s before that left out (--reads)", formatCount(c.MoreReads, "read"))})
	}
	return n
}

// addDecision adds the verdict, the approval and the outcome of a call.
func addDecision(n *treeNode, c *admin.CallWhy) {
	decision := "verdict " + cmp.Or(c.Verdict, "none")
	if c.Rule != "" {
		decision += " (" + c.Rule + ")"
	}
	if c.Approval != "" {
		decision += ", approval " + c.Approval + " by " + c.By
	}
	n.addDetail(decision + ", outcome " + cmp.Or(c.Outcome, "open"))
	if values := flow.ReasonValues(c.Reason); len(values) > 0 {
		n.addDetail("values that needed an endorsement: " + truncateLine(strings.Join(values, ", "), maxPromptLine))
	} else if c.Reason != "" {
		n.addDetail("reason: " + truncateLine(c.Reason, maxPromptLine))
	}
}

func nonEmpty(detail string) []string {
	if detail == "" {
		return nil
	}
	return []string{detail}
}

// writtenWords returns the words for what a call wrote to the workspace.
func writtenWords(c *admin.CallWhy, w workspace.CallWrite) string {
	if name := c.Names[string(w.Entity)]; name != "" {
		return truncateLine(name, maxPromptLine)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", w.Change, w.Entity, w.Page))
}

// readWords returns the words for something that the run of a call has read.
func readWords(c *admin.CallWhy, r admin.Read) string {
	switch r.Kind {
	case "result":
		return fmt.Sprintf("result of %s, server %s", r.Name, safetext.Line(r.Server))
	case "page":
		return "web page " + r.Name
	case "entity":
		return truncateLine(cmp.Or(c.Names[r.Name], "workspace "+r.Name), maxPromptLine)
	case "call":
		return r.Name
	}
	return r.Kind + " " + r.Name
}
