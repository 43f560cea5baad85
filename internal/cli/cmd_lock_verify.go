package cli

import (
	"io"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/spf13/cobra"
)

// The kinds of differences.
const (
	lockDiffChanged    = "changed"
	lockDiffUnlocked   = "not in the lockfile"
	lockDiffNotListed  = "not listed any more"
	lockDiffListFailed = "could not be listed"
)

// A lockDifference is one difference between a server and the lockfile.
type lockDifference struct {
	Server drawbridge.ServerID `json:"server"`
	Part   string              `json:"part,omitempty"`
	Tool   string              `json:"tool,omitempty"`
	Found  string              `json:"found"`
	// Why is the reason for a server that could not be listed, Difference that of a tool that changed.
	Why        string          `json:"why,omitempty"`
	Difference *DefinitionDiff `json:"difference,omitempty"`
}

func (d lockCommands) verifyCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [SERVER...]",
		Short: "Check the lists of servers against the lockfile",
		Long: `Check that servers list exactly the definitions of the lockfile: all your own servers, or those named. The
command starts them. It prints each difference, and the exit code is 1 then. It accepts no change and ignores the
definitions pinned in the store.`,
		Example: "  drawbridge lock verify --mcp servers.json --file drawbridge.lock",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := d.lockfilePath(*file)
			if err != nil {
				return err
			}
			locked, err := readLockfile(path)
			if err != nil {
				return err
			}
			all, err := d.listServers(cmd.Context(), args)
			if err != nil {
				return err
			}
			s, err := shield.New(shield.Options{NoCaps: true})
			if err != nil {
				return err
			}
			found, tools := compareWithLockfile(s, locked, all)
			if len(args) == 0 {
				d.printUnconfiguredServers(locked, all)
			}
			return d.printDifferences(path, found, tools, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// compareWithLockfile returns the differences, in the order of servers and their lists, and counts the definitions.
func compareWithLockfile(s *shield.Shield, locked []shield.LockedTool, all []serverDefinitions) (found []lockDifference,
	tools int) {
	found = []lockDifference{}
	for _, l := range all {
		if l.err != nil {
			found = append(found, lockDifference{Server: l.server, Found: lockDiffListFailed, Why: l.err.Error()})
			continue
		}
		left := map[string]shield.LockedTool{}
		for _, t := range locked {
			if t.Server == l.server {
				left[shield.PinLabel(t.Part, t.Tool)] = t
			}
		}
		for _, t := range l.definitions {
			tools++
			label := shield.PinLabel(t.part, t.Tool)
			was, ok := left[label]
			delete(left, label)
			switch {
			case !ok:
				found = append(found, lockDifference{Server: l.server, Part: t.part, Tool: t.Tool,
					Found: lockDiffUnlocked})
			case shield.Fingerprint(was.Definition) != shield.Fingerprint(t.Definition):
				diff := DiffDefinitions(s, was.Definition, t.Definition)
				found = append(found, lockDifference{Server: l.server, Part: t.part, Tool: t.Tool,
					Found: lockDiffChanged, Difference: &diff})
			}
		}
		for _, t := range locked {
			if _, ok := left[shield.PinLabel(t.Part, t.Tool)]; ok && t.Server == l.server {
				found = append(found, lockDifference{Server: l.server, Part: t.Part, Tool: t.Tool,
					Found: lockDiffNotListed})
			}
		}
	}
	return found, tools
}

// printUnconfiguredServers prints the servers of the lockfile that are not configured here.
func (d lockCommands) printUnconfiguredServers(locked []shield.LockedTool, all []serverDefinitions) {
	var told []drawbridge.ServerID
	for _, t := range locked {
		known := slices.ContainsFunc(all, func(l serverDefinitions) bool { return l.server == t.Server })
		if !known && !slices.Contains(told, t.Server) {
			told = append(told, t.Server)
			safetext.Fprintf(d.Err, "%s is in the lockfile, and is none of your own servers here\n", t.Server)
		}
	}
}

func (d lockCommands) printDifferences(path string, found []lockDifference, tools int, asJSON bool) error {
	if asJSON {
		if err := PrintJSON(d.Out, found); err != nil {
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
		safetext.Fprintf(d.Err, "%s from %s (drawbridge lock write takes over what is pinned)\n",
			formatCount(len(found), "difference"), path)
		return d.ErrAlreadyPrinted
	case !asJSON:
		safetext.Fprintf(d.Out, "✓ %d definitions are as %s says\n", tools, path)
	}
	return nil
}

func (f lockDifference) print(w io.Writer) {
	switch {
	case f.Difference != nil:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PinLabel(f.Part, f.Tool)), f.Difference)
		f.Difference.Print(w, term.IsTerminal(w))
	case f.Tool == "":
		safetext.Fprintf(w, "✗ %s: %s: %s\n", f.Server, f.Found, f.Why)
	default:
		safetext.Fprintf(w, "✗ %s %s: %s\n", f.Server, safetext.Exact(shield.PinLabel(f.Part, f.Tool)), f.Found)
	}
}
