package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A pageResult is the result of page_read.
type pageResult struct {
	Page        *workspace.PageView    `json:"page"`
	Attachments []workspace.Attachment `json:"attachments"`
	Revisions   []workspace.Revision   `json:"revisions"`
}

func (a *app) workspaceShowCommand() *cobra.Command {
	return a.workspaceSubcommand(&cobra.Command{
		Use:   "show PAGE",
		Short: "Show a page, who wrote it, and which of its texts are accepted",
		Long: `Show a page, who wrote it, and which of its texts are accepted. A block with another author or another
state than the page has a line above it that says so. Characters that cannot be seen are shown as
\u escapes; "drawbridge workspace export" writes the text as it is.`,
		Example: "  drawbridge workspace show plan",
		Args:    exactArgs(1, "the ID or the slug of a page"),
	}, func(ctx context.Context, r workspaceRequest, args []string) error {
		return show(ctx, r, "page_read", toolArguments{"page": args[0]}, func(p pageResult) error {
			_, err := io.WriteString(a.Out, formatPage(p))
			return err
		})
	})
}

// formatPage returns the text of a page for people.
func formatPage(p pageResult) string {
	var b strings.Builder
	v := p.Page
	safetext.Fprintf(&b, "%s\n%s · %s\n", v.Title, v.Slug, formatStamp(v.Stamp))
	if v.Deleted {
		b.WriteString("The page is deleted.\n")
	}
	for _, tag := range v.Tags {
		safetext.Fprintf(&b, "tag %s%s\n", tag.Tag, unlike(tag.Lifecycle, v.Lifecycle))
	}
	for _, property := range v.Properties {
		safetext.Fprintf(&b, "%s: %s%s\n", property.Name, strings.Join(property.Values, ", "), unlike(property.Lifecycle, v.Lifecycle))
	}
	for _, f := range p.Attachments {
		safetext.Fprintf(&b, "attachment %s, %s, %d bytes%s\n", f.Name, f.Type, f.Size, unlike(f.Lifecycle, v.Lifecycle))
	}
	if len(v.Flags) > 0 {
		b.WriteString("What it was made from has changed: drawbridge review\n")
	}
	b.WriteString("\n" + safetext.Text(v.Head))
	for _, block := range v.Blocks {
		if block.Lifecycle == workspace.Retired {
			continue
		}
		if block.Lifecycle != v.Lifecycle || block.Origin != v.Origin || block.By != v.By {
			safetext.Fprintf(&b, "[%s: %s, revision %s]\n", block.Slot, formatStamp(block.Stamp), block.Revision)
		}
		b.WriteString(safetext.Text(block.Text))
	}
	if text := b.String(); !strings.HasSuffix(text, "\n") {
		return text + "\n"
	}
	return b.String()
}

// unlike returns a lifecycle in brackets, unless it is that of the page.
func unlike(l, page workspace.Lifecycle) string {
	if l == page {
		return ""
	}
	return " (" + string(l) + ")"
}

// formatStamp returns who wrote content and how far it is accepted.
func formatStamp(s workspace.Stamp) string {
	text := safetext.Sprintf("%s, %s by %s, %s", s.Lifecycle, s.Origin, s.By, formatLocalTime(s.At))
	if s.Run != "" {
		text += safetext.Sprintf(", run %s", s.Run)
	}
	if s.Thread != "" && s.Thread != s.Run {
		text += safetext.Sprintf(", thread %s", s.Thread)
	}
	return text
}
