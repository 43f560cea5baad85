package lock

import (
	"io"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/change"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/spf13/cobra"
)

// What may be found.
const (
	changed  = "changed"
	fresh    = "not in the lockfile"
	missing  = "not listed any more"
	unlisted = "could not be listed"
)

// A finding is one way in which servers differ from the lockfile.
type finding struct {
	Server drawbridge.ServerID `json:"server"`
	Part   string              `json:"part,omitempty"`
	Tool   string              `json:"tool,omitempty"`
	Found  string              `json:"found"`
	// Why is for a server that could not be listed, Difference for a tool that changed.
	Why        string             `json:"why,omitempty"`
	Difference *change.Difference `json:"difference,omitempty"`
}

func (d Desk) verifyCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [SERVER...]",
		Short: "Check that servers list what the lockfile says",
		Long: `Check that servers list what the lockfile says, no more and no less: all of your own, or those named, which are
started for it. Where something differs it is shown, and the exit code is 1. Nothing is accepted by it, and what was
pinned in the store does not count.`,
		Example: "  drawbridge lock verify --mcp servers.json --file drawbridge.lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := d.path(*file)
			if err != nil {
				return err
			}
			locked, err := read(path)
			if err != nil {
				return err
			}
			all, err := d.listed(cmd.Context(), args)
			if err != nil {
				return err
			}
			s, err := shield.New(shield.Options{Uncapped: true})
			if err != nil {
				return err
			}
			found, tools := compare(s, locked, all)
			if len(args) == 0 {
				d.others(locked, all)
			}
			return d.print(path, found, tools, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// compare finds what differs, in the order of servers and of their lists, and counts what was looked at.
func compare(s *shield.Shield, locked []shield.Locked, all []list) (found []finding, tools int) {
	found = []finding{}
	for _, l := range all {
		if l.err != nil {
			found = append(found, finding{Server: l.server, Found: unlisted, Why: l.err.Error()})
			continue
		}
		left := map[string]shield.Locked{}
		for _, t := range locked {
			if t.Server == l.server {
				left[shield.PartLabel(t.Part, t.Tool)] = t
			}
		}
		for _, t := range l.all {
			tools++
			label := shield.PartLabel(t.part, t.Tool)
			was, ok := left[label]
			delete(left, label)
			switch {
			case !ok:
				found = append(found, finding{Server: l.server, Part: t.part, Tool: t.Tool, Found: fresh})
			case shield.Fingerprint(was.Definition) != shield.Fingerprint(t.Definition):
				diff := change.Between(s, was.Definition, t.Definition)
				found = append(found, finding{Server: l.server, Part: t.part, Tool: t.Tool, Found: changed, Difference: &diff})
			}
		}
		for _, t := range locked {
			if _, ok := left[shield.PartLabel(t.Part, t.Tool)]; ok && t.Server == l.server {
				found = append(found, finding{Server: l.server, Part: t.Part, Tool: t.Tool, Found: missing})
			}
		}
	}
	return found, tools
}

// others says which servers of the lockfile are not configured here.
func (d Desk) others(locked []shield.Locked, all []list) {
	var told []drawbridge.ServerID
	for _, t := range locked {
		known := slices.ContainsFunc(all, func(l list) bool { return l.server == t.Server })
		if !known && !slices.Contains(told, t.Server) {
			told = append(told, t.Server)
			safetext.Fprintf(d.Err, "%s is in the lockfile, and is none of your own servers here\n", t.Server)
		}
	}
}

func (d Desk) print(path string, found []finding, tools int, asJSON bool) error {
	if asJSON {
		if err := manners.PrintJSON(d.Out, found); err != nil {
			return err
		}
	}
	for _, f := range found {
		if !asJSON {
			f.print(d.Out)
		}
	}
	switch {
	case len(found) > 0:
		safetext.Fprintf(d.Err, "%s from %s (drawbridge lock write takes over what is pinned)\n", manners.Count(len(found), "difference"), path)
		return d.Quiet
	case !asJSON:
		safetext.Fprintf(d.Out, "✓ %d definitions are as %s says\n", tools, path)
	}
	return nil
}

func (f finding) print(w io.Writer) {
	switch {
	case f.Difference != nil:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PartLabel(f.Part, f.Tool)), f.Difference)
		f.Difference.Print(w, terminal.Is(w))
	case f.Tool == "":
		safetext.Fprintf(w, "✗ %s: %s: %s\n", f.Server, f.Found, f.Why)
	default:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PartLabel(f.Part, f.Tool)), f.Found)
	}
}
